"""The check of the judge that an agent's scores rest on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mind2web2.judge.store import CheckRecord, JudgeIdentity, last_check
from mind2web2.judge_check.fitness import failure
from mind2web2.runs.provenance import provenance_in
from mind2web2.runs.results import latest_result
from mind2web2.utils.json_fields import mapping


def failed_check(eval_results_root: Path, agent_name: str) -> str | None:
    """Return in one line that the judge of an agent's newest result failed its check; ``None`` if not."""
    paths = (eval_results_root / agent_name).glob("*/*/results/*.md.json")
    # The stamp leads the name.
    newest = max(paths, key=lambda path: path.name, default=None)
    found = None if newest is None else latest_result(newest.parent)
    check = None if found is None else check_of(eval_results_root, found.content)
    return None if check is None else failure(check)


def check_of(eval_results_root: Path, result: Mapping[str, Any]) -> CheckRecord | None:
    """Return the last check of a result's judge: one made since, else the one that the result names."""
    made_from = provenance_in(result)
    if made_from is not None:
        judge = JudgeIdentity.model_validate(made_from.judge.model_dump(exclude={"provider"}))
        if (check := last_check(eval_results_root, judge)) is not None:
            return check
    try:
        return CheckRecord.model_validate(mapping(result.get("run")).get("judge_check"))
    except ValidationError:
        return None
