"""A mean from few exact values and many predictions: PPI++ (Angelopoulos, Duchi and Zrnic 2023); pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from statistics import fmean

from mind2web2.statistics.agreement import LEVEL, UNKNOWN, Estimate
from mind2web2.statistics.bootstrap import MIN_TASKS, student_quantile


@dataclass(frozen=True, slots=True)
class Labelled:
    """An item with its exact value.

    Args:
        exact: such as the score by human labels.
        predicted: such as the score by the judge.
        weight: in inverse proportion to the item's chance to be labelled; only ratios count.
    """

    exact: float
    predicted: float
    weight: float = 1.0


def ppi_mean(
    labelled: Sequence[Labelled],
    unlabelled: Sequence[float],
    tasks: tuple[Sequence[Hashable], Sequence[Hashable]] | None = None,
) -> tuple[Estimate, float]:
    """Return the mean of exact values over all items, and the weight lambda that predictions got in it.

    Lambda is tuned for the smallest variance and kept within 0 and 1: 0 ignores the predictions.

    Args:
        unlabelled: the predictions of all other items.
        tasks: of the labelled and of the other items; items of one task depend on each other. The interval
            then takes labels of ``MIN_TASKS`` tasks. By default all items are independent.
    """
    count, others = len(labelled), len(unlabelled)
    if count < 2:
        return UNKNOWN, 0.0
    scale = fmean(item.weight for item in labelled)
    weights = [item.weight / scale for item in labelled]
    tuned = _tuned(labelled, weights, unlabelled) if others else 0.0
    corrections = [item.exact - tuned * item.predicted for item in labelled]
    correction = fmean(weight * value for weight, value in zip(weights, corrections, strict=True))
    known, rest = tasks or (range(count), range(count, count + others))
    # The influence of each task on the mean (Liang and Zeger 1986).
    influence: dict[Hashable, float] = defaultdict(float)
    for task, weight, value in zip(known, weights, corrections, strict=True):
        # Around their mean: weights alone are no reason for a wider interval.
        influence[task] += weight * (value - correction) / count
    mean = correction
    if others:
        average = fmean(unlabelled)
        mean += tuned * average
        for task, value in zip(rest, unlabelled, strict=True):
            influence[task] += tuned * (value - average) / others
    error = math.sqrt(sum(value**2 for value in influence.values()))
    mean = min(1.0, max(0.0, mean))
    if tasks is None:
        return Estimate.around(mean, error, (0.0, 1.0)), tuned
    several = len(set(known))
    if several < MIN_TASKS:
        return Estimate(mean), tuned
    reach = student_quantile((1 + LEVEL) / 2, several - 1) * math.sqrt(several / (several - 1)) * error
    return Estimate(mean, max(0.0, mean - reach), min(1.0, mean + reach)), tuned


def _tuned(labelled: Sequence[Labelled], weights: Sequence[float], unlabelled: Sequence[float]) -> float:
    """Return the lambda with the smallest variance, from the gradients at the estimate with lambda 1."""
    start = fmean(unlabelled) + fmean(
        weight * (item.exact - item.predicted) for item, weight in zip(labelled, weights, strict=True)
    )
    exact = [weight * (item.exact - start) for item, weight in zip(labelled, weights, strict=True)]
    predicted = [weight * (item.predicted - start) for item, weight in zip(labelled, weights, strict=True)]
    everywhere = [*predicted, *(value - start for value in unlabelled)]
    spread = _variance(everywhere) * len(everywhere) / (len(everywhere) - 1)
    if not spread:
        return 0.0
    centers = fmean(exact), fmean(predicted)
    covariance = fmean(
        (one - centers[0]) * (other - centers[1]) for one, other in zip(exact, predicted, strict=True)
    )
    return min(1.0, max(0.0, covariance / ((1 + len(labelled) / len(unlabelled)) * spread)))


def _variance(values: Sequence[float]) -> float:
    mean = fmean(values)
    return fmean((value - mean) ** 2 for value in values)
