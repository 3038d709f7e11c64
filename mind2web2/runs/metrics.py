"""An agent's metrics: partial completion, success rate, pass@k, answer length and time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, pstdev
from typing import Any

from mind2web2.rubric.aggregation import is_score
from mind2web2.runs.comparability import VerdictCounts, judge_models, mixture_warnings, verdict_counts
from mind2web2.runs.score_matrix import (
    NO_RESULT,
    MissingAnswer,
    ScoredAnswer,
    ScoreGrid,
    is_time_s,
    score_grid,
)
from mind2web2.statistics.bootstrap import (
    LEVEL,
    METHOD,
    MIN_TASKS,
    RESAMPLES,
    SEED,
    Interval,
    Limits,
    Statistic,
    TaskSums,
    intervals_of,
)
from mind2web2.utils.names import natural_key

__all__ = [
    "NO_RESULT",
    "AgentMetrics",
    "MissingAnswer",
    "RunMetrics",
    "ScoredAnswer",
    "TaskMetrics",
    "agent_metrics",
    "is_score",
    "is_time_s",
]

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


# Of every ``avg_score``, as published (file-layouts.md); other scores have fewer.
AVERAGE_DIGITS = 6


@dataclass(frozen=True, slots=True)
class RunMetrics:
    """The averages of one run over ``num_tasks`` tasks."""

    num_tasks: int
    avg_score: float | None
    success_rate: float | None
    avg_word_count: float | None


@dataclass(frozen=True, slots=True)
class TaskMetrics:
    """One task over the runs: its ``answers`` that have a score, ``passed`` says that one scored 1."""

    answers: tuple[ScoredAnswer, ...]
    best_score: float | None
    avg_score: float | None
    passed: bool


@dataclass(frozen=True, slots=True)
class AgentMetrics:
    """What an agent reached, unrounded; ``None`` stands for a value that nothing is known about.

    Args:
        missing: every answer without a score, by name.
        missing_counted_as_zero: whether those count as 0, else they are left out of the averages.
        warnings: what makes the numbers less than they seem, one line each.
        intervals: how far off the numbers may be since the tasks are a sample, by their published names.
        verdicts: what the scores rest on.
    """

    agent_name: str
    num_tasks: int
    num_runs: int
    avg_score: float | None
    avg_score_std: float | None
    success_rate: float | None
    success_rate_std: float | None
    pass_at_k: float | None
    avg_answer_word_count: float | None
    avg_answer_word_count_std: float | None
    avg_time_s: float | None
    per_run: Mapping[str, RunMetrics]
    tasks: Mapping[str, TaskMetrics]
    judge_models: Mapping[str, int]
    missing: tuple[MissingAnswer, ...]
    missing_counted_as_zero: bool
    warnings: tuple[str, ...]
    intervals: Mapping[str, MetricInterval]
    verdicts: VerdictCounts

    def summary(self) -> dict[str, Any]:
        """Return the content of the agent's ``summary.json``, rounded as published."""
        return {
            "agent_name": self.agent_name,
            "num_tasks": self.num_tasks,
            "num_runs": self.num_runs,
            "avg_score": _rounded(self.avg_score, AVERAGE_DIGITS),
            "avg_score_std": _rounded(self.avg_score_std, SCORE_DIGITS),
            "success_rate": _rounded(self.success_rate, SCORE_DIGITS),
            "success_rate_std": _rounded(self.success_rate_std, SCORE_DIGITS),
            f"pass_at_{self.num_runs}": _rounded(self.pass_at_k, SCORE_DIGITS),
            "avg_answer_word_count": _rounded(self.avg_answer_word_count, WORD_DIGITS),
            "avg_answer_word_count_std": _rounded(self.avg_answer_word_count_std, WORD_DIGITS),
            "avg_time_seconds": _rounded(self.avg_time_s, TIME_DIGITS),
            "per_run": {name: _run_summary(run) for name, run in self.per_run.items()},
            "tasks": {task_id: _task_summary(task) for task_id, task in self.tasks.items()},
            "judge_models": dict(self.judge_models),
            "missing": [asdict(answer) for answer in self.missing],
            "missing_counted_as_zero": self.missing_counted_as_zero,
            "warnings": list(self.warnings),
            "intervals": intervals_summary(self.intervals),
            "verdicts": self.verdicts.summary(),
        }


