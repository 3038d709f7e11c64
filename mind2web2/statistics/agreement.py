"""How far two raters agree beyond chance: Cohen's kappa and Gwet's AC1, with intervals; pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean

LEVEL = 0.95
_Z = NormalDist().inv_cdf((1 + LEVEL) / 2)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its 95% interval; ``None`` where the data does not determine it."""

    value: float | None
    low: float | None = None
    high: float | None = None

    @classmethod
    def around(cls, value: float, standard_error: float, limits: tuple[float, float]) -> Estimate:
        """Return the normal interval around an estimate, cut at the limits of what it can be."""
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
