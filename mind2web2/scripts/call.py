"""The arguments that a script is called with, and the result that it has to return."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from mind2web2.errors import EvalScriptError
from mind2web2.rubric.verdicts import is_score
from mind2web2.utils.api_misuse import script_api


@dataclass(frozen=True)
class ScriptCall:
    """The arguments of a script, beside client, cache and logger.

    Args:
        script_sha256: of the script that is meant.
        model: the run's, whatever the script does with it.
    """

    script_path: Path
    script_sha256: str
    agent_name: str
    answer_name: str
    answer: str
    model: str


@script_api
class DualSemaphore:
    """The limits that a script receives.

    ``async with`` on the pair itself holds neither permit: every request inside enters its own
    limit.
    """

    def __init__(self, webpage_semaphore: Any, llm_semaphore: Any) -> None:
        self.webpage = webpage_semaphore
        self.llm = llm_semaphore

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None


def checked_result(result: Any, path: Path) -> dict[str, Any]:
    """Return what a script returned if it is a result (eval-scripts.md, "Summary").

    Raises:
        EvalScriptError: it is not; the text says why.
    """
    if not isinstance(result, dict):
        raise EvalScriptError(
            f"script {path.name} returned {type(result).__name__}; expected evaluator.get_summary()"
        )
    score = result.get("final_score")
    if not is_score(score):
        raise EvalScriptError(
            f"script {path.name} returned final_score {score!r}; expected a number from 0 to 1"
        )
    try:
        json.dumps(result, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise EvalScriptError(f"script {path.name} returned what is not JSON: {error}") from error
    return result
