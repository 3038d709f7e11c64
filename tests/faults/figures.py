"""The figures that each part of the fault suite reports: how much was tried, what went wrong."""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field, fields


@dataclass(frozen=True)
class Figures:
    """The trials and findings of one part of the fault suite.

    Args:
        part: what was tried, as the report names it: ``"judge faults"``, ``"kill -9 of an
            evaluation"``.
        disturbances: schedules run, moments of a kill, rounds of several processes.
        answers: answers whose scores were compared with those of an undisturbed run.
        without_result: answers that the disturbance left without a result, named with a reason.
        wrong_scores: results that differ from an undisturbed run's in a node's score or status.
        lost_judgments: replies of the judge that had been stored, or ought to have been, and were
            gone.
        judged_twice: stored judgments that were asked again, and answers judged by two processes at
            once.
        half_written_files: files that do not parse or are cut short, and locks or temporary files
            in the way.
        hindrances: anything else that went wrong, a sentence each, with the seed or moment that
            repeats it.
        recovery_s: how long each run took that completed what the disturbance had left undone.
    """

    part: str
    disturbances: int = 0
    answers: int = 0
    without_result: int = 0
    wrong_scores: int = 0
    lost_judgments: int = 0
    judged_twice: int = 0
    half_written_files: int = 0
    hindrances: tuple[str, ...] = ()
    recovery_s: tuple[float, ...] = field(default=(), repr=False)

    @property
    def is_clean(self) -> bool:
        """Tell whether nothing went wrong."""
        counts = (
            self.wrong_scores,
            self.lost_judgments,
            self.judged_twice,
            self.half_written_files,
        )
        return not any(counts) and not self.hindrances

    def in_words(self) -> str:
        """Return the figures in one line."""
        counts = ", ".join(
            f"{each.name.replace('_', ' ')} {getattr(self, each.name)}"
            for each in fields(self)
            if each.default == 0
        )
        times_s = self.recovery_s or (0.0,)
        return (
            f"{self.part}: {counts}, seconds to recover {statistics.median(times_s):.1f}, "
            f"at most {max(times_s):.1f}"
        )


def together(part: str, figures: Iterable[Figures]) -> Figures:
    """Add up the figures of a part's single disturbances."""
    listed = list(figures)
    summed = {
        each.name: sum((getattr(one, each.name) for one in listed), start=each.default)
        for each in fields(Figures)
        if each.name != "part"
    }
    return Figures(part, **summed)
