"""What is no verdict: a judge too slow for a script's patience, a machine that fails, work left behind."""

import asyncio
from pathlib import Path

import pytest
from evaluations import started, stored
from pydantic import BaseModel, Field
from scripted_judge import ScriptedJudge

from mind2web2.cli.evaluate_report import cautions
from mind2web2.errors import JudgeError, MachineError, WorkerError
from mind2web2.judge.caching import AnswerJudge, JudgeSettings, RecordedJudge
from mind2web2.judge.direct import ClientProvider
from mind2web2.judge.store import JudgmentStore
from mind2web2.rubric.node import VerificationNode
from mind2web2.runs.answer import AnswerOutcome
from mind2web2.utils.workers import run_in_worker


class SilentJudge:
    """Never answers."""

    async def async_response(self, **_):
        """Wait for ever."""
        await asyncio.Event().wait()


class Named(BaseModel):
    """A template whose field goes by another name outside."""

    name: str | None = Field(None, alias="theName")


async def test_a_verification_that_the_script_stopped_waiting_for_has_no_score():
    """A slow judge must not fail a claim by way of the script's own time limit."""
    evaluator = started(SilentJudge())
    leaf = evaluator.add_leaf("slow", "slow")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(evaluator.verify("claim", leaf), 0.01)
    with pytest.raises(JudgeError, match="stopped waiting for the judge on 'slow'"):
        evaluator.get_summary()
    # Another verdict of the script's own would depend on the judge's speed.
    leaf.decide(1.0, "passed")
    with pytest.raises(JudgeError, match="stopped waiting for the judge on 'slow'"):
        evaluator.get_summary()


async def test_an_extraction_that_the_script_stopped_waiting_for_has_no_score():
    """Likewise."""
    evaluator = started(SilentJudge())
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(evaluator.extract("names", Named, "names"), 0.01)
    with pytest.raises(JudgeError, match="stopped waiting for the judge on 'names'"):
        evaluator.score()


class BrokenMachine:
    """A cache on a machine that is out of file handles."""

    def has(self, _url):
        """Fail as the system does."""
        raise OSError(24, "Too many open files")


async def test_a_machine_that_fails_costs_the_result():
    """It says nothing about the claim."""
    evaluator = started(ScriptedJudge(), cache=BrokenMachine())
    with pytest.raises(MachineError, match="Too many open files"):
        await evaluator.verify("claim", evaluator.add_leaf("a", "a"), "https://a.example")
    with pytest.raises(JudgeError, match="Too many open files"):
        evaluator.get_summary()


def _die():
    import os

    os._exit(3)


async def test_a_worker_that_dies_is_told_from_a_bad_document():
    """So that what rests on it is judged anew next time."""
    with pytest.raises(WorkerError, match="crashed its worker process"):
        await run_in_worker(_die, timeout_s=60)


async def test_an_alias_survives_the_store():
    """A reply of a client of one's own is read back as it was."""
    with JudgmentStore(None) as store:
        client = ScriptedJudge(Named.model_validate({"theName": "Ilvane"}))
        run = RecordedJudge(JudgeSettings("client", "o4-mini"), ClientProvider(client), store)
        value = await started(AnswerJudge(run, "lake", "answer_1.md")).extract("name", Named)
        assert value.name == "Ilvane"


def test_a_score_remembered_before_joining_a_tree_is_not_believed_in_it():
    """Whatever number of changes either tree has seen."""
    part = VerificationNode(id="part", desc="part")
    leaf = VerificationNode(id="leaf", desc="leaf")
    part.add_node(leaf)
    leaf.decide(1.0, "passed")
    assert part.aggregated_score == 1.0
    root = VerificationNode(id="root", desc="root")
    root.add_node(part)
    leaf.decide(0.0, "failed")
    for number in range(12):
        root.desc = f"root {number}"
        assert part.aggregated_score == 0.0


def test_half_a_verdict_set_by_a_script_leaves_the_other_half():
    """What scoring shows in a verdict's place is not part of it."""
    root = VerificationNode(id="root", desc="root", strategy="sequential")
    first, second = (VerificationNode(id=name, desc=name) for name in ("first", "second"))
    root.add_node(first)
    root.add_node(second)
    second.decide(1.0, "passed")
    assert root.aggregated_score == 0.0
    second.status = "passed"
    first.decide(1.0, "passed")
    assert root.aggregated_score == 1.0


@pytest.mark.parametrize(("name", "critical"), [("parent", True), ("child", False)])
def test_making_critical_keeps_the_critical_rule(name, critical):
    """Under a critical node there are critical ones only, also afterwards."""
    nodes = {"parent": VerificationNode(id="parent", desc="", critical=not critical)}
    nodes["child"] = VerificationNode(id="child", desc="", critical=not critical)
    nodes["parent"].add_node(nodes["child"])
    with pytest.raises(ValueError, match="non-critical node 'child' cannot go under critical node 'parent'"):
        nodes[name].critical = critical


async def test_what_lowers_scores_is_said(tmp_path: Path):
    """Pages that could not be had, leaves that an error failed, leaves that nobody decided."""
    evaluator = started(ScriptedJudge(), cache=stored(tmp_path))
    evaluator.add_leaf("forgotten", "forgotten")
    await evaluator.verify("claim", evaluator.add_leaf("cited", "cited"), "https://nowhere.example")
    told = cautions([AnswerOutcome("lake", "answer_1.md", evaluator.get_summary(), None)], "")
    assert told == [
        "unavailable cited pages: 1 (lake 1); claims on them count as failed",
        "lake/answer_1.md: never decided by the script, counted 0: forgotten",
    ]
