"""A run whose key is refused finds that out by few requests; one whose prompts are refused goes on."""

import asyncio
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace

import pytest
from projects import QUICK_RETRY
from servers.judge_server import (
    JudgeServer,
    status,
)

from mind2web2.errors import (
    JudgeAccessError,
    JudgeError,
    JudgeUnavailableError,
    JudgeUnusableError,
)
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.permit import AnswerLimits
from mind2web2.judge.protocol import QuestionContext
from mind2web2.judge.settings import JudgeSettings
from mind2web2.judge.store import JudgmentStore
from mind2web2.llm_client import LLMClient
from mind2web2.llm_client.chat import ChatRequest
from mind2web2.verification.messages import BinaryEvalResult

REQUEST = ChatRequest("o4-mini", [], BinaryEvalResult)
QUOTA = status(429, "You exceeded your current quota", code="insufficient_quota")
BLOCKED = status(403, "request blocked by policy")
AT_ONCE = 3
# Of so many answers in a row each was denied a request: then no other is sent.
ENOUGH = 10


@asynccontextmanager
async def judge_at(server, budget=None):
    """Open a run's judge."""
    with JudgmentStore(None) as store:
        async with LLMClient(
            "openai", True, base_url=server.base_url, api_key="key", retry=QUICK_RETRY
        ) as client:
            yield CachingJudge(
                JudgeSettings("openai", "o4-mini"), client, store, budget=budget
            )


async def failure_of(run, number, words="", limit=None):
    """Ask a question for one answer; return why there is no reply, ``None`` if there is one."""
    request = replace(
        REQUEST, messages=[{"role": "user", "content": f"{words} Is it {number}?"}]
    )
    source = ("lake", f"answer_{number}.md")
    try:
        limits = AnswerLimits(limit or asyncio.Semaphore(), lambda: None)
        await run.judgment(request, QuestionContext("verify"), source, limits)
    except JudgeError as error:
        return str(error)
    return None


async def asked(faults, budget=None):
    """Ask for an answer for each of these, one after the other; return how many were sent and what failed."""
    with JudgeServer(faults=faults) as server:
        async with judge_at(server, budget) as run:
            errors = [
                error
                for number in range(len(faults))
                if (error := await failure_of(run, number))
            ]
        assert run.usage.total().asked.requests == len(server.requests)
        return len(server.requests), errors


@pytest.mark.parametrize("denial", [status(401, "bad"), QUOTA])
async def test_nothing_is_sent_after_a_rejection_of_all_requests(denial):
    """Whatever is asked then fails for the same reason."""
    sent, errors = await asked([denial, None, None])
    assert sent == 1
    assert len(errors) == 3 and len(set(errors)) == 1


@pytest.mark.parametrize("denial", [status(401, "revoked"), QUOTA])
async def test_a_key_may_be_refused_in_the_middle_of_a_run(denial):
    """From then on nothing is sent either."""
    sent, errors = await asked([None, denial, None, None])
    assert (sent, len(errors)) == (2, 3)


async def test_a_server_that_is_away_is_looked_for_once():
    """All questions fail for the same reason, until the run is to try again."""
    with JudgeServer() as server:
        port = server.port
        async with judge_at(server) as run:
            address = run.endpoint.split()[-1]
    with JudgmentStore(None) as store:
        async with LLMClient(
            "openai", True, base_url=address, api_key="key", retry=QUICK_RETRY
        ) as client:
            run = CachingJudge(JudgeSettings("openai", "o4-mini"), client, store)
            run.raise_if_unusable()
            errors = {await failure_of(run, number) for number in range(2)}
            assert len(errors) == 1 and address in errors.pop()
            with pytest.raises(JudgeUnusableError) as unusable:
                run.raise_if_unusable()
            with pytest.raises(JudgeAccessError) as denied:
                await run.check_reachable()
            assert str(denied.value) == str(unusable.value)
            assert denied.value.is_for_all
            with JudgeServer(port=port) as server:
                assert await failure_of(run, 0) is not None
                run.try_again()
                assert await failure_of(run, 0) is None
            assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("faults", "is_unusable"),
    [([status(401, "bad")], True), ([None, status(401, "revoked")], False)],
)
async def test_a_judge_that_rejects_all_is_unusable(faults, is_unusable):
    """Unless it judged something before; requests are sent again after the run is to try again."""
    with JudgeServer(faults=faults) as server:
        async with judge_at(server) as run:
            for number in range(3):
                await failure_of(run, number)
            with pytest.raises(JudgeUnusableError) if is_unusable else nullcontext():
                run.raise_if_unusable()
            run.try_again()
            run.raise_if_unusable()
            assert await failure_of(run, 3) is None


async def test_a_judge_that_stays_away_is_an_outage():
    """No further answer is started then."""
    with JudgeServer(faults=lambda _: status(503, "away")) as server:
        async with judge_at(server) as run:
            run.raise_if_out()
            await asyncio.gather(failure_of(run, 0), failure_of(run, 1))
            with pytest.raises(JudgeUnavailableError) as away:
                run.raise_if_out()
    assert away.value.is_outage
