"""Components of variance: tasks, runs of a task, and judgments of a run's answer; pure.

The scores are those of a nested random-effects model. Each component is estimated by the method of moments:
the variance of means on one level, less the share of it that the level below explains (Searle, Casella and
McCulloch 1992, chapter 3). An estimate below 0 counts as 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, variance
from typing import Any


@dataclass(frozen=True, slots=True)
class NestedVariance:
    """The components of a score's variance.

    Args:
        tasks: how many there are.
        between_tasks: variance of a task's score over all its possible runs and judgments.
        between_runs: variance that one run adds, with the judge's where each answer was judged once; ``None``
            where no task has several runs.
        between_judgments: variance that one judgment adds; ``None`` where no answer was judged repeatedly.
        runs: of a task: the harmonic mean.
    """

    tasks: int
    between_tasks: float
    between_runs: float | None
    between_judgments: float | None
    runs: float

    def of_mean(self) -> float:
        """Return the variance of the mean over tasks with each answer judged once."""
        below = (self.between_runs or 0.0) + (self.between_judgments or 0.0)
        return (self.between_tasks + below / self.runs) / self.tasks

    def judge_share(self) -> float | None:
        """Return the judge's share of that variance, ``None`` where it is unknown."""
        total = self.of_mean()
        if self.between_judgments is None or not total:
            return None
        return self.between_judgments / self.runs / self.tasks / total

    def summary(self) -> dict[str, Any]:
        """Return the components as JSON values."""
        parts = {
            "between_tasks": self.between_tasks,
            "between_runs": self.between_runs,
            "between_judgments": self.between_judgments,
        }
        return {name: None if value is None else round(value, 6) for name, value in parts.items()}


def nested_variance(scores: Sequence[Sequence[Sequence[float]]]) -> NestedVariance | None:
    """Return the components of scores by task, run and judgment; ``None`` with fewer than two tasks."""
    if len(scores) < 2:
        return None
    judgments = [judged for runs in scores for judged in runs]
    of_judgment = _within(judgments)
    answers = [[fmean(judged) for judged in runs] for runs in scores]
    # The part of each answer's variance that its judgments add.
    noise = [[(of_judgment or 0.0) / len(judged) for judged in runs] for runs in scores]
    repeated = [own for own, values in zip(noise, answers, strict=True) if len(values) > 1]
    of_answer = _within(answers)
    of_run = None
    if of_answer is not None:
        degrees = [len(own) - 1 for own in repeated]
        explained = sum(fmean(own) * df for own, df in zip(repeated, degrees, strict=True)) / sum(degrees)
        of_run = max(0.0, of_answer - explained)
    below = [sum((of_run or 0.0) + value for value in own) / len(own) ** 2 for own in noise]
    of_task = max(0.0, variance(map(fmean, answers)) - fmean(below))
    runs = 1 / fmean(1 / len(own) for own in answers)
    return NestedVariance(len(scores), of_task, of_run, of_judgment, runs)


def _within(groups: Sequence[Sequence[float]]) -> float | None:
    """Return the pooled variance within groups, ``None`` where each has a single value."""
    several = [group for group in groups if len(group) > 1]
    if not several:
        return None
    degrees = [len(group) - 1 for group in several]
    return sum(variance(own) * df for own, df in zip(several, degrees, strict=True)) / sum(degrees)
