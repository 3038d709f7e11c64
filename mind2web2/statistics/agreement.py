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


def agreement_share(pairs: Sequence[tuple[bool, bool]]) -> Estimate:
    """Return the share of pairs that agree, with Wilson's interval (Wilson 1927)."""
    return share(sum(one == other for one, other in pairs), len(pairs))


def share(count: int, total: int) -> Estimate:
    """Return a proportion with Wilson's score interval (Wilson 1927)."""
    if not total:
        return UNKNOWN
    found = count / total
    center = (found + _Z**2 / (2 * total)) / (1 + _Z**2 / total)
    spread = _Z / (1 + _Z**2 / total) * math.sqrt(found * (1 - found) / total + _Z**2 / (4 * total**2))
    return Estimate(found, max(0.0, center - spread), min(1.0, center + spread))


def cohen_kappa(pairs: Sequence[tuple[bool, bool]]) -> Estimate:
    """Return Cohen's kappa of two raters.

    The standard error is that of Fleiss, Cohen and Everitt (1969), for kappa not assumed to be 0. Raters who
    both give one and the same label throughout leave kappa undetermined.
    """
    total = len(pairs)
    if not total:
        return UNKNOWN
    cells = {
        (i, j): sum(pair == (i, j) for pair in pairs) / total for i in (True, False) for j in (True, False)
    }
    rows = {i: cells[i, True] + cells[i, False] for i in (True, False)}
    columns = {j: cells[True, j] + cells[False, j] for j in (True, False)}
    observed = cells[True, True] + cells[False, False]
    expected = sum(rows[i] * columns[i] for i in rows)
    if math.isclose(expected, 1):
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


def gwet_ac1(pairs: Sequence[tuple[bool, bool]]) -> Estimate:
    """Return Gwet's AC1 of two raters, which stays meaningful where nearly all labels are the same.

    Value and standard error as in Gwet (2008), linearised over the rated items.
    """
    total = len(pairs)
    if total < 2:
        return UNKNOWN
    positive = [(one + other) / 2 for one, other in pairs]
    prevalence = fmean(positive)
    expected = 2 * prevalence * (1 - prevalence)
    ac1 = (fmean(one == other for one, other in pairs) - expected) / (1 - expected)
    linearised = []
    for (one, other), own in zip(pairs, positive, strict=True):
        own_expected = own * (1 - prevalence) + (1 - own) * prevalence
        item = ((one == other) - expected) / (1 - expected)
        linearised.append(item - 2 * (1 - ac1) * (own_expected - expected) / (1 - expected))
    variance = sum((value - ac1) ** 2 for value in linearised) / (total * (total - 1))
    return Estimate.around(ac1, math.sqrt(variance), (-1.0, 1.0))
