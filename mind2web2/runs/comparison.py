"""Two agents over the tasks that both have: their metrics, and how sure the differences are; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mind2web2.errors import UsageError
from mind2web2.runs.comparability import mixture_warnings
from mind2web2.runs.metrics import SampledMetric, sampled_metrics
from mind2web2.runs.score_matrix import ScoredAnswer, ScoreGrid, score_grid
from mind2web2.statistics.bootstrap import LEVEL, METHOD, RESAMPLES, SEED, SampledInterval, sampled_intervals
from mind2web2.utils.names import name_list, natural_key

# Pass@k of either agent, whose k may differ.
PASS = "pass_at_k"


@dataclass(frozen=True, slots=True)
class Difference:
    """One metric of two agents over the tasks where both have a value.

    Args:
        first: the first agent's value; ``None`` where no task has a value of both, like ``second``.
        sampled: the interval of the second value minus the first.
    """

    first: float | None
    second: float | None
    sampled: SampledInterval

    @property
    def value(self) -> float | None:
        """Return the second agent's value minus the first's."""
        return None if self.first is None or self.second is None else self.second - self.first

    @property
    def is_clear(self) -> bool:
        """Tell whether other tasks of the kind would hardly change the sign of the difference."""
        return self.sampled.interval is not None and self.sampled.interval.excludes(0)

    def summary(self) -> dict[str, Any]:
        """Return it as ``mind2web2 metrics --json`` prints it."""
        numbers = {"first": self.first, "second": self.second, "difference": self.value}
        rounded = {
            name: None if value is None else round(value, self.sampled.digits)
            for name, value in numbers.items()
        }
        return {**rounded, **self.sampled.summary(), "clear": self.is_clear}


@dataclass(frozen=True, slots=True)
class AgentComparison:
    """Two agents over the same tasks.

    Args:
        differences: by the metrics' names in ``summary.json``; pass@k is ``pass_at_k``.
        warnings: other differences of the two, one line each.
    """

    first: str
    second: str
    tasks: tuple[str, ...]
    differences: Mapping[str, Difference]
    warnings: tuple[str, ...]

    def summary(self) -> dict[str, Any]:
        """Return it as ``mind2web2 metrics --json`` prints it."""
        return {
            "first": self.first,
            "second": self.second,
            "num_tasks": len(self.tasks),
            "level": LEVEL,
            "method": METHOD,
            "resamples": RESAMPLES,
            "seed": SEED,
            "metrics": {name: found.summary() for name, found in self.differences.items()},
            "warnings": list(self.warnings),
        }


def compared(
    first: tuple[str, Sequence[ScoredAnswer]],
    second: tuple[str, Sequence[ScoredAnswer]],
    task_ids: Iterable[str] | None = None,
) -> AgentComparison:
    """Compare two agents, each given by its name and answers.

    Args:
        task_ids: the tasks that count, with 0 for what is missing; by default those in which both agents have
            a score.

    Raises:
        UsageError: there is no such task.
        ValueError: two answers of an agent have the same task and name.
    """
    names = (first[0], second[0])
    grids, warnings = _grids(names, (first[1], second[1]), task_ids)
    metrics = [_renamed(sampled_metrics(grid), len(grid.runs)) for grid in grids]
    scored = [answer for grid in grids for answer in grid.scored_answers]
    return AgentComparison(
        *names,
        tasks=tuple(grids[0].tasks),
        differences=_differences(*metrics),
        warnings=(*warnings, *_unequal_runs(names, grids), *mixture_warnings(scored, "compared")),
    )


def _grids(
    names: tuple[str, str],
    answers: tuple[Sequence[ScoredAnswer], Sequence[ScoredAnswer]],
    task_ids: Iterable[str] | None,
) -> tuple[list[ScoreGrid], list[str]]:
    if task_ids is not None:
        wanted = list(task_ids)
        return [score_grid(own, wanted) for own in answers], []
    tasks = [{answer.task_id for answer in own if answer.score is not None} for own in answers]
    common = tasks[0] & tasks[1]
    if not common:
        raise UsageError(
            f"nothing to compare: no task has scores of both {names[0]} and {names[1]}; evaluate both on the "
            "same tasks, or name tasks with --task_list, where missing answers count as 0"
        )
    warnings = [
        f"tasks of {name} alone, left out: {name_list(own - common)}"
        for name, own in zip(names, tasks, strict=True)
        if own - common
    ]
    return [score_grid(answer for answer in own if answer.task_id in common) for own in answers], warnings


def _renamed(metrics: Mapping[str, SampledMetric], runs: int) -> dict[str, SampledMetric]:
    return {PASS if name == f"pass_at_{runs}" else name: metric for name, metric in metrics.items()}


def _unequal_runs(names: tuple[str, str], grids: Sequence[ScoreGrid]) -> list[str]:
    runs = [len(grid.runs) for grid in grids]
    if runs[0] == runs[1]:
        return []
    listed = ", ".join(f"{name} {count}" for name, count in zip(names, runs, strict=True))
    return [f"the agents have different numbers of runs, so that pass@k compares unequal chances: {listed}"]


def _differences(
    first: Mapping[str, SampledMetric], second: Mapping[str, SampledMetric]
) -> dict[str, Difference]:
    sides = {}
    for name in first:
        tasks = sorted(first[name].values.keys() & second[name].values.keys(), key=natural_key)
        if tasks:
            sides[name] = first[name].over(tasks), second[name].over(tasks)
    # Each resample takes the same tasks of both agents: that some tasks are hard for all cancels out.
    differences = {name: other.minus(one) for name, (one, other) in sides.items()}
    digits = {name: metric.digits for name, metric in first.items()}
    sampled = sampled_intervals(differences, digits, "the difference is the same at every task")
    return {
        name: Difference(sides[name][0].value, sides[name][1].value, sampled[name])
        if name in sides
        else Difference(None, None, sampled[name])
        for name in first
    }