def agent_metrics(
    agent_name: str, answers: Iterable[ScoredAnswer], task_ids: Iterable[str] | None = None
) -> AgentMetrics:
    """Average an agent's answers over the tasks of each run, then over the runs.

    A run is all answers of one name, over all tasks. Where tasks have different numbers of answers:

    - With ``task_ids``, every run spans exactly these tasks. Runs are all answer names seen in them, and
      an answer that a run lacks, or that has no score, counts as 0.
    - Without, a run spans the tasks in which it has a score, and runs without any score are not counted,
      so that pass@k never claims more attempts than were judged. Tasks without any score are not counted
      either. Runs then differ in their tasks, which a warning says.

    Either way what is missing is listed by name, and nothing depends on the order of the answers.
    Word counts and times average what is known of them.

    Raises:
        ValueError: two answers have the same task and name.
    """
    return _metrics(agent_name, score_grid(answers, task_ids))


def _metrics(agent_name: str, grid: ScoreGrid) -> AgentMetrics:
    per_run, per_task = _per_run(grid), _per_task(grid)
    scored = grid.scored_answers
    # A task list without a single answer is a failure at every task, not an unknown result.
    nothing = 0.0 if grid.missing_counted_as_zero and grid.tasks else None
    avg_score, avg_score_std = _over_runs([run.avg_score for run in per_run.values()], nothing)
    success_rate, success_rate_std = _over_runs([run.success_rate for run in per_run.values()], nothing)
    words, words_std = _over_runs([run.avg_word_count for run in per_run.values()], None)
    return AgentMetrics(
        agent_name=agent_name,
        num_tasks=len(grid.tasks),
        num_runs=len(grid.runs),
        avg_score=avg_score,
        avg_score_std=avg_score_std,
        success_rate=success_rate,
        success_rate_std=success_rate_std,
        pass_at_k=_mean(float(task.passed) for task in per_task.values()),
        avg_answer_word_count=words,
        avg_answer_word_count_std=words_std,
        avg_time_s=_mean(answer.time_s for answer in grid.table.values()),
        per_run=per_run,
        tasks=per_task,
        judge_models=judge_models(scored),
        missing=grid.missing,
        missing_counted_as_zero=grid.missing_counted_as_zero,
        warnings=(*grid.warnings, *mixture_warnings(scored)),
        intervals=metric_intervals(grid),
        verdicts=verdict_counts(scored),
    )


def _per_run(grid: ScoreGrid) -> dict[str, RunMetrics]:
    scores: dict[str, list[float]] = {run: [] for run in grid.runs}
    for (_, run), score in grid.scores.items():
        scores[run].append(score)
    words: dict[str, list[int | None]] = {run: [] for run in grid.runs}
    for (_, run), answer in grid.table.items():
        words.get(run, []).append(answer.word_count)
    return {
        run: RunMetrics(
            num_tasks=len(scores[run]),
            avg_score=_mean(scores[run]),
            success_rate=_mean(float(score == 1.0) for score in scores[run]),
            avg_word_count=_mean(words[run]),
        )
        for run in grid.runs
    }


def _per_task(grid: ScoreGrid) -> dict[str, TaskMetrics]:
    scores: dict[str, list[float]] = {task: [] for task in grid.tasks}
    for (task, _), score in grid.scores.items():
        scores[task].append(score)
    scored: dict[str, list[ScoredAnswer]] = {task: [] for task in grid.tasks}
    for (task, _), answer in grid.table.items():
        if answer.score is not None and task in scored:
            scored[task].append(answer)
    nothing = 0.0 if grid.missing_counted_as_zero else None
    return {
        task: TaskMetrics(
            answers=tuple(sorted(scored[task], key=lambda answer: natural_key(answer.answer_name))),
            best_score=max(scores[task], default=nothing),
            avg_score=_mean(scores[task]) if scores[task] else nothing,
            passed=1.0 in scores[task],
        )
        for task in grid.tasks
    }


def _over_runs(values: Sequence[float | None], nothing: float | None) -> tuple[float | None, float | None]:
    known = [value for value in values if value is not None]
    return (fmean(known), pstdev(known)) if known else (nothing, nothing)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def _run_summary(run: RunMetrics) -> dict[str, Any]:
    return {
        "num_tasks": run.num_tasks,
        "avg_score": _rounded(run.avg_score, AVERAGE_DIGITS),
        "success_rate": _rounded(run.success_rate, SCORE_DIGITS),
        "avg_word_count": _rounded(run.avg_word_count, WORD_DIGITS),
    }


def _task_summary(task: TaskMetrics) -> dict[str, Any]:
    return {
        "answers": [
            {
                "answer_name": answer.answer_name,
                "score": answer.score,
                "success": answer.score == 1.0,
                "word_count": answer.word_count,
            }
            for answer in task.answers
        ],
        "best_score": _rounded(task.best_score, SCORE_DIGITS),
        "avg_score": _rounded(task.avg_score, AVERAGE_DIGITS),
        "pass": task.passed,
    }
