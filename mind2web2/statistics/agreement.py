"""How far two raters agree, from counts by task: leaves of one task are not independent; pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from mind2web2.statistics.paired import UNKNOWN, Estimate, Pair, cohen_kappa, gwet_ac1
from mind2web2.statistics.uncertainty import (
    LEVEL,
    MIN_TASKS,
    Limits,
    Statistic,
    bootstrap_intervals,
    student_quantile,
    sums_of,
    wilson,
)

# Verdicts of two raters on a leaf, in the order of the counts of a task.
CELLS = [(True, True), (True, False), (False, True), (False, False)]
_TAIL = (1 - LEVEL) / 2
_NORMAL = NormalDist()
_NOISE = 1e-12
# Agreement is printed with three digits, which these show; more would take seconds.
_RESAMPLES = 2_000


class Cells:
    """A task's verdicts of two raters."""

    def __init__(self) -> None:
        self.counts = [0.0] * len(CELLS)

    def add(self, one: bool, other: float) -> None:
        """Count a leaf; ``other`` is the share of the second side that passes it."""
        self.counts[CELLS.index((one, True))] += other
        self.counts[CELLS.index((one, False))] += 1 - other


@dataclass(frozen=True, slots=True)
class Figures:
    """The agreement of a judge, or of a first rater, with a second one; intervals are over tasks.

    Args:
        wrong_passes: share of the leaves that the first passes and the second does not.
        wrong_failures: share of the leaves that the first fails and the second passes.
    """

    agreement: Estimate
    kappa: Estimate
    ac1: Estimate
    wrong_passes: Estimate
    wrong_failures: Estimate


def figures_of(cells: Mapping[str, Cells]) -> Figures:
    """Return the figures of leaves by task."""
    rows = [cell.counts for cell in cells.values()]
    kappa, ac1 = _resample(rows, [(coefficient(cohen_kappa), None), (coefficient(gwet_ac1), None)])
    return Figures(
        agreement=share_by_task([(row[0] + row[3], sum(row)) for row in rows]),
        kappa=kappa,
        ac1=ac1,
        wrong_passes=share_by_task([(row[1], row[0] + row[1]) for row in rows]),
        wrong_failures=share_by_task([(row[2], row[2] + row[3]) for row in rows]),
    )


def share_by_task(rows: Sequence[tuple[float, float]]) -> Estimate:
    """Return a share from hits and items by task, with its interval; unknown without an item.

    Wilson's interval (1927) for as many independent items as would vary like these tasks (Kish
    1965; Korn and Graubard 1998). Where all items are alike, tasks are the items.
    """
    rows = [row for row in rows if row[1]]
    tasks, total = len(rows), sum(items for _, items in rows)
    if not rows:
        return UNKNOWN
    share = min(1.0, sum(hits for hits, _ in rows) / total)
    if tasks < MIN_TASKS:
        return Estimate(share)
    squares = [(hits - share * items) ** 2 for hits, items in rows]
    varied = sum(squares) * tasks / (tasks - 1) / total**2
    if varied > _NOISE:
        alike = share * (1 - share) / varied
    else:
        alike = float(tasks)
    # Few tasks know their own variance badly: Student's quantile in place of the normal one.
    quantile = student_quantile(1 - _TAIL, _degrees(squares))
    alike *= (_NORMAL.inv_cdf(1 - _TAIL) / quantile) ** 2
    return Estimate(share, *wilson(share, alike))


def _degrees(squares: Sequence[float]) -> float:
    """Return the degrees of freedom of a variance to which tasks contribute these squares.

    Where errors keep to few tasks, these make up most of it. Satterthwaite's (1946) number is for
    that, but too small in simulations, as the number of tasks less one is too large: their
    geometric mean covers best.
    """
    most = len(squares) - 1
    if not sum(squares):
        return most
    alike = sum(squares) ** 2 / sum(square**2 for square in squares)
    return math.sqrt(most * min(most, alike))


def _resample(
    rows: Sequence[Sequence[float]], asked: Sequence[tuple[Statistic, Limits]]
) -> list[Estimate]:
    """Return statistics of sums over tasks with their intervals, all unknown without rows."""
    if not rows:
        return [UNKNOWN] * len(asked)
    sums = sums_of(rows)
    intervals = bootstrap_intervals(rows, asked, resamples=_RESAMPLES)
    return [
        Estimate(
            statistic(sums),
            *(() if interval is None else (interval.low, interval.high)),
        )
        for (statistic, _), interval in zip(asked, intervals, strict=True)
    ]


def coefficient(measure: Callable[[Sequence[Pair]], Estimate]) -> Statistic:
    """Return a coefficient of agreement as a statistic of the sums of the cells."""

    def statistic(sums: Sequence[float]) -> float:
        # Two of each, as a single pair has no coefficient.
        pairs = [
            Pair(*cell, weight=count) for cell, count in zip(CELLS, sums, strict=True) if count
        ] * 2
        value = measure(pairs).value
        if value is None:
            # A rater has one verdict for all: no agreement beyond chance, unless there is no
            # disagreement.
            return float(not sums[1] + sums[2])
        return value

    return statistic
