"""An agent's metrics: partial completion, success rate, pass@k, answer length and time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean, pstdev
from typing import Any

from mind2web2.runs.comparability import VerdictCounts, judge_models, mixture_warnings, verdict_counts
from mind2web2.runs.score_matrix import MissingAnswer, ScoredAnswer, ScoreGrid, score_grid
from mind2web2.statistics.bootstrap import (
    LEVEL,
    METHOD,
    RESAMPLES,
    SEED,
    Limits,
    SampledInterval,
    Statistic,
    TaskSums,
    sampled_intervals,
)
from mind2web2.statistics.variance import NestedVariance, nested_variance
from mind2web2.utils.text import name_list, natural_key

# Digits after the point as published (file-layouts.md), by key; other numbers have four.
_DIGITS = {
    "avg_score": 6,
    "avg_answer_word_count": 1,
    "avg_answer_word_count_std": 1,
    "avg_word_count": 1,
    "avg_time_seconds": 1,
}
_OTHER_DIGITS = 4
_SHARE = (0.0, 1.0)
# The run of metrics that are no means over runs.
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
        return fmean(value for found in self.values[task].values() for value in found)

    def over(self, tasks: Sequence[str]) -> TaskSums:
        """Return the metric over these tasks, each of which has a value."""
        runs = dict.fromkeys(run for task in tasks for run in self.values[task])
        # Runs with the same tasks are averaged in one sum: mostly these are all runs.
        alike: dict[tuple[int, ...], list[str]] = {}
        for run in runs:
            counts = tuple(len(self.values[task].get(run, ())) for task in tasks)
            alike.setdefault(counts, []).append(run)
        columns: list[tuple[float, ...]] = []
        for counts, names in alike.items():
            sums = (sum(sum(self.values[task].get(run, ())) for run in names) for task in tasks)
            columns += [tuple(sums), counts]
        return TaskSums(
            tuple(tasks), tuple(columns), _mean_over_runs([*map(len, alike.values())]), self.limits
        )


def _mean_over_runs(sizes: Sequence[int]) -> Statistic:
    """Return the statistic of alternating sums and counts, one pair for each group of so many runs."""

    def statistic(sums: Sequence[float]) -> float:
        # Runs of which no task was drawn do not count.
        groups = [
            (total / count, size)
            for total, count, size in zip(sums[::2], sums[1::2], sizes, strict=True)
            if count
        ]
        return sum(mean for mean, _ in groups) / sum(size for _, size in groups)

    return statistic


def sampled_metrics(grid: ScoreGrid) -> dict[str, SampledMetric]:
    """Return the metrics with the values behind them, by their names in ``summary.json``."""
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
        "avg_score": SampledMetric(scores, _SHARE, _OTHER_DIGITS),
        "success_rate": SampledMetric(successes, _SHARE, _OTHER_DIGITS),
        f"pass_at_{len(grid.runs)}": SampledMetric(passes, _SHARE, _OTHER_DIGITS),
        "avg_answer_word_count": SampledMetric(words, None, 1),
        "avg_time_seconds": SampledMetric(times, None, 1),
    }


def _known(
    grid: ScoreGrid, runs: Sequence[str] | None, value_of: Callable[[ScoredAnswer], float | None]
) -> dict[str, dict[str, list[float]]]:
    """Return the known values of answers, scored or not, by task and run; ``runs=None`` makes one run."""
    found: dict[str, dict[str, list[float]]] = {}
    for (task, run), answer in grid.table.items():
        value = value_of(answer)
        if value is not None and (runs is None or run in runs):
            found.setdefault(task, {}).setdefault(_ALL_RUNS if runs is None else run, []).append(value)
    return found


def metric_intervals(grid: ScoreGrid) -> dict[str, SampledInterval]:
    """Return the interval of each metric, by its name in ``summary.json``."""
    metrics = sampled_metrics(grid)
    sums = {name: metric.over(list(metric.values)) for name, metric in metrics.items() if metric.values}
    digits = {name: metric.digits for name, metric in metrics.items()}
    return sampled_intervals(sums, digits, "all tasks have the same value")


@dataclass(frozen=True, slots=True)
class MetricBounds:
    """The least and the greatest value of an agent's averages, by the bounds of the scores behind them.

    Args:
        without: answers with a score whose result states no bounds; then the averages have none either.
    """

    avg_score: tuple[float, float] | None
    success_rate: tuple[float, float] | None
    without: int

    def summary(self) -> dict[str, Any]:
        """Return them as they stand in ``summary.json``."""
        limits = {"avg_score": self.avg_score, "success_rate": self.success_rate}
        return {
            name: None if found is None else [round(value, _OTHER_DIGITS) for value in found]
            for name, found in limits.items()
        } | {"without": self.without}


def metric_bounds(grid: ScoreGrid) -> MetricBounds:
    """Return the averages with each score at its lower, and at its upper bound."""
    bounds = {
        place: (0.0, 0.0) if answer.reason is not None else answer.facts.bounds
        for place, answer in grid.table.items()
        if place in grid.scores and answer.score is not None
    }
    without = sum(found is None for found in bounds.values())
    if without or not bounds:
        return MetricBounds(None, None, without)
    ends = []
    for side in (0, 1):
        own = {place: found[side] for place, found in bounds.items() if found is not None}
        per_run = _per_run(replace(grid, scores={**grid.scores, **own})).values()
        ends.append([_mean(run.avg_score for run in per_run), _mean(run.success_rate for run in per_run)])
    (low, low_rate), (high, high_rate) = ends
    return MetricBounds((low or 0.0, high or 0.0), (low_rate or 0.0, high_rate or 0.0), 0)


@dataclass(frozen=True, slots=True)
class RunMetrics:
    """The averages of one run over ``num_tasks`` tasks."""

    num_tasks: int
    avg_score: float | None
    success_rate: float | None
    avg_word_count: float | None


@dataclass(frozen=True, slots=True)
class TaskMetrics:
    """One task over the runs: its scored answers, and whether one of them scored 1."""

    answers: tuple[ScoredAnswer, ...]
    best_score: float | None
    avg_score: float | None
    passed: bool


@dataclass(frozen=True, slots=True)
class BarredMetrics:
    """The answers that rest on barred sources, as ``task/answer``, and the scores without these answers."""

    answers: tuple[str, ...]
    avg_score: float | None
    success_rate: float | None
    pass_at_k: float | None

    def warning(self) -> str | None:
        """Return how many answers are flagged, with the scores without them, in one line."""
        if not self.answers:
            return None
        scores = {
            "partial completion": self.avg_score,
            "success rate": self.success_rate,
            "pass@k": self.pass_at_k,
        }
        listed = ", ".join(
            f"{name} {'unknown' if value is None else f'{value:.4f}'}" for name, value in scores.items()
        )
        return (
            f"answers that rest on barred sources, which changes no score: {len(self.answers)} "
            f"({name_list(self.answers)}); without them: {listed}"
        )


def _barred_metrics(grid: ScoreGrid) -> BarredMetrics:
    barred = {place for place, answer in grid.table.items() if answer.facts.is_barred} & grid.scores.keys()
    scores = {place: score for place, score in grid.scores.items() if place not in barred}
    tasks = dict.fromkeys(task for task, _ in scores)
    passed = {task for (task, _), score in scores.items() if score == 1.0}
    runs = _per_run(replace(grid, scores=scores))
    return BarredMetrics(
        answers=tuple("/".join(place) for place in grid.table if place in barred),
        avg_score=_mean(run.avg_score for run in runs.values()),
        success_rate=_mean(run.success_rate for run in runs.values()),
        pass_at_k=_mean(float(task in passed) for task in tasks),
    )


@dataclass(frozen=True, slots=True)
class AgentMetrics:
    """An agent's metrics, unrounded; ``None`` stands for an unknown value.

    Args:
        missing: every answer without a score.
        missing_counted_as_zero: missing answers count as 0; otherwise the averages leave them out.
        warnings: reservations about the numbers, one line each.
        intervals: by the metrics' published names.
        verdicts: counts of doubtful verdicts.
        barred: answers that rest on barred sources, and the scores without them.
        bounds: of partial completion and success rate, by weak verdicts.
        variation: where the variance of the scores comes from; ``None`` with fewer than two tasks.
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
    avg_time_seconds: float | None
    per_run: Mapping[str, RunMetrics]
    tasks: Mapping[str, TaskMetrics]
    judge_models: Mapping[str, int]
    missing: tuple[MissingAnswer, ...]
    missing_counted_as_zero: bool
    warnings: tuple[str, ...]
    intervals: Mapping[str, SampledInterval]
    verdicts: VerdictCounts
    barred: BarredMetrics
    bounds: MetricBounds
    variation: NestedVariance | None

    def summary(self) -> dict[str, Any]:
        """Return the content of the agent's ``summary.json``, rounded as published."""
        names = (
            *("agent_name", "num_tasks", "num_runs", "avg_score", "avg_score_std"),
            *("success_rate", "success_rate_std", "pass_at_k"),
            *("avg_answer_word_count", "avg_answer_word_count_std", "avg_time_seconds"),
        )
        numbers = _rounded({name: getattr(self, name) for name in names})
        return {
            **{f"pass_at_{self.num_runs}" if name == "pass_at_k" else name: numbers[name] for name in names},
            "per_run": {name: _rounded(asdict(run)) for name, run in self.per_run.items()},
            "tasks": {task_id: _task_summary(task) for task_id, task in self.tasks.items()},
            "judge_models": dict(self.judge_models),
            "missing": [asdict(answer) for answer in self.missing],
            "missing_counted_as_zero": self.missing_counted_as_zero,
            "warnings": list(self.warnings),
            "intervals": {
                "level": LEVEL,
                "method": METHOD,
                "resamples": RESAMPLES,
                "seed": SEED,
                "metrics": {name: found.summary() for name, found in self.intervals.items()},
            },
            "verdicts": self.verdicts.summary(),
            "barred": _rounded(asdict(self.barred)) | {"answers": list(self.barred.answers)},
            "bounds": self.bounds.summary(),
            "variation": None if self.variation is None else self.variation.summary(),
        }


