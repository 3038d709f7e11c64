"""The metrics with the values behind them, by task and run.

Intervals and comparisons resample these values. The functions are pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from mind2web2.analysis.score_matrix import ScoreGrid
from mind2web2.results.scored_answer import ScoredAnswer
from mind2web2.rubric.verdicts import is_success
from mind2web2.statistics.uncertainty import (
    Limits,
    SampledInterval,
    Statistic,
    TaskSums,
    sampled_intervals,
)

_SHARE = (0.0, 1.0)
_SHARE_DIGITS = 4
_NO_SPREAD = "all tasks have the same value"
# Metrics that are not means over runs are stored under this name.
_ALL_RUNS = ""


@dataclass(frozen=True, slots=True)
class SampledMetric:
    """A metric as the mean over runs of the means over tasks.

    Args:
        values: by task and run; a task without values has no entry.
        limits: the least and the greatest possible value, where there are any.
        digits: after the point, as published.
    """

    values: Mapping[str, Mapping[str, Sequence[float]]]
    limits: Limits
    digits: int

    def of_task(self, task: str) -> float:
        """Return the mean over a task's runs."""
        return fmean(value for values in self.values[task].values() for value in values)

    def over(self, tasks: Sequence[str]) -> TaskSums:
        """Return the metric over these tasks, each of which has a value."""
        runs = dict.fromkeys(run for task in tasks for run in self.values[task])
        # Runs with the same tasks are averaged in one sum: mostly these are all runs.
        alike: dict[tuple[int, ...], list[str]] = {}
        for run in runs:
            counts = tuple(len(self._values_of(task, run)) for task in tasks)
            alike.setdefault(counts, []).append(run)
        columns: list[tuple[float, ...]] = []
        for counts, names in alike.items():
            columns.append(tuple(self._sum_of(task, names) for task in tasks))
            columns.append(counts)
        statistic = _mean_over_runs([len(names) for names in alike.values()])
        return TaskSums(tuple(tasks), tuple(columns), statistic, self.limits)

    def _values_of(self, task: str, run: str) -> Sequence[float]:
        return self.values[task].get(run, ())

    def _sum_of(self, task: str, runs: Sequence[str]) -> float:
        return sum(sum(self._values_of(task, run)) for run in runs)

    def over_all(self) -> TaskSums:
        """Return the metric over all tasks that have a value."""
        return self.over(list(self.values))

    def by_task(self) -> SampledMetric:
        """Return the mean over tasks of the means over each task's runs."""
        means = {task: {_ALL_RUNS: [self.of_task(task)]} for task in self.values}
        return SampledMetric(means, self.limits, self.digits)


def _mean_over_runs(sizes: Sequence[int]) -> Statistic:
    """Return the statistic of alternating sums and counts, one pair for each group of runs.

    ``sizes`` tells how many runs each group has.
    """

    def statistic(sums: Sequence[float]) -> float:
        # Runs of which no task was drawn do not count.
        groups = [
            (total / count, size)
            for total, count, size in zip(sums[::2], sums[1::2], sizes, strict=True)
            if count
        ]
        total_mean = sum(mean for mean, _ in groups)
        total_size = sum(size for _, size in groups)
        return total_mean / total_size

    return statistic


def sample_metrics(grid: ScoreGrid) -> dict[str, SampledMetric]:
    """Return the metrics with the values behind them, by their names in ``summary.json``."""
    scores: dict[str, dict[str, list[float]]] = {}
    for (task, run), score in grid.scores.items():
        scores.setdefault(task, {})[run] = [score]
    successes: dict[str, dict[str, list[float]]] = {}
    passes: dict[str, dict[str, list[float]]] = {}
    for task, runs in scores.items():
        successes[task] = {run: [float(is_success(one))] for run, [one] in runs.items()}
        passes[task] = {_ALL_RUNS: [float(any(is_success(one) for [one] in runs.values()))]}
    words = _values_by_run(grid, grid.runs, lambda answer: answer.word_count)
    times = _values_by_run(grid, None, lambda answer: answer.time_s)
    return {
        "avg_score": SampledMetric(scores, _SHARE, _SHARE_DIGITS),
        "success_rate": SampledMetric(successes, _SHARE, _SHARE_DIGITS),
        f"pass_at_{len(grid.runs)}": SampledMetric(passes, _SHARE, _SHARE_DIGITS),
        "avg_answer_word_count": SampledMetric(words, None, 1),
        "avg_time_seconds": SampledMetric(times, None, 1),
    }


def _values_by_run(
    grid: ScoreGrid,
    runs: Sequence[str] | None,
    value_of: Callable[[ScoredAnswer], float | None],
) -> dict[str, dict[str, list[float]]]:
    """Return the known values of answers, scored or not, by task and run.

    ``runs=None`` makes one run.
    """
    values: dict[str, dict[str, list[float]]] = {}
    for (task, run), answer in grid.table.items():
        value = value_of(answer)
        if value is None or (runs is not None and run not in runs):
            continue
        of_task = values.setdefault(task, {})
        of_task.setdefault(_ALL_RUNS if runs is None else run, []).append(value)
    return values


def metric_intervals(grid: ScoreGrid) -> dict[str, SampledInterval]:
    """Return the interval of each metric, by its name in ``summary.json``."""
    return intervals_of(sample_metrics(grid))


def intervals_of(metrics: Mapping[str, SampledMetric]) -> dict[str, SampledInterval]:
    """Return the interval of each metric over all its tasks."""
    sums = {name: metric.over_all() for name, metric in metrics.items() if metric.values}
    digits = {name: metric.digits for name, metric in metrics.items()}
    return sampled_intervals(sums, digits, _NO_SPREAD)
