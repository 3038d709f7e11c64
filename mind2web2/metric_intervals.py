"""How far off metrics may be since the tasks are a sample; all answers of a task are drawn together; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mind2web2.intervals import LEVEL, METHOD, MIN_TASKS, RESAMPLES, SEED, Interval, Limits, Statistic
from mind2web2.score_grid import ScoredAnswer, ScoreGrid
from mind2web2.task_sums import TaskSums, intervals_of

SCORE_DIGITS = 4
WORD_DIGITS = 1
TIME_DIGITS = 1

_SHARE = (0.0, 1.0)
# Of metrics that are no means over runs.
_ALL_RUNS = ""


@dataclass(frozen=True, slots=True)
class MetricInterval:
    """A metric's interval, or the reason why there is none.

    Args:
        tasks: how many have a value, and were resampled.
        digits: after the point, as published.
    """

    tasks: int
    interval: Interval | None
    reason: str | None
    digits: int

    def summary(self) -> dict[str, Any]:
        """Return it as it stands in ``summary.json``."""
        found = self.interval
        return {
            "low": None if found is None else round(found.low, self.digits),
            "high": None if found is None else round(found.high, self.digits),
            "tasks": self.tasks,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class SampledMetric:
    """A metric as the mean over runs of the means over tasks.

    Args:
        values: by task and run; a task without values has no entry.
        limits: between which the values are, where they have limits.
        digits: after the point, as published.
    """

    values: Mapping[str, Mapping[str, Sequence[float]]]
    limits: Limits
    digits: int

    def over(self, tasks: Sequence[str]) -> TaskSums:
        """Return the metric over these tasks, each of which has a value."""
        counts: dict[str, tuple[int, ...]] = {
            run: tuple(len(self.values[task].get(run, ())) for task in tasks) for run in self._runs(tasks)
        }
        # Runs that span the same tasks are averaged in one sum: mostly these are all runs.
        alike: dict[tuple[int, ...], list[str]] = {}
        for run, of_tasks in counts.items():
            alike.setdefault(of_tasks, []).append(run)
        columns: list[tuple[float, ...]] = []
        for of_tasks, runs in alike.items():
            columns.append(tuple(sum(sum(self.values[task].get(run, ())) for run in runs) for task in tasks))
            columns.append(of_tasks)
        statistic = _mean_over_runs([len(runs) for runs in alike.values()])
        return TaskSums(tuple(tasks), tuple(columns), statistic, self.limits)

    def _runs(self, tasks: Iterable[str]) -> list[str]:
        return list(dict.fromkeys(run for task in tasks for run in self.values[task]))


def _mean_over_runs(sizes: Sequence[int]) -> Statistic:
    """Return the statistic of sums and counts that alternate, one pair for so many runs."""

    def statistic(sums: Sequence[float]) -> float:
        # A run of which nothing was drawn does not count.
        groups = [
            (total / count, size)
            for total, count, size in zip(sums[::2], sums[1::2], sizes, strict=True)
            if count
        ]
        return sum(mean for mean, _ in groups) / sum(size for _, size in groups)

    return statistic


def sampled_metrics(grid: ScoreGrid) -> dict[str, SampledMetric]:
    """Return metrics with the values that they are means of, by their names in ``summary.json``."""
    scores: dict[str, dict[str, list[float]]] = {}
    for (task, run), score in grid.scores.items():
        scores.setdefault(task, {})[run] = [score]
    successes = {
        task: {run: [float(score == 1.0) for score in found] for run, found in runs.items()}
        for task, runs in scores.items()
    }
    passes = {
        task: {_ALL_RUNS: [float(any(found == [1.0] for found in runs.values()))]}
        for task, runs in scores.items()
    }
    words = _known(grid, grid.runs, lambda answer: answer.word_count)
    times = _known(grid, None, lambda answer: answer.time_s)
    return {
        "avg_score": SampledMetric(scores, _SHARE, SCORE_DIGITS),
        "success_rate": SampledMetric(successes, _SHARE, SCORE_DIGITS),
        f"pass_at_{len(grid.runs)}": SampledMetric(passes, _SHARE, SCORE_DIGITS),
        "avg_answer_word_count": SampledMetric(words, None, WORD_DIGITS),
        "avg_time_seconds": SampledMetric(times, None, TIME_DIGITS),
    }


def _known(
    grid: ScoreGrid, runs: Sequence[str] | None, value_of: Callable[[ScoredAnswer], float | None]
) -> dict[str, dict[str, list[float]]]:
    """Return what is known of answers, scored or not, by task and run; ``runs=None`` puts all into one."""
    found: dict[str, dict[str, list[float]]] = {}
    for (task, run), answer in grid.table.items():
        value = value_of(answer)
        if value is not None and (runs is None or run in runs):
            found.setdefault(task, {}).setdefault(_ALL_RUNS if runs is None else run, []).append(value)
    return found


def metric_intervals(grid: ScoreGrid) -> dict[str, MetricInterval]:
    """Return the interval of each metric, by its name in ``summary.json``."""
    metrics = sampled_metrics(grid)
    known = {name: metric.over(list(metric.values)) for name, metric in metrics.items() if metric.values}
    intervals = intervals_of(known)
    found = {}
    for name, metric in metrics.items():
        interval, reason = intervals.get(name), too_few(len(metric.values))
        if interval is None and reason is None:
            reason = "all tasks have the same value"
        found[name] = MetricInterval(len(metric.values), interval, reason, metric.digits)
    return found


def too_few(tasks: int) -> str | None:
    """Return why there can be no interval over so many tasks, ``None`` if there can."""
    if not tasks:
        return "no value is known"
    if tasks < MIN_TASKS:
        return f"{tasks} {'task is' if tasks == 1 else 'tasks are'} too few, {MIN_TASKS} are needed"
    return None


def intervals_summary(intervals: Mapping[str, MetricInterval]) -> dict[str, Any]:
    """Return intervals as they stand in ``summary.json``, with how they came about."""
    return {
        "level": LEVEL,
        "method": METHOD,
        "resamples": RESAMPLES,
        "seed": SEED,
        "metrics": {name: found.summary() for name, found in intervals.items()},
    }
