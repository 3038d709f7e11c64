"""Agents over the tasks that all of them have: their metrics, and how sure the differences are; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from mind2web2.errors import UsageError
from mind2web2.runs.metrics import SampledMetric, sampled_metrics
from mind2web2.runs.score_matrix import ScoredAnswer, ScoreGrid, mixture_warnings, score_grid
from mind2web2.statistics.bootstrap import LEVEL, SEED, Limits, SampledInterval, too_few
from mind2web2.statistics.paired import DRAWS, METHOD, paired_test
from mind2web2.utils.text import name_list, natural_key

# Pass@k of either agent, whose k may differ.
PASS = "pass_at_k"
# An agent's name and its answers.
Agent = tuple[str, Sequence[ScoredAnswer]]


class NoSharedTaskError(UsageError):
    """No task has scores of all agents that are compared; ``fact`` says so without a command's options."""

    def __init__(self, fact: str, cure: str) -> None:
        super().__init__(f"nothing to compare: {fact}; {cure}")
        self.fact = fact


@dataclass(frozen=True, slots=True)
class Difference:
    """One metric of two agents over the tasks where both have a value, averaged over each task's runs.

    Args:
        first: the first agent's value; ``None`` where no task has a value of both, like ``second``.
        sampled: the interval of the second value minus the first.
        p_value: of no difference, two-sided; ``None`` where no task has a value of both.
        by_task: each task's difference.
    """

    first: float | None
    second: float | None
    sampled: SampledInterval
    p_value: float | None
    by_task: Mapping[str, float]

    @property
    def value(self) -> float | None:
        """Return the second agent's value minus the first's."""
        return None if self.first is None or self.second is None else self.second - self.first

    @property
    def is_clear(self) -> bool:
        """Tell whether other tasks of the kind would hardly change the sign of the difference."""
        return self.sampled.interval is not None and self.sampled.interval.excludes(0)

    def summary(self) -> dict[str, Any]:
        """Return it as ``mind2web2 metrics --json`` and ``compare --json`` print it."""
        numbers = {"first": self.first, "second": self.second, "difference": self.value}
        rounded = {
            name: None if value is None else round(value, self.sampled.digits)
            for name, value in numbers.items()
        }
        p_value = None if self.p_value is None else round(self.p_value, 6)
        return {**rounded, **self.sampled.summary(), "p_value": p_value, "clear": self.is_clear}


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
            **METHOD_SUMMARY,
            "metrics": {name: found.summary() for name, found in self.differences.items()},
            "warnings": list(self.warnings),
        }


METHOD_SUMMARY = {"level": LEVEL, "method": METHOD, "resamples": DRAWS, "seed": SEED}


def compared(first: Agent, second: Agent, task_ids: Iterable[str] | None = None) -> AgentComparison:
    """Compare two agents.

    Args:
        task_ids: the tasks that count, with 0 for what is missing; by default those in which both agents have
            a score.

    Raises:
        NoSharedTaskError: there is no such task.
        ValueError: two answers of an agent have the same task and name.
    """
    grids, warnings = shared_grids([first, second], task_ids)
    one, other = map(metrics_of, grids)
    return AgentComparison(
        first[0],
        second[0],
        tasks=tuple(grids[0].tasks),
        differences={name: difference(one[name], other[name]) for name in one},
        warnings=tuple(warnings),
    )


def shared_grids(
    agents: Sequence[Agent], task_ids: Iterable[str] | None
) -> tuple[list[ScoreGrid], list[str]]:
    """Return the scores of agents over the tasks of all of them, and warnings about their differences.

    Raises:
        NoSharedTaskError: there is no such task.
    """
    names = [name for name, _ in agents]
    if task_ids is not None:
        wanted = list(task_ids)
        grids, warnings = [score_grid(own, wanted) for _, own in agents], []
    else:
        tasks = [{answer.task_id for answer in own if answer.score is not None} for _, own in agents]
        common = set.intersection(*tasks)
        if not common:
            every = "both" if len(agents) == 2 else "all of"
            raise NoSharedTaskError(
                f"no task has scores of {every} {' and '.join(names)}",
                f"evaluate {every.removesuffix(' of')} on the same tasks, or name tasks with --task_list, "
                "where missing answers count as 0",
            )
        alone = "alone" if len(agents) == 2 else "that others lack"
        warnings = [
            f"tasks of {name} {alone}, left out: {name_list(own - common)}"
            for name, own in zip(names, tasks, strict=True)
            if own - common
        ]
        grids = [score_grid(answer for answer in own if answer.task_id in common) for _, own in agents]
    scored = [answer for grid in grids for answer in grid.scored_answers]
    return grids, [*warnings, *_unequal_runs(names, grids), *mixture_warnings(scored, "compared")]


def metrics_of(grid: ScoreGrid) -> dict[str, SampledMetric]:
    """Return an agent's metrics by names that are the same for all numbers of runs."""
    pass_name = f"pass_at_{len(grid.runs)}"
    return {PASS if name == pass_name else name: metric for name, metric in sampled_metrics(grid).items()}


def _unequal_runs(names: Sequence[str], grids: Sequence[ScoreGrid]) -> list[str]:
    runs = [len(grid.runs) for grid in grids]
    if len(set(runs)) == 1:
        return []
    listed = ", ".join(f"{name} {count}" for name, count in zip(names, runs, strict=True))
    return [f"the agents have different numbers of runs, so that pass@k compares unequal chances: {listed}"]


def difference(first: SampledMetric, second: SampledMetric) -> Difference:
    """Return the second metric minus the first over the tasks where both have a value."""
    tasks = sorted(first.values.keys() & second.values.keys(), key=natural_key)
    sides = [[metric.of_task(task) for task in tasks] for metric in (first, second)]
    by_task = {task: other - one for task, one, other in zip(tasks, *sides, strict=True)}
    found = paired_test(list(by_task.values()), _limits(first.limits, second.limits))
    reason = too_few(len(tasks))
    if reason is None and found.interval is None:
        reason = "the difference is the same at every task"
    interval = None if reason else found.interval
    one, other = (fmean(side) if side else None for side in sides)
    sampled = SampledInterval(len(tasks), interval, reason, first.digits)
    return Difference(one, other, sampled, found.p_value, by_task)


def _limits(first: Limits, second: Limits) -> Limits:
    return None if first is None or second is None else (second[0] - first[1], second[1] - first[0])
