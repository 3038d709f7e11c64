"""The last check of a judge, as a file beside the results."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

from pydantic import ValidationError

from mind2web2.errors import ResultWriteError
from mind2web2.judge.record import CheckRecord, JudgeIdentity
from mind2web2.utils.files import read_regular_file, write_whole

log = logging.getLogger(__name__)

# The last checks of judges stand among the folders of agents, whose names do not begin with a dot.
CHECKS_FOLDER = ".judge_checks"


def record_check(results_root: Path, judge: JudgeIdentity, record: CheckRecord) -> None:
    """Keep a check; a sample replaces no check of the whole set.

    Raises:
        ResultWriteError: the folder cannot be written.
    """
    earlier = last_check(results_root, judge)
    if (
        earlier
        and earlier.set_version == record.set_version
        and earlier.is_whole_set > record.is_whole_set
    ):
        return
    path = _check_path(results_root, judge)
    try:
        write_whole(path, record.model_dump_json(indent=2))
    except OSError as error:
        raise ResultWriteError.at(path, error) from error


def last_check(results_root: Path, judge: JudgeIdentity) -> CheckRecord | None:
    """Return the last check of a judge, ``None`` where there is none."""
    path = _check_path(results_root, judge)
    try:
        return CheckRecord.model_validate_json(read_regular_file(path))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValidationError) as error:
        log.warning(
            "record of a judge's check cannot be read path=%s error=%s",
            path,
            type(error).__name__,
        )
        return None


def _check_path(results_root: Path, judge: JudgeIdentity) -> Path:
    return results_root / CHECKS_FOLDER / f"{check_file_stem(judge)}.json"


def check_file_stem(judge: JudgeIdentity) -> str:
    """Return the name of the files that keep a judge's checks."""
    return hashlib.sha256(judge.model_dump_json().encode()).hexdigest()[:32]
