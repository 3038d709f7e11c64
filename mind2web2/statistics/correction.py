"""Correct a judge's mean score by better verdicts on a part of the answers; pure.

The interval of *these tasks* holds the score that better verdicts on all the same answers would
give. That of *tasks at large* holds the score over all tasks of the kind, so that it adds the
choice of the tasks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, variance

from mind2web2.statistics.uncertainty import (
    LEVEL,
    MIN_TASKS,
    Interval,
    none_seen,
    student_quantile,
)

Z = NormalDist().inv_cdf((1 + LEVEL) / 2)
# Sums of the same numbers in another order differ by less.
NOISE = 1e-9


@dataclass(frozen=True, slots=True)
class CorrectedMean:
    """A mean over tasks by the judge, and as labels correct it.

    Args:
        by_task: values with the corrected mean as their mean, to first order each task's share of
            it.
        below: how far the score that all labels would give may lie below the value, at ``LEVEL``.
        above: likewise above.
        standard_error: of the value, as an estimate of that score.
        labels: how many answers are in the sample.
        population: how many answers it is a sample of.
        labelled_tasks: the number of tasks in the sample.
    """

    raw_by_task: Mapping[str, float]
    by_task: Mapping[str, float]
    below: float
    above: float
    standard_error: float
    labels: int
    population: int
    labelled_tasks: int

    @property
    def raw(self) -> float:
        """Return the mean by the judge."""
        return fmean(self.raw_by_task.values())

    @property
    def estimate(self) -> float:
        """Return the corrected mean."""
        return min(1.0, max(0.0, fmean(self.by_task.values())))

    @property
    def is_enough(self) -> bool:
        """Tell whether the sample has enough tasks for any statement."""
        return self.labelled_tasks >= MIN_TASKS or self.labels == self.population

    @property
    def these_tasks(self) -> Interval | None:
        """Return the interval of the score that labels of all these answers would give."""
        return self._interval(*self.reach) if self.is_enough else None

    @property
    def tasks_at_large(self) -> Interval | None:
        """Return the interval of that score over all tasks of the kind."""
        if not self.is_enough or len(self.by_task) < MIN_TASKS:
            return None
        return self._interval(
            *_with_choice_of_tasks([*self.by_task.values()], self.reach, self.standard_error)
        )

    @property
    def reach(self) -> tuple[float, float]:
        """Return how far the interval of these tasks reaches below and above."""
        return self.below, self.above

    def _interval(self, below: float, above: float) -> Interval:
        return Interval(max(0.0, self.estimate - below), min(1.0, self.estimate + above))

    @property
    def to_halve(self) -> int:
        """Return how many more answers halve the interval of these tasks."""
        return self.more_wanted(max(self.reach) / 2)

    def more_wanted(self, reach: float) -> int:
        """Return how many more answers bring the interval to plus or minus ``reach``."""
        reached = max(self.reach)
        share_left = 1 - self.labels / self.population
        if reached <= reach or not self.labels or not share_left:
            return 0
        # The squared error is in proportion to 1 / labels - 1 / population.
        needed = (1 / self.labels - 1 / self.population) * (
            reach / reached
        ) ** 2 + 1 / self.population
        return math.ceil(1 / needed) - self.labels


def _with_choice_of_tasks(
    by_task: Sequence[float], reach: tuple[float, float], standard_error: float
) -> tuple[float, float]:
    """Return how far the interval of tasks at large reaches below and above."""
    tasks = len(by_task)
    if max(by_task) - min(by_task) > NOISE:
        quantile = student_quantile((1 + LEVEL) / 2, tasks - 1)
        squared = quantile**2 * variance(by_task) / tasks
    else:
        # Tasks that are all alike show no spread, though others may be unlike them.
        squared = none_seen(tasks) ** 2
    # The spread of the tasks has the error of the labels already, but for errors that no label
    # shows.
    seen = (Z * standard_error) ** 2
    unseen = [max(0.0, side**2 - seen) for side in reach]
    below, above = (math.sqrt(squared + each) for each in unseen)
    return below, above


@dataclass(frozen=True, slots=True)
class CorrectedDifference:
    """The difference of two corrected means over the same tasks: the second minus the first.

    Args:
        value: ``None`` where one of the samples has too few tasks.
    """

    raw: float
    value: float | None
    these_tasks: Interval | None
    tasks_at_large: Interval | None


def corrected_difference(first: CorrectedMean, second: CorrectedMean) -> CorrectedDifference:
    """Return the difference over the same tasks, with tasks at large paired.

    Raises:
        ValueError: the tasks differ.
    """
    if first.by_task.keys() != second.by_task.keys():
        raise ValueError("the tasks differ")
    raw = second.raw - first.raw
    if not (first.is_enough and second.is_enough):
        return CorrectedDifference(raw, None, None, None)
    by_task = [second.by_task[task] - value for task, value in first.by_task.items()]
    value = fmean(by_task)
    below = math.hypot(second.reach[0], first.reach[1])
    above = math.hypot(second.reach[1], first.reach[0])
    these = Interval(max(-1.0, value - below), min(1.0, value + above))
    large = None
    if len(by_task) >= MIN_TASKS:
        error = math.hypot(first.standard_error, second.standard_error)
        less, more = _with_choice_of_tasks(by_task, (below, above), error)
        large = Interval(max(-1.0, value - less), min(1.0, value + more))
    return CorrectedDifference(raw, value, these, large)
