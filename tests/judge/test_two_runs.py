"""Two runs of one agent at the same time.

Their scores rest on what is stored, which a replay reads.
"""

import asyncio
import threading
from dataclasses import replace
from itertools import count

import pytest
from projects import QUICK_RETRY
from pydantic import BaseModel
from servers.judge_server import JudgeServer
from stored_judgments import judgment

from mind2web2.judge.answer_judge import AnswerJudge
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.judgment import judgment_key
from mind2web2.judge.protocol import QuestionContext
from mind2web2.judge.service_request import ServiceRequest
from mind2web2.judge.services import answer_service
from mind2web2.judge.spec import JudgeSpec
from mind2web2.judge.store import JudgmentStore
from mind2web2.llm_client.base_client import AsyncOpenAIClient
from mind2web2.llm_client.chat import ChatRequest

SETTINGS = JudgeSpec("gpt-4o")
ABOUT = QuestionContext("verify", node="leaf", claim="The lake is deep.")


class Verdict(BaseModel):
    """The template."""

    result: bool


QUESTION = ChatRequest(
    "gpt-4o", [{"role": "user", "content": "Is the lake deep?"}], template=Verdict
)


class Undecided:
    """A judge that says yes and no in turn, to so many questions at once."""

    def __init__(self, at_once):
        self._all_asked = threading.Barrier(at_once)
        self._turn = count()
        self._lock = threading.Lock()

    def __call__(self, _body):
        """Return the next verdict, once all have asked."""
        self._all_asked.wait(60)
        with self._lock:
            return {"result": next(self._turn) % 2 == 0}


@pytest.fixture
def runs(tmp_path):
    """Return how to ask one question in two runs at the same time."""
    path = tmp_path / "judgments.sqlite3"

    async def ask(server, **settings):
        with JudgmentStore(path) as store:
            async with AsyncOpenAIClient(
                base_url=server.base_url, api_key="none", retry=QUICK_RETRY
            ) as client:
                run = CachingJudge(SETTINGS, client, store, **settings)
                judge = AnswerJudge(run, ("lake", "answer_1.md"))
                reply = await judge.ask(QUESTION, ABOUT)
                return reply.value.result, run.usage.total().asked.judgments

    async def replay(server):
        with JudgmentStore(path) as store:
            endpoint = f"openai {server.base_url}"
            named = replace(SETTINGS, replayed_endpoint=endpoint)
            run = CachingJudge(named, None, store)
            judge = AnswerJudge(run, ("lake", "answer_1.md"))
            return (await judge.ask(QUESTION, ABOUT)).value.result

    return ask, replay


async def test_both_rest_on_the_judgment_that_is_stored_first(runs):
    """Both runs have asked and paid; the second reply decides nothing."""
    ask, replay = runs
    with JudgeServer(Undecided(2)) as server:
        (one, asked), (other, asked_too) = await asyncio.gather(ask(server), ask(server))
        replayed = await replay(server)
    assert (len(server.requests), asked, asked_too) == (2, 1, 1)
    assert one is other is replayed


async def test_overwrite_replaces_what_is_stored(runs):
    ask, replay = runs
    with JudgeServer(Undecided(1)) as server:
        assert (await ask(server))[0] is True
        assert (await ask(server, overwrite=True))[0] is False
        assert await replay(server) is False


def misfit(server):
    """Return a judgment on the question that does not fill the template."""
    return judgment(
        key=judgment_key(QUESTION, 1),
        endpoint=f"openai {server.base_url}",
        text='{"answer": "yes"}',
    )


async def test_of_two_that_replace_a_misfit_the_first_reply_counts(runs, tmp_path):
    ask, replay = runs
    with JudgeServer(Undecided(2)) as server:
        with JudgmentStore(tmp_path / "judgments.sqlite3") as store:
            await store.put(misfit(server))
        (one, _), (other, _) = await asyncio.gather(ask(server), ask(server))
        replayed = await replay(server)
    assert len(server.requests) == 2
    assert one is other is replayed


async def test_a_misfit_that_another_stores_first_is_replaced(runs, tmp_path):
    ask, replay = runs

    def reply(_body):
        with JudgmentStore(tmp_path / "judgments.sqlite3") as store:
            store.add([misfit(server)])
        return {"result": False}

    with JudgeServer(reply) as server:
        assert await ask(server) == (False, 1)
        assert await replay(server) is False


async def test_both_get_the_answer_of_a_service_that_is_stored_first(tmp_path):
    path = tmp_path / "judgments.sqlite3"
    request = ServiceRequest("arxiv", "by_id", ["2506.21506"])
    are_asked, answers = asyncio.Barrier(2), count()

    async def ask():
        await are_asked.wait()
        return next(answers)

    async def ask_alone():
        return next(answers)

    async def answered(asked, **settings):
        with JudgmentStore(path) as store:
            client = AsyncOpenAIClient(base_url="http://127.0.0.1:1", api_key="none")
            judge = CachingJudge(SETTINGS, client, store, **settings)
            return await answer_service(judge, request, asked, ("lake", "answer_1.md"))

    one, other = await asyncio.gather(
        answered(ask, overwrite=False), answered(ask, overwrite=False)
    )
    assert one == other
    assert (await answered(ask_alone, overwrite=True))[0] == 2
    assert (await answered(ask, overwrite=False))[0] == 2
