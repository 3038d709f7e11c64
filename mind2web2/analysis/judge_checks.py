"""The check of the judge that an agent's scores rest on."""

from __future__ import annotations

from pathlib import Path

from mind2web2.judge.check_record import CheckRecord, last_check
from mind2web2.judge.record import JudgeIdentity
from mind2web2.results.result_file import ResultFile
from mind2web2.results.stored_results import RESULT_FILES, latest_result


def failed_check(eval_results_root: Path, agent_name: str) -> str | None:
    """Return in one line that the judge of an agent's newest result failed its check.

    ``None`` if not.
    """
    paths = (eval_results_root / agent_name).glob(f"*/*/results/{RESULT_FILES}")
    # The stamp leads the name.
    newest = max(paths, key=lambda path: path.name, default=None)
    result = None if newest is None else latest_result(newest.parent)
    check = None if result is None else check_of(eval_results_root, result.content)
    return None if check is None else check.failure


def check_of(eval_results_root: Path, result: ResultFile) -> CheckRecord | None:
    """Return the last check of a result's judge.

    It is one made since, or else the one that the result names.
    """
    made_from = result.provenance
    if made_from is not None:
        judge = JudgeIdentity.model_validate(made_from.judge.model_dump(exclude={"provider"}))
        if (check := last_check(eval_results_root, judge)) is not None:
            return check
    return result.run.judge_check
