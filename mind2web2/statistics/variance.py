"""The components of a score's variance: between tasks, runs of a task, and judgments of an answer.

Pure.

The components are those of a nested random-effects model: tasks, runs of a task, judgments of a
run's answer. Each is estimated by the method of moments: the variance of means on one level, less
the share of it that the level below explains (Searle, Casella and McCulloch 1992, chapter 3). An
estimate below 0 counts as 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from mind2web2.statistics.uncertainty import rounded

_VARIANCE_DIGITS = 6


@dataclass(frozen=True, slots=True)
class VarianceFigures:
    """The components of a score's variance as they are published, ``None`` where one is unknown."""

    between_tasks: float
    between_runs: float | None
    between_judgments: float | None


@dataclass(frozen=True, slots=True)
class NestedVariance:
    """The components of a score's variance.

    Args:
        tasks: how many there are.
        between_tasks: variance of a task's score over all its possible runs and judgments.
        between_runs: variance that one run adds, with the judge's where each answer was judged
            once; ``None`` where no task has several runs.
        between_judgments: variance that one judgment adds; ``None`` where no answer was judged
            repeatedly.
        runs: of a task: the harmonic mean.
    """

    tasks: int
    between_tasks: float
    between_runs: float | None
    between_judgments: float | None
    runs: float

    def of_mean(self) -> float:
        """Return the variance of the mean over tasks with each answer judged once."""
        of_run = self.between_runs or 0.0
        of_judgment = self.between_judgments or 0.0
        of_task = self.between_tasks + (of_run + of_judgment) / self.runs
        return of_task / self.tasks

    def judge_share(self) -> float | None:
        """Return the judge's share of that variance, ``None`` where it is unknown."""
        total = self.of_mean()
        if self.between_judgments is None or not total:
            return None
        of_judge = self.between_judgments / self.runs / self.tasks
        return of_judge / total

    def figures(self) -> VarianceFigures:
        """Return the components as they stand in ``summary.json``."""
        return VarianceFigures(
            round(self.between_tasks, _VARIANCE_DIGITS),
            rounded(self.between_runs, _VARIANCE_DIGITS),
            rounded(self.between_judgments, _VARIANCE_DIGITS),
        )


def nested_variance(
    scores: Sequence[Sequence[Sequence[float]]],
) -> NestedVariance | None:
    """Return the components of scores by task, run and judgment.

    ``None`` with fewer than two tasks.
    """
    if len(scores) < 2:
        return None
    judgments_of_answers = [judged for runs in scores for judged in runs]
    of_judgment = pooled_variance(judgments_of_answers)
    answers = []
    # The part of each answer's variance that its judgments add.
    noise = []
    for runs in scores:
        answers.append([fmean(judged) for judged in runs])
        noise.append([(of_judgment or 0.0) / len(judged) for judged in runs])
    of_run = _of_run(answers, noise)
    # The part of each task's variance that its runs and judgments add.
    explained = []
    for run_scores in noise:
        added = sum((of_run or 0.0) + value for value in run_scores)
        explained.append(added / len(run_scores) ** 2)
    of_task_means = variance(map(fmean, answers))
    of_task = max(0.0, of_task_means - fmean(explained))
    harmonic_mean_of_runs = 1 / fmean(1 / len(run_scores) for run_scores in answers)
    return NestedVariance(len(scores), of_task, of_run, of_judgment, harmonic_mean_of_runs)


def _of_run(answers: Sequence[Sequence[float]], noise: Sequence[Sequence[float]]) -> float | None:
    """Return the variance that one run adds beside its judgments.

    ``None`` without tasks of several runs.
    """
    of_answer = pooled_variance(answers)
    if of_answer is None:
        return None
    explained = 0.0
    degrees = 0
    for variances in noise:
        own_degrees = len(variances) - 1
        if own_degrees > 0:
            explained += fmean(variances) * own_degrees
            degrees += own_degrees
    return max(0.0, of_answer - explained / degrees)


def pooled_variance(groups: Sequence[Sequence[float]]) -> float | None:
    """Return the pooled variance within groups, ``None`` where each has a single value."""
    squares = 0.0
    degrees = 0
    for group in groups:
        own_degrees = len(group) - 1
        if own_degrees > 0:
            squares += variance(group) * own_degrees
            degrees += own_degrees
    return squares / degrees if degrees else None
