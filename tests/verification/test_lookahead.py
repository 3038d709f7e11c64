"""Lookahead: claims behind undecided gates are asked about at once; only time and requests differ."""

import asyncio

import pytest
from projects import ClaimJudge, Project, evaluate

from mind2web2.scheduling.options import ExecutionOptions

BODY = (
    "gate = evaluator.add_leaf('gate', 'd', critical=True)\n"
    "await evaluator.verify('gate', gate)\n"
    "for name in ('first', 'second'):\n"
    "    await evaluator.verify(name, evaluator.add_leaf(name, 'd'))\n"
    "return evaluator.get_summary()\n"
)


async def outcome(folder, lookahead, gate_holds):
    """Return result and claims asked of a script with two claims behind a gate, which is decided last."""
    project = Project(folder / str(lookahead))
    project.add_answer()
    project.add_script_body(BODY)
    all_are_asked, asked = asyncio.Event(), []

    async def verdict(claim):
        if claim != "gate":
            asked.append(claim)
            if len(asked) == 4:
                all_are_asked.set()
        elif lookahead:
            await all_are_asked.wait()
        return gate_holds or claim != "gate"

    judge = ClaimJudge(verdict)
    order = ExecutionOptions(lookahead=lookahead)
    [done] = await evaluate(project, judge, order=order)
    assert done.reason is None
    return done.result.document, judge.claims


@pytest.mark.parametrize(
    ("gate_holds", "more"), [(True, set()), (False, {"first", "second"})]
)
async def test_results_are_equal_and_the_requests_are_sent_at_once(
    tmp_path, gate_holds, more
):
    """Where the gate fails, the others were asked for nothing, and the result does not tell."""
    expected, without = await outcome(tmp_path, False, gate_holds)
    found, claims = await outcome(tmp_path, True, gate_holds)
    for part in ("final_score", "eval_breakdown", "judge_usage"):
        assert found[part] == expected[part]
    assert set(claims) - set(without) == more
    assert sorted(claims) == ["first", "first", "gate", "gate", "second", "second"]


async def test_only_one_level_of_undecided_gates_is_asked_beyond(tmp_path):
    """The deeper a claim is, the more probably it is skipped."""
    project = Project(tmp_path)
    project.add_answer()
    project.add_script_body(
        "before = None\n"
        "for name in ('first', 'second', 'third'):\n"
        "    leaf = evaluator.add_leaf(name, 'd')\n"
        "    await evaluator.verify(name, leaf, extra_prerequisites=before)\n"
        "    before = leaf\n"
        "return evaluator.get_summary()\n"
    )
    is_second_asked, asked_before_first = asyncio.Event(), []

    async def verdict(claim):
        if claim == "second":
            is_second_asked.set()
        elif claim == "first":
            await is_second_asked.wait()
            asked_before_first.extend(judge.claims)
        return True

    judge = ClaimJudge(verdict)
    order = ExecutionOptions(lookahead=True)
    [done] = await evaluate(project, judge, order=order)
    assert done.result.document["final_score"] == 1
    assert "third" in judge.claims
    assert "third" not in asked_before_first
