"""A run whose key is refused finds that out by few requests.

One whose prompts are refused goes on.
"""

import asyncio
import re
import threading
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace

import pytest
from projects import QUICK_RETRY, call, entered
from servers.judge_server import (
    VERDICT,
    JudgeServer,
    context_too_long,
    prompt_text,
    rate_limited,
    status,
)

from mind2web2.cli import evaluate_main
from mind2web2.errors import (
    JudgeAccessError,
    JudgeError,
    JudgeUnavailableError,
    JudgeUnusableError,
)
from mind2web2.judge.budget import Budget
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.permit import AnswerLimits
from mind2web2.judge.protocol import QuestionContext
from mind2web2.judge.spec import JudgeSpec
from mind2web2.judge.store import JudgmentStore
from mind2web2.llm_client import LLMClient, retries
from mind2web2.llm_client.chat import ChatRequest
from mind2web2.verification.run_questions import BinaryEvalResult

REQUEST = ChatRequest("o4-mini", [], BinaryEvalResult)
QUOTA = status(429, "You exceeded your current quota", code="insufficient_quota")
BLOCKED = status(403, "request blocked by policy")
AT_ONCE = 3
# After so many answers in a row without any reply, no further request is sent.
ENOUGH = 10


@asynccontextmanager
async def judge_at(server, budget=None):
    """Open a run's judge."""
    with JudgmentStore(None) as store:
        async with LLMClient(
            "openai", True, base_url=server.base_url, api_key="key", retry=QUICK_RETRY
        ) as client:
            yield CachingJudge(JudgeSpec("o4-mini"), client, store, budget=budget)


async def failure_of(run, number, words="", limit=None):
    """Ask a question for one answer; return why there is no reply, ``None`` if there is one."""
    request = replace(REQUEST, messages=[{"role": "user", "content": f"{words} Is it {number}?"}])
    source = ("lake", f"answer_{number}.md")
    try:
        limits = AnswerLimits(limit or asyncio.Semaphore(), lambda: None)
        await run.judgment(request, QuestionContext("verify"), source, limits)
    except JudgeError as error:
        return str(error)
    return None