def agent_metrics(
    agent_name: str,
    answers: Iterable[ScoredAnswer],
    task_ids: Iterable[str] | None = None,
    caution: str | None = None,
) -> AgentMetrics:
    """Average an agent's answers over the tasks of each run, then over the runs.

    A run is all answers of one name, over all tasks. Where tasks have different numbers of answers:

    - With ``task_ids``, every run spans exactly these tasks. Runs are all answer names found in them, and
      an answer that a run lacks, or that has no score, counts as 0.
    - Without, a run spans the tasks in which it has a score, and runs without any score are not counted,
      so that pass@k never claims more attempts than were judged. Tasks without any score are not counted
      either. Runs then differ in their tasks, and a warning says so.

    Missing answers are listed by name in both cases, and the order of the answers does not matter. Word
    counts and times average the known values. A ``caution`` becomes the first warning.

    Raises:
        ValueError: two answers have the same task and name.
    """
    grid = score_grid(answers, task_ids)
    per_run, per_task = _per_run(grid), _per_task(grid)
    judged = [answer for answer in grid.scored_answers if answer.reason is None]
    # A task list without a single answer is a failure at every task, not an unknown result.
    nothing = 0.0 if grid.missing_counted_as_zero and grid.tasks else None
    avg_score, avg_score_std = _over_runs([run.avg_score for run in per_run.values()], nothing)
    success_rate, success_rate_std = _over_runs([run.success_rate for run in per_run.values()], nothing)
    barred = _barred_metrics(grid)
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
        avg_time_seconds=_mean(answer.time_s for answer in grid.table.values()),
        per_run=per_run,
        tasks=per_task,
        judge_models=judge_models(judged),
        missing=grid.missing,
        missing_counted_as_zero=grid.missing_counted_as_zero,
        warnings=(
            *(text for text in (caution, barred.warning()) if text),
            *grid.warnings,
            *_failed_run_warnings(grid),
            *mixture_warnings(judged),
        ),
        intervals=metric_intervals(grid),
        verdicts=verdict_counts(judged),
        barred=barred,
        bounds=metric_bounds(grid),
        variation=_variation(grid),
    )


