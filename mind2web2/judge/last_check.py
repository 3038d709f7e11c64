"""The last check of a judge, as a file beside the results."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from mind2web2 import __version__
from mind2web2.errors import ResultWriteError
from mind2web2.judge.judgment import JudgeIdentity
from mind2web2.utils.files import read_regular_file, write_whole
from mind2web2.utils.text import percent

log = logging.getLogger(__name__)

# The last checks of judges stand among the folders of agents, whose names do not begin with a dot.
CHECKS_FOLDER = ".judge_checks"


class CheckRecord(BaseModel):
    """A judge's accuracy on the labelled set.

    Args:
        judge: ``None`` in a result, which names its judge itself.
        set_seed: by which the set was drawn; ``None`` in checks of set 1, which had one seed.
        cases: to which the judge replied; a sample is less than the whole set.
        claims_low: the lower end of the 95% interval on claims alone, which a coin gets right half
            the time.
        version: of this package, whose prompts were used.
    """

    model_config = ConfigDict(frozen=True)

    judge: JudgeIdentity | None = None
    set_version: int
    set_seed: int | None = None
    set_digest: str
    is_whole_set: bool
    cases: int
    accuracy: float
    low: float
    high: float
    claims_low: float | None = None
    version: str = __version__
    checked: str

    def __str__(self) -> str:
        """Return the check in words."""
        cases = "cases" if self.is_whole_set else "cases, a sample"
        seed = "" if self.set_seed is None else f" with seed {self.set_seed}"
        right = percent(self.accuracy)
        return (
            f"{right} right ({percent(self.low)} to {percent(self.high)}) of {self.cases} {cases}, "
            f"set {self.set_version}{seed}, {self.checked[:10]}"
        )


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
