"""Judgments asked ahead: they may be for nothing, and are counted so until something rests on them."""

import asyncio
import threading
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace

import pytest
from servers.judge_server import JudgeServer, rate_limited

from mind2web2.errors import JudgeError
from mind2web2.judge import caching
from mind2web2.judge.budget import Budget
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.permit import AnswerLimits
from mind2web2.judge.protocol import QuestionContext
from mind2web2.judge.settings import JudgeSettings
from mind2web2.judge.store import JudgmentStore
from mind2web2.llm_client import LLMClient
from mind2web2.llm_client.chat import ChatRequest
from mind2web2.verification.messages import BinaryEvalResult

MESSAGES = [{"role": "user", "content": "Is it deep?"}]
QUESTION = (
    ChatRequest("o4-mini", MESSAGES, BinaryEvalResult),
    QuestionContext("verify", claim="It is deep."),
    ("lake", "answer_1.md"),
)


@pytest.fixture
def server():
    """A judge that supports every claim."""
    with JudgeServer() as server:
        yield server


@pytest.fixture
async def client(server):
    """A client of it."""
    async with LLMClient(
        "openai", True, base_url=server.base_url, api_key="key"
    ) as client:
        yield client


@pytest.fixture
def run(client):
    """A run's judge without a budget."""
    with JudgmentStore(None) as store:
        yield CachingJudge(JudgeSettings("openai", "o4-mini"), client, store)


def limits(places=None):
    """Return the limits of an answer whose judge has not failed."""
    return AnswerLimits(places or nullcontext(), lambda: None)


async def test_a_judgment_ahead_is_for_nothing_until_it_is_asked_for(run, server):
    """Then it counts as asked, once, and not as reused."""
    await run.judgment_ahead(*QUESTION, limits())
    assert run.spent_for_nothing().judgments == 1
    await run.judgment(*QUESTION, limits())
    assert run.spent_for_nothing().judgments == 0
    total = run.usage.total()
    assert (total.asked.judgments, total.reused.judgments, len(server.requests)) == (
        1,
        0,
        1,
    )


async def test_the_memory_of_judgments_ahead_is_bounded(run, monkeypatch):
    """All count; only of the latest is it known later that something rests on them."""
    monkeypatch.setattr(caching, "_MOST_AHEAD", 2)
    request, *others = QUESTION
    for number in range(5):
        messages = [{"role": "user", "content": f"Is it {number}?"}]
        await run.judgment_ahead(replace(request, messages=messages), *others, limits())
    assert len(run._ahead) == 2
    assert run.spent_for_nothing().judgments == 5
    assert run.spent_for_nothing().requests == 5


async def test_a_stored_judgment_is_not_for_nothing(run, server):
    """It was asked for before."""
    await run.judgment(*QUESTION, limits())
    await run.judgment_ahead(*QUESTION, limits())
    assert run.spent_for_nothing().judgments == 0
    assert (run.usage.of("lake").reused.judgments, len(server.requests)) == (1, 1)


async def test_a_question_that_is_given_up_before_its_turn_is_not_sent(run, server):
    """Its place is free for others."""
    places = asyncio.Semaphore(0)
    ahead = asyncio.create_task(run.judgment_ahead(*QUESTION, limits(places)))
    done, _ = await asyncio.wait({ahead}, timeout=0.05)
    assert not done
    ahead.cancel()
    await asyncio.wait({ahead})
    assert ahead.cancelled()
    places.release()
    assert (await run.judgment(*QUESTION, limits(places))).text
    assert len(server.requests) == 1


async def test_a_question_that_is_given_up_after_it_is_sent_is_stored(client, tmp_path):
    """It is paid for. Its caller does not wait for that; the end of the run does."""
    is_sent, may_come = asyncio.Event(), asyncio.Event()

    class Slow:
        endpoint = client.endpoint

        async def chat(self, request, limit):
            async with limit:
                is_sent.set()
                await may_come.wait()
                return await client.chat(request)

    with JudgmentStore(tmp_path / "judgments.sqlite3") as store:
        run = CachingJudge(JudgeSettings("openai", "o4-mini"), Slow(), store)
        ahead = asyncio.create_task(run.judgment_ahead(*QUESTION, limits()))
        await is_sent.wait()
        ahead.cancel()
        await asyncio.wait({ahead})
        assert ahead.cancelled()
        assert list(store.all()) == []
        may_come.set()
        await run.write_rest()
        assert len(list(store.all())) == 1
        assert run.spent_for_nothing().judgments == 1


class Places(AbstractAsyncContextManager):
    """A limit that tells when a request fails."""

    def __init__(self):
        self.failed = asyncio.Event()

    async def __aexit__(self, kind, error, trace):
        """Note an error."""
        if error is not None:
            self.failed.set()


@pytest.mark.parametrize("is_in_flight", [True, False])
async def test_a_question_that_is_given_up_is_not_sent_again(is_in_flight):
    """Neither its caller nor the end of the run waits for the time that the server names."""
    is_here, may_fail = threading.Event(), threading.Event()

    def refused(_body):
        is_here.set()
        may_fail.wait()
        return rate_limited(retry_after="600")

    places = Places()
    with JudgeServer(faults=refused) as server, JudgmentStore(None) as store:
        async with LLMClient(
            "openai", True, base_url=server.base_url, api_key="key"
        ) as client:
            run = CachingJudge(JudgeSettings("openai", "o4-mini"), client, store)
            ahead = asyncio.create_task(run.judgment_ahead(*QUESTION, limits(places)))
            await asyncio.to_thread(is_here.wait)
            if is_in_flight:
                ahead.cancel()
                await asyncio.wait({ahead})
            may_fail.set()
            await places.failed.wait()
            ahead.cancel()
            await asyncio.wait({ahead})
            await run.write_rest()
        assert ahead.cancelled()
        assert len(server.requests) == 1


async def test_nothing_is_asked_ahead_within_a_budget(client, server):
    """It would use up what other claims need."""
    with JudgmentStore(None) as store:
        settings = JudgeSettings("openai", "o4-mini")
        run = CachingJudge(settings, client, store, budget=Budget(1.0, "o4-mini"))
        with pytest.raises(JudgeError, match="within a budget, nothing is asked ahead"):
            await run.judgment_ahead(*QUESTION, limits())
    assert server.requests == []
