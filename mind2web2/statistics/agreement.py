"""Labels of people beside those of a judge: agreement of two raters, and means corrected by PPI++; pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean

from mind2web2.statistics.uncertainty import LEVEL, MIN_TASKS, student_quantile

_Z = NormalDist().inv_cdf((1 + LEVEL) / 2)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its 95% interval; ``None`` where the data does not determine it."""

    value: float | None
    low: float | None = None
    high: float | None = None

    @classmethod
    def around(cls, value: float, standard_error: float, limits: tuple[float, float]) -> Estimate:
        """Return the normal interval around an estimate, cut at the limits of its range."""
        low, high = value - _Z * standard_error, value + _Z * standard_error
        return cls(value, max(limits[0], low), min(limits[1], high))


UNKNOWN = Estimate(None)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two raters' labels of one item; ``weight`` is in inverse proportion to its chance to be sampled."""

    one: bool
    other: bool
    weight: float = 1.0


def agreement_share(pairs: Sequence[Pair]) -> Estimate:
    """Return the share of pairs that agree, with Wilson's interval (Wilson 1927)."""
    return share([pair.one == pair.other for pair in pairs], [pair.weight for pair in pairs])


def share(hits: Sequence[bool], weights: Sequence[float] | None = None) -> Estimate:
    """Return a weighted proportion with Wilson's score interval (Wilson 1927).

    With weights, the number of items is the effective one, (sum w)^2 / sum w^2 (Kish 1965).
    """
    if not hits:
        return UNKNOWN
    weights = [1.0] * len(hits) if weights is None else weights
    total = sum(weights) ** 2 / sum(weight**2 for weight in weights)
    found = sum(weight for hit, weight in zip(hits, weights, strict=True) if hit) / sum(weights)
    center = (found + _Z**2 / (2 * total)) / (1 + _Z**2 / total)
    spread = _Z / (1 + _Z**2 / total) * math.sqrt(found * (1 - found) / total + _Z**2 / (4 * total**2))
    return Estimate(found, max(0.0, center - spread), min(1.0, center + spread))


def cohen_kappa(pairs: Sequence[Pair]) -> Estimate:
    """Return Cohen's kappa of two raters.

    The standard error is that of Fleiss, Cohen and Everitt (1969), for kappa not assumed to be 0, with the
    effective number of items. A rater who gives one label throughout leaves it undetermined.
    """
    if not pairs:
        return UNKNOWN
    weights = sum(pair.weight for pair in pairs)
    total = weights**2 / sum(pair.weight**2 for pair in pairs)
    cells = {
        (i, j): sum(pair.weight for pair in pairs if (pair.one, pair.other) == (i, j)) / weights
        for i in (True, False)
        for j in (True, False)
    }
    rows = {i: cells[i, True] + cells[i, False] for i in (True, False)}
    columns = {j: cells[True, j] + cells[False, j] for j in (True, False)}
    observed = cells[True, True] + cells[False, False]
    expected = sum(rows[i] * columns[i] for i in rows)
    if any(math.isclose(share_of, 1) for share_of in (*rows.values(), *columns.values())):
        return UNKNOWN
    kappa = (observed - expected) / (1 - expected)
    diagonal = sum(
        cells[i, i] * ((1 - expected) - (rows[i] + columns[i]) * (1 - observed)) ** 2 for i in rows
    )
    off_diagonal = (1 - observed) ** 2 * sum(
        share_of * (columns[i] + rows[j]) ** 2 for (i, j), share_of in cells.items() if i != j
    )
    rest = (observed * expected - 2 * expected + observed) ** 2
    variance = (diagonal + off_diagonal - rest) / (total * (1 - expected) ** 4)
    return Estimate.around(kappa, math.sqrt(max(0.0, variance)), (-1.0, 1.0))


def gwet_ac1(pairs: Sequence[Pair]) -> Estimate:
    """Return Gwet's AC1 of two raters, which stays meaningful where nearly all labels are the same.

    Value and standard error as in Gwet (2008), linearised over the rated items.
    """
    total = len(pairs)
    if total < 2:
        return UNKNOWN
    scale = fmean(pair.weight for pair in pairs)
    weights = [pair.weight / scale for pair in pairs]
    positive = [(pair.one + pair.other) / 2 for pair in pairs]
    prevalence = fmean(weight * own for weight, own in zip(weights, positive, strict=True))
    expected = 2 * prevalence * (1 - prevalence)
    agreed = fmean(weight * (pair.one == pair.other) for weight, pair in zip(weights, pairs, strict=True))
    ac1 = (agreed - expected) / (1 - expected)
    deviations = []
    for pair, own, weight in zip(pairs, positive, weights, strict=True):
        own_expected = own * (1 - prevalence) + (1 - own) * prevalence
        item = ((pair.one == pair.other) - expected) / (1 - expected)
        linearised = item - 2 * (1 - ac1) * (own_expected - expected) / (1 - expected)
        deviations.append(weight * (linearised - ac1))
    variance = sum(value**2 for value in deviations) / (total * (total - 1))
    return Estimate.around(ac1, math.sqrt(variance), (-1.0, 1.0))


# A mean from few exact values and many predictions: PPI++ (Angelopoulos, Duchi and Zrnic 2023)


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