def _variation(grid: ScoreGrid) -> NestedVariance | None:
    by_task: dict[str, list[list[float]]] = {}
    for (task, _), score in grid.scores.items():
        by_task.setdefault(task, []).append([score])
    return nested_variance(list(by_task.values()))


def _failed_run_warnings(grid: ScoreGrid) -> list[str]:
    failed = [
        f"{answer.task_id}/{answer.answer_name.removesuffix('.md')} ({answer.reason})"
        for answer in grid.failed_runs
    ]
    return (
        [f"runs in which the agent failed: {len(failed)}, counted as 0: {'; '.join(failed)}"]
        if failed
        else []
    )


def _per_run(grid: ScoreGrid) -> dict[str, RunMetrics]:
    found = {}
    for run in grid.runs:
        scores = [score for (_, name), score in grid.scores.items() if name == run]
        found[run] = RunMetrics(
            num_tasks=len(scores),
            avg_score=_mean(scores),
            success_rate=_mean(float(score == 1.0) for score in scores),
            avg_word_count=_mean(
                answer.word_count for (_, name), answer in grid.table.items() if name == run
            ),
        )
    return found


def _per_task(grid: ScoreGrid) -> dict[str, TaskMetrics]:
    scores: dict[str, list[float]] = {task: [] for task in grid.tasks}
    for (task, _), score in grid.scores.items():
        scores[task].append(score)
    answers: dict[str, list[ScoredAnswer]] = {task: [] for task in grid.tasks}
    for answer in grid.scored_answers:
        answers.get(answer.task_id, []).append(answer)
    nothing = 0.0 if grid.missing_counted_as_zero else None
    return {
        task: TaskMetrics(
            answers=tuple(sorted(answers[task], key=lambda answer: natural_key(answer.answer_name))),
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


def _rounded(numbers: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: round(value, _DIGITS.get(name, _OTHER_DIGITS)) if isinstance(value, float) else value
        for name, value in numbers.items()
    }


def _task_summary(task: TaskMetrics) -> dict[str, Any]:
    answers = [
        {
            "answer_name": answer.answer_name,
            "score": answer.score,
            "success": answer.score == 1.0,
            "word_count": answer.word_count,
        }
        for answer in task.answers
    ]
    averages = _rounded({"best_score": task.best_score, "avg_score": task.avg_score})
    return {"answers": answers, **averages, "pass": task.passed}
