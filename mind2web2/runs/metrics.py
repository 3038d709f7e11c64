"""An agent's metrics: partial completion, success rate, pass@k, answer length and time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean, pstdev, variance
from typing import Any, get_args

from mind2web2.runs.claim_facts import QUOTE_MATCHES, ClaimFacts, Reservation
from mind2web2.runs.result_facts import ResultFacts
from mind2web2.runs.score_matrix import (
    ScoredAnswer,
    ScoreGrid,
    judge_models,
    mixture_warnings,
    score_grid,
)
from mind2web2.statistics.uncertainty import (
    LEVEL,
    METHOD,
    MIN_TASKS,
    RESAMPLES,
    SEED,
    Limits,
    SampledInterval,
    Statistic,
    TaskSums,
    nested_variance,
    sampled_intervals,
    student_quantile,
)
from mind2web2.utils.names import name_list

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
_RESERVATIONS: tuple[Reservation, ...] = get_args(Reservation)
_NO_SPREAD = "all tasks have the same value"
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
            sums = (
                sum(sum(self.values[task].get(run, ())) for run in names)
                for task in tasks
            )
            columns += [tuple(sums), counts]
        return TaskSums(
            tuple(tasks),
            tuple(columns),
            _mean_over_runs([*map(len, alike.values())]),
            self.limits,
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
        task: {
            run: [float(score == 1.0) for score in found] for run, found in runs.items()
        }
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
    grid: ScoreGrid,
    runs: Sequence[str] | None,
    value_of: Callable[[ScoredAnswer], float | None],
) -> dict[str, dict[str, list[float]]]:
    """Return the known values of answers, scored or not, by task and run; ``runs=None`` makes one run."""
    found: dict[str, dict[str, list[float]]] = {}
    for (task, run), answer in grid.table.items():
        value = value_of(answer)
        if value is not None and (runs is None or run in runs):
            found.setdefault(task, {}).setdefault(
                _ALL_RUNS if runs is None else run, []
            ).append(value)
    return found


def metric_intervals(grid: ScoreGrid) -> dict[str, SampledInterval]:
    """Return the interval of each metric, by its name in ``summary.json``."""
    metrics = sampled_metrics(grid)
    sums = {
        name: metric.over(list(metric.values))
        for name, metric in metrics.items()
        if metric.values
    }
    digits = {name: metric.digits for name, metric in metrics.items()}
    return sampled_intervals(sums, digits, _NO_SPREAD)


def agent_metrics(
    agent_name: str,
    answers: Iterable[ScoredAnswer],
    task_ids: Iterable[str] | None = None,
    caution: str | None = None,
) -> dict[str, Any]:
    """Return an agent's metrics as they stand in ``summary.json``; ``None`` stands for an unknown value.

    A run is all answers of one name, over all tasks; averages are over the tasks of each run, then over the
    runs. Where tasks have different numbers of answers:

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
    runs = {run: _run_metrics(grid, run) for run in grid.runs}
    tasks = _task_metrics(grid)
    judged = [answer for answer in grid.scored_answers if answer.reason is None]
    # A task list without a single answer is a failure at every task, not an unknown result.
    nothing = 0.0 if grid.missing_counted_as_zero and grid.tasks else None
    barred = _barred_metrics(grid)
    numbers = {
        "agent_name": agent_name,
        "num_tasks": len(grid.tasks),
        "num_runs": len(grid.runs),
        **_over_runs("avg_score", [run["avg_score"] for run in runs.values()], nothing),
        **_over_runs(
            "success_rate", [run["success_rate"] for run in runs.values()], nothing
        ),
        f"pass_at_{len(grid.runs)}": _mean(
            float(task["pass"]) for task in tasks.values()
        ),
        **_over_runs(
            "avg_answer_word_count",
            [run["avg_word_count"] for run in runs.values()],
            None,
        ),
        "avg_time_seconds": _mean(answer.time_s for answer in grid.table.values()),
    }
    return {
        **_rounded(numbers),
        "per_run": {name: _rounded(run) for name, run in runs.items()},
        "tasks": {name: _rounded(task) for name, task in tasks.items()},
        "judge_models": judge_models(judged),
        "missing": [asdict(answer) for answer in grid.missing],
        "missing_counted_as_zero": grid.missing_counted_as_zero,
        "warnings": [
            *(text for text in (caution, _barred_warning(barred)) if text),
            *grid.warnings,
            *_failed_run_warnings(grid),
            *mixture_warnings(judged),
        ],
        "intervals": {
            "level": LEVEL,
            "method": METHOD,
            "resamples": RESAMPLES,
            "seed": SEED,
            "metrics": {
                name: found.summary() for name, found in metric_intervals(grid).items()
            },
        },
        "verdicts": verdict_counts(judged),
        "barred": _rounded(barred),
        "bounds": _metric_bounds(grid),
        "over_tasks": _over_tasks(grid),
        "these_tasks": _of_these_tasks(grid),
        "missing_bounds": _missing_bounds(grid),
        "variation": _variation(grid),
    }


