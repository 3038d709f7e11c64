"""Concurrent verifications: a replay makes the same skips as the recorded run."""

import asyncio

import pytest
from evaluations import started

from mind2web2.judge.answer_judge import AnswerJudge
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.client_judge import ClientProvider
from mind2web2.judge.settings import JudgeSettings
from mind2web2.judge.store import JudgmentStore
from mind2web2.verification.extractor import BinaryEvalResult

SETTINGS = JudgeSettings("client", "o4-mini")


class ByClaim:
    """Supports every claim but the wrong one."""

    async def async_response(self, *, messages, **_):
        """Answer a verification."""
        return BinaryEvalResult(reasoning="", result="wrong claim" not in str(messages))


async def statuses(judge, *, gate_decides_first):
    """Verify a gate and a dependent leaf concurrently, either of them first."""
    evaluator = started(AnswerJudge(judge, "lake", "answer_1.md"))
    gate, dependent = (evaluator.add_leaf(name, name) for name in ("gate", "dependent"))
    go_on = asyncio.Event()

    async def first(*arguments, **keywords):
        await evaluator.verify(*arguments, **keywords)
        go_on.set()

    async def second(*arguments, **keywords):
        await go_on.wait()
        await evaluator.verify(*arguments, **keywords)

    early, late = (first, second) if gate_decides_first else (second, first)
    await asyncio.gather(
        early("wrong claim", gate), late("claim", dependent, extra_prerequisites=[gate])
    )
    return evaluator.find_node("gate").status, evaluator.find_node("dependent").status


@pytest.mark.parametrize(
    ("gate_decides_first", "expected"),
    [(False, ("failed", "passed")), (True, ("failed", "skipped"))],
)
async def test_a_replay_makes_the_skips_of_the_run(gate_decides_first, expected):
    """Whichever of the two happens to be decided first this time."""
    with JudgmentStore(None) as store:
        live = CachingJudge(SETTINGS, ClientProvider(ByClaim()), store)
        assert await statuses(live, gate_decides_first=gate_decides_first) == expected
        for order in (True, False):
            replay = CachingJudge(SETTINGS, None, store)
            assert await statuses(replay, gate_decides_first=order) == expected


async def test_sequential_verifications_need_no_record():
    """It is the same in every run."""
    with JudgmentStore(None) as store:
        judge = CachingJudge(SETTINGS, ClientProvider(ByClaim()), store)
        evaluator = started(AnswerJudge(judge, "lake", "answer_1.md"))
        gate, dependent = (
            evaluator.add_leaf(name, name) for name in ("gate", "dependent")
        )
        await evaluator.verify("wrong claim", gate)
        await evaluator.verify("claim", dependent, extra_prerequisites=[gate])
        assert {judgment.purpose for judgment in store.all()} == {"verify"}
