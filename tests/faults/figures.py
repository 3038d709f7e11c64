"""What a part of the fault suite hands to the report: how much was tried, and what went wrong."""

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Figures:
    """What one part of the fault suite tried and found.

    Args:
        part: what was tried, as the report names it: ``"judge faults"``, ``"kill -9 of an evaluation"``.
        disturbances: schedules run, moments of a kill, rounds of several processes.
        answers: answers whose scores were compared with those of an undisturbed run.
        without_result: answers that the disturbance left without a result, named with a reason.
        wrong_scores: results that differ from an undisturbed run's in a node's score or status.
        lost_judgments: replies of the judge that had been stored, or ought to have been, and were gone.
        judged_twice: stored judgments that were asked again, and answers judged by two processes at once.
        half_written_files: files that do not parse or are cut short, and locks or temporary files in the way.
        hindrances: anything else that went wrong, a sentence each, with the seed or moment that repeats it.
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
        counts = (self.wrong_scores, self.lost_judgments, self.judged_twice, self.half_written_files)
        return not any(counts) and not self.hindrances


def together(part: str, figures: Iterable[Figures]) -> Figures:
    """Add up the figures of a part's single disturbances."""
    listed = list(figures)
    return Figures(
        part,
        disturbances=sum(one.disturbances for one in listed),
        answers=sum(one.answers for one in listed),
        without_result=sum(one.without_result for one in listed),
        wrong_scores=sum(one.wrong_scores for one in listed),
        lost_judgments=sum(one.lost_judgments for one in listed),
        judged_twice=sum(one.judged_twice for one in listed),
        half_written_files=sum(one.half_written_files for one in listed),
        hindrances=tuple(hindrance for one in listed for hindrance in one.hindrances),
        recovery_s=tuple(seconds for one in listed for seconds in one.recovery_s),
    )