def _run_metrics(grid: ScoreGrid, run: str) -> dict[str, Any]:
    scores = [score for (_, name), score in grid.scores.items() if name == run]
    words = [
        answer.word_count for (_, name), answer in grid.table.items() if name == run
    ]
    return {
        "num_tasks": len(scores),
        "avg_score": _mean(scores),
        "success_rate": _mean(float(score == 1.0) for score in scores),
        "avg_word_count": _mean(words),
    }


def _task_metrics(grid: ScoreGrid) -> dict[str, dict[str, Any]]:
    nothing = 0.0 if grid.missing_counted_as_zero else None
    found: dict[str, dict[str, Any]] = {}
    for task in grid.tasks:
        places = [(task, run) for run in grid.runs]
        scores = [grid.scores[place] for place in places if place in grid.scores]
        answers = [
            {
                "answer_name": answer.answer_name,
                "score": answer.score,
                "success": answer.score == 1.0,
                "word_count": answer.word_count,
            }
            for place in places
            if (answer := grid.table.get(place)) is not None
            and answer.score is not None
        ]
        found[task] = {
            "answers": answers,
            "best_score": max(scores, default=nothing),
            "avg_score": _mean(scores) if scores else nothing,
            "pass": 1.0 in scores,
        }
    return found


def _barred_metrics(grid: ScoreGrid) -> dict[str, Any]:
    """Return the answers that rest on barred sources, and the scores without them."""
    barred = {
        place for place, answer in grid.table.items() if answer.facts.is_barred
    } & grid.scores.keys()
    others = replace(
        grid,
        scores={
            place: one for place, one in grid.scores.items() if place not in barred
        },
    )
    runs = [_run_metrics(others, run) for run in grid.runs]
    tasks = dict.fromkeys(task for task, _ in others.scores)
    passed = {task for (task, _), score in others.scores.items() if score == 1.0}
    return {
        "answers": ["/".join(place) for place in grid.table if place in barred],
        "avg_score": _mean(run["avg_score"] for run in runs),
        "success_rate": _mean(run["success_rate"] for run in runs),
        "pass_at_k": _mean(float(task in passed) for task in tasks),
    }


def _barred_warning(barred: Mapping[str, Any]) -> str | None:
    if not barred["answers"]:
        return None
    labels = {
        "partial completion": "avg_score",
        "success rate": "success_rate",
        "pass@k": "pass_at_k",
    }
    listed = ", ".join(
        f"{label} {'unknown' if barred[name] is None else f'{barred[name]:.4f}'}"
        for label, name in labels.items()
    )
    return (
        f"answers that rest on barred sources, which changes no score: {len(barred['answers'])} "
        f"({name_list(barred['answers'])}); without them: {listed}"
    )


