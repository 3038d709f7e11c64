"""The check of a judge on the labelled set: its figures, its verdict, and its file."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from mind2web2 import __version__
from mind2web2.errors import ResultWriteError
from mind2web2.judge.record import JudgeIdentity
from mind2web2.utils.files import read_regular_file, write_whole
from mind2web2.utils.text import percent

log = logging.getLogger(__name__)

# The last checks of judges are kept among the folders of agents, whose names do not begin with a
# dot.
_CHECKS_FOLDER = ".judge_checks"
# Below it, a difference between agents shrinks to less than 80%, and takes over 1.5 times as many
# tasks.
LEAST_ACCURACY = 0.9
# A check of fewer cases leaves open whether the judge reaches it.
_LEAST_LOW = 0.8
# Half of the labelled claims are true.
_COIN = 0.5

Fitness = Literal["guessing", "too weak", "unclear", "fit"]
_VERDICTS: dict[Fitness, str] = {
    "guessing": "No better than guessing: do not use this judge.",
    "too weak": f"Too weak: less than {LEAST_ACCURACY:.0%} right. Do not rest a comparison of "
    "agents on this judge.",
    "unclear": f"Unclear whether {LEAST_ACCURACY:.0%} are right: check more cases, or another "
    "judge.",
    "fit": f"Enough to compare agents ({LEAST_ACCURACY:.0%} right); docs/trust.md says what other "
    "decisions need.",
}


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

    @property
    def fitness(self) -> Fitness:
        """Say whether the judge is good enough for scores (docs/trust.md).

        A judge fails where the 95% interval of its accuracy ends below ``LEAST_ACCURACY``; it
        guesses where its accuracy on claims, too, may be that of a coin.
        """
        if self.high < LEAST_ACCURACY:
            low = self.low if self.claims_low is None else min(self.low, self.claims_low)
            return "guessing" if low <= _COIN else "too weak"
        is_shown = self.accuracy >= LEAST_ACCURACY and self.low >= _LEAST_LOW
        return "fit" if is_shown else "unclear"

    @property
    def verdict(self) -> str:
        """Return the sentence that ends a check."""
        return f"Verdict: {_VERDICTS[self.fitness]}"

    @property
    def failure(self) -> str | None:
        """Return in one line that the judge failed its check; ``None`` if it did not."""
        if self.fitness not in ("guessing", "too weak"):
            return None
        right = percent(self.accuracy)
        interval = f"{percent(self.low)} to {percent(self.high)}"
        share = f"{right} right ({interval}) on the labelled set"
        least = f"{LEAST_ACCURACY:.0%} is the least"
        how = "no better than guessing" if self.fitness == "guessing" else least
        return (
            f"the judge failed its check: {share} on {self.checked[:10]}, {how}; do not trust these "
            "scores (docs/trust.md)"
        )

    @staticmethod
    def folder(results_root: Path) -> Path:
        """Return the folder of the checks of judges, beside the results."""
        return results_root / _CHECKS_FOLDER

    def keep(self, results_root: Path, judge: JudgeIdentity) -> None:
        """Write the check beside the results; a sample replaces no check of the whole set.

        Raises:
            ResultWriteError: the folder cannot be written.
        """
        earlier = last_check(results_root, judge)
        if (
            earlier
            and earlier.set_version == self.set_version
            and earlier.is_whole_set > self.is_whole_set
        ):
            return
        path = _check_path(results_root, judge)
        with ResultWriteError.unable_to(f"write to {path}"):
            write_whole(path, self.model_dump_json(indent=2))


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
    return CheckRecord.folder(results_root) / f"{check_file_stem(judge)}.json"


def check_file_stem(judge: JudgeIdentity) -> str:
    """Return the name of the files that keep a judge's checks."""
    return hashlib.sha256(judge.model_dump_json().encode()).hexdigest()[:32]
