"""Scripts in the test's process, beside the run's judge and pages: what processes of their own must equal."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from mind2web2.judge.answer_judge import AnswerJudge
from mind2web2.runs import answer
from mind2web2.scheduling.options import execution_options
from mind2web2.scripts.inputs import ScriptInputs
from mind2web2.scripts.run import script_result


async def result_here(call, task_id, cache, run, _isolation, logger):
    """Return what ``isolated_result`` returns, without the inputs that only a script's process records."""
    judge = AnswerJudge(run.judge, task_id, call.answer_name, run.limits.llm)
    with execution_options(run.execution):
        result = await script_result(call, judge, cache, logger)
    return result, judge.ledger, ScriptInputs()


@contextmanager
def scripts_here() -> Iterator[None]:
    """Run scripts in this process in the block."""
    with patch.object(answer, "isolated_result", result_here):
        yield


def without_inputs(result: dict) -> dict:
    """Return a result without the inputs that only a script's process records."""
    return {**result, "provenance": {**result["provenance"], "inputs": None}}