def _metric_bounds(grid: ScoreGrid) -> dict[str, Any]:
    """Return the averages with each score at its lower and at its upper bound.

    They are ``None`` where results ``without`` bounds are among them.
    """
    bounds = {
        place: (0.0, 0.0) if answer.reason is not None else answer.facts.bounds
        for place, answer in grid.table.items()
        if place in grid.scores and answer.score is not None
    }
    without = sum(found is None for found in bounds.values())
    if without or not bounds:
        return {"avg_score": None, "success_rate": None, "without": without}
    ends = []
    for side in (0, 1):
        own = {
            place: found[side] for place, found in bounds.items() if found is not None
        }
        at_end = replace(grid, scores={**grid.scores, **own})
        ends.append([_run_metrics(at_end, run) for run in grid.runs])
    return {
        name: [
            round(_mean(run[name] for run in runs) or 0.0, _OTHER_DIGITS)
            for runs in ends
        ]
        for name in ("avg_score", "success_rate")
    } | {"without": 0}


def _over_tasks(grid: ScoreGrid) -> dict[str, Any] | None:
    """Return the means of the means of tasks, as ``compare`` has them, with their intervals.

    ``None`` where every run has all tasks: then they are the means over runs.
    """
    if not grid.scores or len(grid.scores) == len(grid.tasks) * len(grid.runs):
        return None
    metrics = {
        name: SampledMetric(
            {task: {_ALL_RUNS: [metric.of_task(task)]} for task in metric.values},
            _SHARE,
            metric.digits,
        )
        for name, metric in sampled_metrics(grid).items()
        if name in ("avg_score", "success_rate")
    }
    sums = {name: metric.over(list(metric.values)) for name, metric in metrics.items()}
    digits = {name: metric.digits for name, metric in metrics.items()}
    intervals = sampled_intervals(sums, digits, _NO_SPREAD)
    return {
        **{name: round(own.value, digits[name]) for name, own in sums.items()},
        "intervals": {name: found.summary() for name, found in intervals.items()},
    }


def _of_these_tasks(grid: ScoreGrid) -> dict[str, float] | None:
    """Return the interval of partial completion with other answers of the agent to the same tasks.

    ``None`` where too few tasks have several answers.
    """
    by_task: dict[str, list[float]] = {}
    for (task, _), score in grid.scores.items():
        by_task.setdefault(task, []).append(score)
    degrees = sum(len(scores) - 1 for scores in by_task.values())
    if degrees < MIN_TASKS - 1:
        return None
    # Tasks with one answer vary like the others.
    within = sum(
        variance(scores) * (len(scores) - 1)
        for scores in by_task.values()
        if len(scores) > 1
    )
    squared = (
        within
        / degrees
        * sum(1 / len(scores) for scores in by_task.values())
        / len(by_task) ** 2
    )
    reach = student_quantile((1 + LEVEL) / 2, degrees) * math.sqrt(squared)
    mean = fmean(map(fmean, by_task.values()))
    return {
        "low": round(max(0.0, mean - reach), _OTHER_DIGITS),
        "high": round(min(1.0, mean + reach), _OTHER_DIGITS),
    }


