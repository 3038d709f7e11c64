"""An agent's corrected score as it is published, and the files on which it rests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from mind2web2.statistics.uncertainty import Interval
from mind2web2.utils.text import counted, percent

SAMPLE_NAME = "sample.json"


DIGITS = 6


class Ends(BaseModel):
    """The ends of an interval as ``--json`` prints them."""

    model_config = ConfigDict(frozen=True)

    low: float
    high: float

    @classmethod
    def of(cls, interval: Interval | None) -> Ends | None:
        """Return the ends of an interval."""
        if interval is None:
            return None
        return cls(low=round(interval.low, DIGITS), high=round(interval.high, DIGITS))


class CorrectionFigures(BaseModel):
    """An agent's corrected score, or the reason why there is none, as ``--json`` prints it.

    Args:
        by: who corrects.
        raw: partial completion by the judge.
        sampled: the number of answers in the sample, of so many.
        to_halve: how many more answers halve the interval of these tasks.
        weight_of_judge: of the judge's scores in the corrected one.
        if_undecidable: the corrected score with undecidable leaves as not supported, and as
            supported.
        if_labels_are_wrong: the corrected score if one label in twenty is wrong; ``None`` without
            labels.
    """

    model_config = ConfigDict(frozen=True)

    by: str
    raw: float
    corrected: float | None = None
    these_tasks: Ends | None = None
    tasks_at_large: Ends | None = None
    sampled: int = 0
    of: int
    to_halve: int | None = None
    weight_of_judge: float | None = None
    if_undecidable: tuple[float, float] | None = None
    if_labels_are_wrong: float | None = None
    reason: str | None = None

    def lines(self) -> Iterator[str]:
        """Yield the raw score and the corrected one with its intervals.

        Where there is not a corrected score, the reason stands in its place.
        """
        raw = f"Partial completion by the judge {percent(self.raw)}"
        if self.reason is not None:
            yield f"{raw}, not corrected by {self.by}: {self.reason}."
            return
        if self.corrected is None:
            yield f"{raw}, corrected by {self.by}: unknown with fewer than six tasks."
            return
        yield (
            f"{raw}, corrected by {self.by}: {percent(self.corrected)}; 95% interval for these tasks "
            f"{_ends(self.these_tasks)}, for tasks at large {_ends(self.tasks_at_large)}."
        )
        if self.to_halve:
            yield (
                "To halve the interval for these tasks, judge "
                f"{counted(self.to_halve, 'more answer')}."
            )
        if self.if_undecidable is not None:
            low, high = self.if_undecidable
            yield (
                f"If all undecidable leaves were not supported, it would be {percent(low)}; if all "
                f"were supported, {percent(high)}."
            )
        if self.if_labels_are_wrong is not None:
            wrong = percent(self.if_labels_are_wrong)
            yield (
                f"If one label in twenty is wrong, the corrected score is about {wrong}. The "
                "intervals do not include this."
            )


def _ends(ends: Ends | None) -> str:
    return "unknown" if ends is None else f"{percent(ends.low)} to {percent(ends.high)}"


@dataclass(frozen=True, slots=True)
class CorrectionRoots:
    """The folders of results, labels and answers that were judged again."""

    eval_results: Path
    audits: Path
    rejudged: Path


def correcting_files(roots: CorrectionRoots, agent: str) -> list[Path]:
    """Return the files on which an agent's corrected score rests beside its results."""
    samples = (folder / agent / SAMPLE_NAME for folder in roots.rejudged.glob("*/1"))
    labels = (roots.audits / agent).glob("*.jsonl")
    return [*sorted(labels), *sorted(path for path in samples if path.is_file())]
