"""Item analysis: what the leaves of a rubric tell about the answers, from tables of verdicts.

Pure.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

# Fewer results say little about a leaf.
ENOUGH_RESULTS = 12

Verdict = Literal["passed", "failed", "skipped", "undecided", "absent"]
Label = Literal["always true", "always false", "never reached", "dead"]


@dataclass(frozen=True)
class ItemCounts:
    """How often a leaf had each verdict; ``absent`` counts results whose tree lacks it."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    undecided: int = 0
    absent: int = 0

    @property
    def reached(self) -> int:
        """Return the number of results in which the leaf was decided."""
        return self.passed + self.failed


def counts_of(verdicts: Sequence[Verdict]) -> ItemCounts:
    """Return how often each verdict occurs."""
    return ItemCounts(
        *(verdicts.count(name) for name in ("passed", "failed", "skipped", "undecided", "absent"))
    )


def labels_of(counts: ItemCounts, matters: Sequence[bool]) -> list[Label]:
    """Return what is conspicuous about a leaf.

    Args:
        matters: for each result in which the leaf was decided, whether another verdict would have
            changed the score.
    """
    if not counts.reached:
        return ["never reached"]
    labels: list[Label] = []
    if not counts.failed:
        labels.append("always true")
    if not counts.passed:
        labels.append("always false")
    if not any(matters):
        labels.append("dead")
    return labels


def twins(table: Mapping[str, Sequence[Verdict]]) -> list[tuple[str, ...]]:
    """Return groups of leaves with the same verdict in every result.

    Leaves that always or never pass are alike by themselves, and are left out.

    Args:
        table: the verdicts of each leaf, result by result.
    """
    groups: dict[tuple[Verdict, ...], list[str]] = defaultdict(list)
    for name, verdicts in table.items():
        if {"passed", "failed"} <= set(verdicts):
            groups[tuple(verdicts)].append(name)
    return [tuple(names) for names in groups.values() if len(names) > 1]


def rest_correlation(item: Sequence[bool | None], rest: Sequence[float]) -> float | None:
    """Return the correlation of a leaf's verdict with the share of other leaves that passed.

    Low or negative: the leaf measures something else than the rest. ``None`` where either does not
    vary.

    Args:
        item: whether the leaf passed in each result, ``None`` where it was not decided.
        rest: the share of the other leaves that passed, in the same results.
    """
    pairs = [
        (float(passed), share)
        for passed, share in zip(item, rest, strict=True)
        if passed is not None
    ]
    if len(pairs) < 3:
        return None
    mean_x = fmean(x for x, _ in pairs)
    mean_y = fmean(y for _, y in pairs)
    across = sum((x - mean_x) * (y - mean_y) for x, y in pairs)
    spread_x = sum((x - mean_x) ** 2 for x, _ in pairs)
    spread_y = sum((y - mean_y) ** 2 for _, y in pairs)
    if spread_x < 1e-12 or spread_y < 1e-12:
        return None
    return across / math.sqrt(spread_x * spread_y)


@dataclass(frozen=True)
class TaskFigures:
    """The power of a task to distinguish agents.

    Args:
        saturated: all scores are 1, or all are 0.
        discrimination: the highest mean of an agent less the lowest; ``None`` for one agent.
        between_agents: the part of the scores' variance within the task that lies between agents
            (eta squared); ``None`` for one agent, or scores that do not vary.
        variance_share: the task's part of the sum, over tasks, of the squared differences between
            the agents' means and their middle.
    """

    saturated: bool
    discrimination: float | None
    between_agents: float | None
    variance_share: float | None = None


def task_figures(
    scores: Mapping[str, Mapping[str, Sequence[float]]],
) -> dict[str, TaskFigures]:
    """Return the figures of each task.

    Args:
        scores: by task and agent.
    """
    spreads = {task: _spread_of_means(agents) for task, agents in scores.items()}
    total = sum(spreads.values())
    found = {}
    for task, agents in scores.items():
        every = [score for values in agents.values() for score in values]
        means = [fmean(values) for values in agents.values()]
        several = len(agents) > 1
        found[task] = TaskFigures(
            saturated=bool(every) and (min(every) >= 1 or max(every) <= 0),
            discrimination=max(means) - min(means) if several else None,
            between_agents=_eta_squared(list(agents.values())) if several else None,
            variance_share=spreads[task] / total if several and total > 0 else None,
        )
    return found


def _spread_of_means(agents: Mapping[str, Sequence[float]]) -> float:
    means = [fmean(values) for values in agents.values()]
    middle = fmean(means)
    return sum((mean - middle) ** 2 for mean in means)


def _eta_squared(groups: Sequence[Sequence[float]]) -> float | None:
    every = [score for group in groups for score in group]
    middle = fmean(every)
    total = sum((score - middle) ** 2 for score in every)
    if total < 1e-12:
        return None
    return sum(len(group) * (fmean(group) - middle) ** 2 for group in groups) / total
