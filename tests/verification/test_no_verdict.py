"""A slow judge, a failing machine and open work are not verdicts.

A slow judge takes longer than a script's time limit.
"""

import asyncio

import pytest
from evaluations import started
from pydantic import BaseModel, Field
from scripted_judge import ScriptedJudge

from mind2web2.errors import JudgeError, WorkerError
from mind2web2.judge.answer_judge import AnswerJudge
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.client_judge import ClientProvider
from mind2web2.judge.spec import JudgeSpec
from mind2web2.judge.store import JudgmentStore
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
    evaluator = started(SilentJudge())
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(evaluator.extract("names", Named, "names"), 0.01)
    with pytest.raises(JudgeError, match="stopped waiting for the judge on 'names'"):
        evaluator.score()


def _die():
    import os

    os._exit(3)


async def test_a_worker_that_dies_differs_from_a_damaged_document():
    with pytest.raises(WorkerError, match="crashed its worker process"):
        await run_in_worker(_die, timeout_s=60)


async def test_an_alias_survives_the_store():
    """A reply of a client of one's own is read back as it was."""
    with JudgmentStore(None) as store:
        client = ScriptedJudge(Named.model_validate({"theName": "Ilvane"}))
        run = CachingJudge(JudgeSpec("o4-mini", provider="client"), ClientProvider(client), store)
        value = await started(AnswerJudge(run, ("lake", "answer_1.md"))).extract("name", Named)
        assert value.name == "Ilvane"
