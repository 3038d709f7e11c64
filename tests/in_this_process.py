"""Scripts in the test's process, beside the run's judge and pages: what processes of their own must equal."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from mind2web2.errors import EvalScriptError
from mind2web2.judge.answer_judge import AnswerJudge
from mind2web2.runs import answer
from mind2web2.scheduling.deferral import guarded
from mind2web2.scheduling.options import execution_options
from mind2web2.scripts.run import script_result


@guarded
class ClientHere(AnswerJudge):
    """The run's judge as the client of a script beside it."""

    def end(self) -> None:
        """Ask nothing more, for tasks that the script left running after its evaluation."""
        self.fail(EvalScriptError("the evaluation is over"))


async def result_here(call, task_id, cache, run, _isolation, logger):
    """Return what ``isolated_result`` returns, without the inputs that only a script's process records."""
    judge = ClientHere(run.judge, task_id, call.answer_name, run.limits.llm)
    with execution_options(run.execution):
        result = await script_result(call, judge, cache, logger)
    return result, judge.ledger, None


@contextmanager
def scripts_here() -> Iterator[None]:
    """Run scripts in this process in the block."""
    with patch.object(answer, "isolated_result", result_here):
        yield


def without_inputs(result: dict) -> dict:
    """Return a result without the inputs that only a script's process records."""
    return {**result, "provenance": {**result["provenance"], "inputs": None}}