async def asked(faults, budget=None):
    """Ask for an answer for each of these, one after the other.

    Return how many were sent and what failed.
    """
    with JudgeServer(faults=faults) as server:
        async with judge_at(server, budget) as run:
            errors = [
                error for number in range(len(faults)) if (error := await failure_of(run, number))
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
            run = CachingJudge(JudgeSpec("o4-mini"), client, store)
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


async def test_refusals_and_retries_of_the_client_are_in_the_runs_usage():
    """The run tells what slowed it down."""
    with JudgeServer(faults=[rate_limited(retry_after="0")]) as server:
        async with judge_at(server) as run:
            assert await failure_of(run, 0) is None
            assert run.usage.slowdown.refusals == 1
            assert run.usage.retries.reasons.total() == 1


class SlowReply:
    """A reply that comes when it may."""

    def __init__(self):
        self.is_asked, self.may_come = threading.Event(), threading.Event()

    def __call__(self, _):
        """Return it."""
        self.is_asked.set()
        assert self.may_come.wait(20)
        return VERDICT


async def test_a_reply_to_an_earlier_request_closes_no_circuit():
    slow = SlowReply()

    def fault(body):
        return status(401, "revoked") if "Is it 1" in prompt_text(body) else None

    with JudgeServer(slow, faults=fault) as server:
        async with judge_at(server) as run:
            early = asyncio.create_task(failure_of(run, 0))
            await asyncio.to_thread(slow.is_asked.wait, 20)
            assert "revoked" in await failure_of(run, 1)
            slow.may_come.set()
            assert await early is None
            assert "revoked" in await failure_of(run, 2)
        assert len(server.requests) == 2


@pytest.mark.parametrize("first", [[], [None]], ids=["at first", "later"])
@pytest.mark.parametrize("denial", [status(402, "credit"), BLOCKED, status(404, "no route")])
async def test_what_may_be_about_one_prompt_ends_no_run(first, denial):
    """The run goes on, before the first reply and later.

    A reply makes earlier rejections count no more.
    """
    faults = [
        *first,
        denial,
        None,
        *[denial] * (ENOUGH - 1),
        None,
        *[denial] * (ENOUGH - 1),
        None,
    ]
    sent, errors = await asked(faults)
    assert (sent, len(errors)) == (len(faults), 2 * ENOUGH - 1)


@pytest.mark.parametrize("first", [[], [None]], ids=["at first", "later"])
@pytest.mark.parametrize(
    "denial", [status(402, "credit"), status(403, "no"), status(404, "which?")]
)
async def test_nothing_is_sent_after_rejections_of_many_answers_in_a_row(first, denial):
    """After many refusals in a row the cause is hardly what the answers say."""
    sent, errors = await asked([*first, *[denial] * ENOUGH, None, None])
    assert sent == len(first) + ENOUGH
    assert len(errors) == ENOUGH + 2 and errors[-1] == errors[0]


async def test_one_answer_that_is_rejected_repeatedly_counts_once():
    """Others are asked."""
    with JudgeServer(faults=[BLOCKED] * ENOUGH) as server:
        async with judge_at(server) as run:
            for trial in range(ENOUGH):
                assert "blocked" in await failure_of(run, 0, words=f"Trial {trial}.")
            assert await failure_of(run, 1) is None


async def test_a_spent_budget_is_no_accepted_request():
    budget = Budget(1e-9, "o4-mini")
    faults = [status(404, "which?")] * (ENOUGH - 1)
    with JudgeServer(faults=faults * 2) as server:
        async with judge_at(server) as run:
            for number in range(ENOUGH - 1):
                await failure_of(run, number)
            run.budget = budget
            assert "max_cost" in await failure_of(run, ENOUGH - 1)
            run.budget = None
            await failure_of(run, ENOUGH)
            assert len(server.requests) == ENOUGH
            await failure_of(run, ENOUGH + 1)
            assert len(server.requests) == ENOUGH


async def test_other_failures_open_no_circuit():
    sent, errors = await asked([status(400, "bad parameter"), None])
    assert (sent, len(errors)) == (2, 1)
    sent, errors = await asked([context_too_long(), None])
    assert (sent, len(errors)) == (2, 0)


class EnteredLimit(asyncio.Semaphore):
    """A limit that notes when it was entered."""

    def __init__(self):
        super().__init__()
        self.is_entered = asyncio.Event()

    async def acquire(self):
        """Take the permit."""
        self.is_entered.set()
        return await super().acquire()


async def test_after_rejections_of_many_answers_the_requests_in_flight_decide(monkeypatch):
    """A reply to one of them lets the waiting requests pass."""
    monkeypatch.setattr(retries, "FIRST_WINDOW", ENOUGH + 1)
    slow, all_are_sent = SlowReply(), threading.Barrier(ENOUGH)

    def reply(body):
        return slow(body) if "slow" in prompt_text(body) else VERDICT

    def fault(body):
        if "bad" not in prompt_text(body):
            return None
        all_are_sent.wait(20)
        return BLOCKED

    with JudgeServer(reply, faults=fault) as server:
        async with judge_at(server) as run:
            early = asyncio.create_task(failure_of(run, 0, words="A slow one."))
            await asyncio.to_thread(slow.is_asked.wait, 20)
            bad = (failure_of(run, number, words="A bad one.") for number in range(1, ENOUGH + 1))
            assert all("blocked" in error for error in await asyncio.gather(*bad))
            limit = EnteredLimit()
            other = asyncio.create_task(failure_of(run, 99, limit=limit))
            await limit.is_entered.wait()
            assert len(server.requests) == 1 + ENOUGH
            assert not limit.locked()
            slow.may_come.set()
            assert await asyncio.gather(early, other) == [None, None]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a project in the working folder, and have a key."""
    project = entered(tmp_path, monkeypatch, "wrong-key")
    project.add_script({name: (f"The lake is {name}.", None) for name in ("deep", "cold", "wide")})
    return project


def evaluated(server, *options):
    """Evaluate without pages."""
    words = (
        "--agent_name",
        "bot",
        "--judge_base_url",
        server.base_url,
        "--no_capture",
        *options,
    )
    return call(evaluate_main, *words)


def test_a_wrong_key_costs_the_requests_in_flight(project):
    for number in range(8):
        project.add_answer(f"answer_{number + 1}", f"Text {number}.")
    with JudgeServer(faults=lambda _: status(401, "Incorrect API key")) as server:
        run = evaluated(server, "--max_llm_requests", AT_ONCE, "--max_concurrent_answers", "8")
        assert 1 <= len(server.requests) <= AT_ONCE
    assert run.returncode == 2
    assert run.stderr.endswith("the key is refused, check OPENAI_API_KEY: 401 Incorrect API key\n")


def test_a_wrong_model_costs_a_few_answers_their_first_requests(project):
    """The others send none."""
    for number in range(2 * ENOUGH):
        project.add_answer(f"answer_{number + 1}", f"Text {number}.")
    with JudgeServer(faults=lambda _: status(404, "no such model")) as server:
        run = evaluated(server, "--max_llm_requests", AT_ONCE)
        assert len(server.requests) <= AT_ONCE + ENOUGH - 1
    assert run.returncode == 2
    assert run.stderr.endswith("404 no such model\n")


def test_a_refused_prompt_costs_its_own_answer_its_result(project):
    project.add_answer("answer_1", "A forbidden word.")
    for number in range(2, 5):
        project.add_answer(f"answer_{number}", f"Text {number}.")
    with JudgeServer(
        faults=lambda body: BLOCKED if "forbidden" in prompt_text(body) else None
    ) as server:
        run = evaluated(server, "--max_concurrent_answers", "1")
        results = [len(project.result_paths(f"answer_{number}")) for number in range(1, 5)]
    assert (run.returncode, results) == (1, [0, 1, 1, 1])
    [reason] = re.findall(r"^No result: (.+)$", run.stdout, re.M)
    assert reason.startswith("lake/answer_1.md: ") and reason.endswith(
        "403 request blocked by policy"
    )


def test_a_limit_by_the_minute_that_is_worded_as_a_quota_ends_no_run(project):
    """The request waits as long as the server asks and is sent again."""
    for number in range(3):
        project.add_answer(f"answer_{number + 1}", f"Text {number}.")
    passing = status(
        429,
        "You exceeded your current quota",
        headers={"retry-after": "0"},
        code="RESOURCE_EXHAUSTED",
    )
    with JudgeServer(faults=[None, passing, None, None, passing]) as server:
        run = evaluated(server)
        assert len(server.requests) == 3 * 6 + 2
    assert run.returncode == 0
