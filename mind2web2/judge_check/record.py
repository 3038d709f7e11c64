"""The last check of each judge, kept beside the results, so that a result can name that of its judge."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from mind2web2 import __version__
from mind2web2.errors import ResultWriteError
from mind2web2.judge.store import JudgeIdentity
from mind2web2.utils.files import read_regular_file, write_whole

log = logging.getLogger(__name__)

# Among the folders of agents, whose names do not begin with a dot.
FOLDER = ".judge_checks"


class CheckRecord(BaseModel):
    """A judge's accuracy on the labelled set.

    Args:
        judge: ``None`` in a result, which names its judge itself.
        cases: to which the judge replied; a sample is less than the whole set.
        version: of this package, whose prompts were used.
    """

    model_config = ConfigDict(frozen=True)

    judge: JudgeIdentity | None = None
    set_version: int
    set_digest: str
    is_whole_set: bool
    cases: int
    accuracy: float
    low: float
    high: float
    version: str = __version__
    checked: str


def record_check(results_root: Path, judge: JudgeIdentity, record: CheckRecord) -> None:
    """Keep a check; a sample replaces no check of the whole set.

    Raises:
        ResultWriteError: the folder cannot be written.
    """
    earlier = last_check(results_root, judge)
    if earlier and earlier.set_version == record.set_version and earlier.is_whole_set > record.is_whole_set:
        return
    path = _path(results_root, judge)
    try:
        write_whole(path, record.model_dump_json(indent=2))
    except OSError as error:
        raise ResultWriteError(f"cannot write {path}: {error.strerror}") from error


def last_check(results_root: Path, judge: JudgeIdentity) -> CheckRecord | None:
    """Return the last check of a judge, ``None`` where there is none."""
    path = _path(results_root, judge)
    try:
        return CheckRecord.model_validate_json(read_regular_file(path))
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        log.warning("record of a judge's check cannot be read path=%s error=%s", path, type(error).__name__)
        return None


def check_text(result: Mapping[str, Any]) -> str | None:
    """Return the judge's check that a result names, in words; ``None`` where it names none."""
    run = result.get("run")
    try:
        found = CheckRecord.model_validate(run.get("judge_check") if isinstance(run, Mapping) else None)
    except ValidationError:
        return None
    cases = "cases" if found.is_whole_set else "cases, a sample"
    return (
        f"{found.accuracy:.1%} right ({found.low:.1%} to {found.high:.1%}) of {found.cases} {cases}, "
        f"set {found.set_version}, {found.checked[:10]}"
    )


def _path(results_root: Path, judge: JudgeIdentity) -> Path:
    name = hashlib.sha256(judge.model_dump_json().encode()).hexdigest()[:32]
    return results_root / FOLDER / f"{name}.json"
