"""Limits of requests and answers, and the usage of a run by task."""

import asyncio

import pytest
from evaluations import started
from scripted_judge import ScriptedJudge
from virtual_time import run_virtually

from mind2web2.errors import JudgeError
from mind2web2.judge.usage import RunUsage
from mind2web2.llm_client.chat import Usage
from mind2web2.runs.concurrency import Admission
from mind2web2.scripts.limits import DualSemaphore


class CrowdedJudge:
    """Counts concurrent requests."""

    def __init__(self):
        self.judge, self.now, self.most = ScriptedJudge(), 0, 0

    async def async_response(self, **keywords):
        """Answer after other requests could start."""
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(20):
            await asyncio.sleep(0)
        self.now -= 1
        return await self.judge.async_response(**keywords)


@pytest.mark.parametrize("limit", [1, 3])
@pytest.mark.parametrize(
    "wrapped",
    [
        lambda limit: DualSemaphore(asyncio.Semaphore(5), asyncio.Semaphore(limit)),
        asyncio.Semaphore,
    ],
)
async def test_requests_at_once_are_limited(limit, wrapped):
    judge = CrowdedJudge()
    evaluator = started(judge, global_semaphore=wrapped(limit))
    assert await evaluator.batch_verify([("claim", None, None, None)] * 8) == [True] * 8
    assert judge.most == limit


async def test_without_a_semaphore_nothing_is_limited():
    judge = CrowdedJudge()
    await started(judge).batch_verify([("claim", None, None, None)] * 8)
    assert judge.most == 16


def test_the_pair_keeps_both_limits():
    pair = DualSemaphore("pages", "judge")
    assert (pair.webpage, pair.llm) == ("pages", "judge")
    assert DualSemaphore(webpage_semaphore=1, llm_semaphore=2).llm == 2


async def test_scripts_may_hold_the_pair_around_everything():
    """``async with semaphore:`` takes no permit, so that requests inside are not locked out."""
    pair = DualSemaphore(asyncio.Semaphore(1), asyncio.Semaphore(1))
    async with pair as held:
        assert held is pair
        assert not pair.llm.locked()
        assert await started(global_semaphore=pair).verify("claim", None)


async def test_a_failed_judge_empties_the_queue():
    """Permits are given back, so that other answers go on."""
    limit = asyncio.Semaphore(1)
    evaluator = started(ScriptedJudge([JudgeError("outage")]), global_semaphore=limit)
    with pytest.raises(JudgeError, match="outage"):
        await evaluator.batch_verify([("claim", None, None, None)] * 5)
    assert not limit.locked()
    assert await started(global_semaphore=limit).verify("claim", None)


@pytest.mark.parametrize(
    ("free", "least", "most", "expected"),
    [(1, 2, 5, 5), (0, 2, 5, 2), (1, 3, 2, 3), (0, 9, 9, 6)],
)
def test_further_answers_start_while_requests_are_free(free, least, most, expected):
    """The least number in any case, never more than the most.

    Waiting ones start as others end.
    """

    async def six_answers():
        admission, running, most_at_once = (
            Admission(asyncio.Semaphore(free), least, most),
            0,
            0,
        )

        async def answer():
            nonlocal running, most_at_once
            async with admission:
                running += 1
                most_at_once = max(most_at_once, running)
                await asyncio.sleep(60)
                running -= 1

        await asyncio.gather(*(answer() for _ in range(6)))
        return most_at_once

    assert run_virtually(six_answers())[0] == expected


ONE = Usage(100, 60, 10, judgments=1, requests=2, cost_usd=0.5)


def test_tasks_add_up():
    usage = RunUsage()
    usage.tasks["lake"].asked += ONE
    usage.tasks["lake"].reused += ONE
    usage.tasks["hill"].asked += ONE
    total = usage.total()
    assert total.asked == Usage(200, 120, 20, judgments=2, requests=4, cost_usd=1.0)
    assert total.reused == ONE


def test_one_unknown_price_makes_the_sum_unknown():
    usage = RunUsage()
    usage.tasks["lake"].asked += Usage(cost_usd=None)
    usage.tasks["hill"].asked += ONE
    assert usage.total().asked.cost_usd is None
    assert usage.total().as_json()["asked"]["cost_usd"] is None