def _missing_bounds(grid: ScoreGrid) -> dict[str, Any] | None:
    """Return the means over tasks with each missing score as 0 and as 1, ``None`` where none is missing.

    ``at_missing`` is the mean score at tasks that lack some but not all of their scores, ``at_others`` that
    at complete ones.
    """
    if not grid.missing or not grid.runs:
        return None
    tasks = list(
        dict.fromkeys([*grid.tasks, *(answer.task_id for answer in grid.missing)])
    )
    own = {
        place: answer.score
        for place, answer in grid.table.items()
        if answer.score is not None
    }
    found: dict[str, list[float]] = {"avg_score": [], "success_rate": []}
    for filler in (0.0, 1.0):
        rows = [[own.get((task, run), filler) for run in grid.runs] for task in tasks]
        found["avg_score"].append(fmean(map(fmean, rows)))
        found["success_rate"].append(
            fmean(fmean(float(score == 1) for score in row) for row in rows)
        )
    lacking = {answer.task_id for answer in grid.missing}
    at: dict[bool, list[float]] = {True: [], False: []}
    for task in tasks:
        scores = [own[task, run] for run in grid.runs if (task, run) in own]
        if scores:
            at[task in lacking].append(fmean(scores))
    return {
        name: [round(value, _OTHER_DIGITS) for value in ends]
        for name, ends in found.items()
    } | {
        "at_missing": round(fmean(at[True]), _OTHER_DIGITS) if at[True] else None,
        "at_others": round(fmean(at[False]), _OTHER_DIGITS) if at[False] else None,
    }


def _variation(grid: ScoreGrid) -> dict[str, Any] | None:
    by_task: dict[str, list[list[float]]] = {}
    for (task, _), score in grid.scores.items():
        by_task.setdefault(task, []).append([score])
    found = nested_variance(list(by_task.values()))
    return None if found is None else found.summary()


def _failed_run_warnings(grid: ScoreGrid) -> list[str]:
    failed = [
        f"{answer.task_id}/{answer.answer_name.removesuffix('.md')} ({answer.reason})"
        for answer in grid.scored_answers
        if answer.reason is not None
    ]
    counted = f"runs in which the agent failed: {len(failed)}, counted as 0: {'; '.join(failed)}"
    return [counted] if failed else []


def _over_runs(
    name: str, values: Sequence[float | None], nothing: float | None
) -> dict[str, float | None]:
    known = [value for value in values if value is not None]
    mean, deviation = (fmean(known), pstdev(known)) if known else (nothing, nothing)
    return {name: mean, f"{name}_std": deviation}


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _rounded(numbers: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: round(value, _DIGITS.get(name, _OTHER_DIGITS))
        if isinstance(value, float)
        else value
        for name, value in numbers.items()
    }


def verdict_counts(answers: Sequence[ScoredAnswer]) -> dict[str, Any]:
    """Return how many verdicts behind these answers' scores are doubtful, as ``summary.json`` has them."""
    tasks: dict[str, list[ClaimFacts]] = {}
    for answer in answers:
        tasks.setdefault(answer.task_id, []).extend(answer.facts.claims)
    extractions = Counter(
        kind
        for answer in answers
        for found in answer.facts.extractions
        for kind in found
    )

    def names(applies: Callable[[ResultFacts], bool]) -> list[str]:
        return [
            f"{one.task_id}/{one.answer_name}" for one in answers if applies(one.facts)
        ]

    return {
        **_claim_counts([claim for claims in tasks.values() for claim in claims]),
        "tasks": {task: _claim_counts(claims) for task, claims in tasks.items()},
        "extractions": {kind: extractions[kind] for kind in _RESERVATIONS},
        "in_doubt": names(lambda facts: facts.in_doubt),
        "flagged_answers": names(lambda facts: facts.is_flagged),
        "treeless": names(lambda facts: facts.is_treeless),
        "off_tree": names(lambda facts: facts.is_off_tree),
        "unexplained": names(
            lambda facts: not facts.is_explained and not facts.is_treeless
        ),
    }


def _claim_counts(claims: Sequence[ClaimFacts]) -> dict[str, Any]:
    reservations = Counter(kind for claim in claims for kind in claim.reservations)
    quotes = Counter(match for claim in claims for match in claim.quotes)
    return {
        "claims": len(claims),
        "reservations": {kind: reservations[kind] for kind in _RESERVATIONS},
        "voted": sum(claim.is_voted for claim in claims),
        "split": sum(claim.is_split for claim in claims),
        "quotes": {match: quotes[match] for match in QUOTE_MATCHES},
    }
