"""Paired values, of two agents or of two raters: differences and agreement; pure.

Differences have one value for each task: those of several runs are averaged first, as tasks are
independent of each other and runs of one task are not. Under no difference each task's difference
is as likely as its opposite, which the test takes literally: it flips signs (Fisher's randomisation
test; with values 0 and 1 of single runs McNemar's). Patterns as extreme as the observed one count
half (mid-p, Lancaster 1961; for McNemar's test Fagerland, Lydersen and Laake 2013): scores are
coarse, and ties that count whole make p-values too large. With fewer than six tasks they count
whole, so that such a p-value is never below 5%.

The interval inverts the test: its ends are quantiles of the means of random subsets of the tasks
(Hartigan 1969, "Using subsample values as typical values"), where values equal to an end count half
as well. No normal approximation is involved, but symmetry is: where differences have a mean of 0
and are lopsided, test and interval err as t tests do.
"""

from __future__ import annotations

import math
import operator
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist, fmean

from mind2web2.statistics.uncertainty import (
    LEVEL,
    MIN_TASKS,
    SEED,
    Interval,
    Limits,
    limit_interval,
    wilson,
)
from mind2web2.utils.text import percent, points, points_range

DRAWS = 20_000
# Up to so many tasks all 2^n sign patterns are enumerated, beyond so many as DRAWS are drawn.
MAX_ENUMERATED = 13
METHOD = (
    "sign flips of the tasks' differences (means of random subsets of tasks, Hartigan 1969); "
    "exact (Clopper-Pearson) where all differences are at one limit"
)
_LABELS = (True, False)
_NOISE = 1e-9
# Sums of the same numbers in another order are equal to so many digits.
_DIGITS = 9
# The share of the patterns beyond each end of an interval.
_TAIL = (1 - LEVEL) / 2
_Z = NormalDist().inv_cdf((1 + LEVEL) / 2)
_Z_POWER = NormalDist().inv_cdf(0.8)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its 95% interval; ``None`` where the data does not determine it."""

    value: float | None
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        """Return a share in words, such as ``60% (44% to 75%)``."""
        return self.in_words(percent, "an unknown share")

    def in_words(self, shown: Callable[[float], str], unknown: str) -> str:
        """Return the figure and its interval, each value as ``shown`` writes it."""
        if self.value is None:
            return unknown
        if self.low is None or self.high is None:
            return shown(self.value)
        return f"{shown(self.value)} ({shown(self.low)} to {shown(self.high)})"

    @classmethod
    def of_share(cls, hits: float, items: float) -> Estimate:
        """Return a share with Wilson's score interval (1927); unknown without an item."""
        if not items:
            return cls(None)
        return cls(hits / items, *wilson(hits / items, items))

    @classmethod
    def around(cls, coefficient: float, standard_error: float) -> Estimate:
        """Return the normal interval around a coefficient of agreement, cut at -1 and 1."""
        margin = _Z * standard_error
        low = max(-1.0, coefficient - margin)
        high = min(1.0, coefficient + margin)
        return cls(coefficient, low, high)


UNKNOWN = Estimate(None)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two raters' labels of one item.

    ``weight`` is in inverse proportion to its chance to be sampled.
    """

    one: bool
    other: bool
    weight: float = 1.0


def _effective_number(weights: Sequence[float]) -> float:
    """Return how many items of equal weight determine a proportion as well (Kish 1965)."""
    total = sum(weights)
    total_of_squares = sum(weight**2 for weight in weights)
    return total**2 / total_of_squares


def share_difference(first: Estimate, second: Estimate) -> Estimate:
    """Return the second share minus the first, by their intervals (Newcombe 1998)."""
    if first.value is None or second.value is None:
        return UNKNOWN
    difference = second.value - first.value
    if first.low is None or first.high is None or second.low is None or second.high is None:
        return Estimate(difference)
    # Distances of each share from the ends of its own interval.
    first_below = first.value - first.low
    first_above = first.high - first.value
    second_below = second.value - second.low
    second_above = second.high - second.value
    margin_below = math.hypot(second_below, first_above)
    margin_above = math.hypot(second_above, first_below)
    low = difference - margin_below
    high = difference + margin_above
    return Estimate(difference, low, high)


def cohen_kappa(pairs: Sequence[Pair]) -> Estimate:
    """Return Cohen's kappa of two raters.

    The standard error is that of Fleiss, Cohen and Everitt (1969), for kappa not assumed to be 0,
    with the effective number of items. A rater who gives one label throughout leaves it
    undetermined.
    """
    if not pairs:
        return UNKNOWN
    table = _label_shares(pairs)
    rows: dict[bool, float] = {}
    columns: dict[bool, float] = {}
    for label in _LABELS:
        rows[label] = table[label, True] + table[label, False]
        columns[label] = table[True, label] + table[False, label]
    margins = (*rows.values(), *columns.values())
    if any(math.isclose(margin, 1) for margin in margins):
        return UNKNOWN
    observed = table[True, True] + table[False, False]
    expected = sum(rows[label] * columns[label] for label in _LABELS)
    disagreed = 1 - observed
    disagreed_by_chance = 1 - expected
    kappa = (observed - expected) / disagreed_by_chance
    # The three terms of the variance, by the names of the table's cells that they sum over.
    diagonal = 0.0
    off_diagonal = 0.0
    for (one, other), cell in table.items():
        if one == other:
            margin = rows[one] + columns[one]
            deviation = disagreed_by_chance - margin * disagreed
            diagonal += cell * deviation**2
        else:
            margin = columns[one] + rows[other]
            off_diagonal += cell * margin**2
    rest = (observed * expected - 2 * expected + observed) ** 2
    numerator = diagonal + disagreed**2 * off_diagonal - rest
    effective = _effective_number([pair.weight for pair in pairs])
    variance = numerator / (effective * disagreed_by_chance**4)
    standard_error = math.sqrt(max(0.0, variance))
    return Estimate.around(kappa, standard_error)


def _label_shares(pairs: Sequence[Pair]) -> dict[tuple[bool, bool], float]:
    """Return the weighted share of items with each pair of labels: the raters' 2 x 2 table."""
    total = sum(pair.weight for pair in pairs)
    shares = {}
    for one in _LABELS:
        for other in _LABELS:
            weights = []
            for pair in pairs:
                if pair.one == one and pair.other == other:
                    weights.append(pair.weight)
            shares[one, other] = sum(weights) / total
    return shares


def gwet_ac1(pairs: Sequence[Pair]) -> Estimate:
    """Return Gwet's AC1 of two raters, which stays meaningful where nearly all labels are the same.

    Value and standard error as in Gwet (2008), linearised over the rated items.
    """
    total = len(pairs)
    if total < 2:
        return UNKNOWN
    mean_weight = fmean(pair.weight for pair in pairs)
    weights = []
    positive = []
    agreements = []
    for pair in pairs:
        weights.append(pair.weight / mean_weight)
        positive.append((pair.one + pair.other) / 2)
        agreements.append(pair.one == pair.other)
    prevalence = fmean(map(operator.mul, weights, positive))
    expected = 2 * prevalence * (1 - prevalence)
    agreed = fmean(map(operator.mul, weights, agreements))
    disagreed_by_chance = 1 - expected
    ac1 = (agreed - expected) / disagreed_by_chance
    squares = 0.0
    for agrees, positive_share, weight in zip(agreements, positive, weights, strict=True):
        own_expected = positive_share * (1 - prevalence) + (1 - positive_share) * prevalence
        item = (agrees - expected) / disagreed_by_chance
        surplus = own_expected - expected
        linearised = item - 2 * (1 - ac1) * surplus / disagreed_by_chance
        deviation = weight * (linearised - ac1)
        squares += deviation**2
    variance = squares / (total * (total - 1))
    standard_error = math.sqrt(variance)
    return Estimate.around(ac1, standard_error)


@dataclass(frozen=True, slots=True)
class PairedTest:
    """The mean difference of pairs.

    Args:
        p_value: two-sided mid-p-value of no difference; ``None`` without pairs.
        interval: at ``LEVEL``; ``None`` with fewer than six tasks, or where all differences are the
            same, unless they are 0 or at a limit.
        is_exact: the p-value counts all sign patterns; otherwise it counts drawn ones.
    """

    difference: float
    p_value: float | None
    interval: Interval | None
    is_exact: bool

    def __str__(self) -> str:
        """Return a difference of shares in words, such as ``+5 points (-3 to +12 points)``."""
        if self.interval is None:
            return points(self.difference)
        return f"{points(self.difference)} ({points_range(self.interval.low, self.interval.high)})"

    @classmethod
    def of(cls, differences: Sequence[float], limits: Limits = None) -> PairedTest:
        """Test whether the mean of independent differences is 0.

        Args:
            limits: the least and the greatest possible difference, where there are any.
        """
        if not differences:
            return cls(0.0, None, None, is_exact=True)
        mean = fmean(differences)
        # Differences of 0 stay the same with either sign.
        moved = []
        sizes = set()
        for value in differences:
            size = abs(value)
            if size > _NOISE:
                moved.append(value)
                sizes.add(round(size, _DIGITS))
        # With one size, the number of positive differences decides how extreme a pattern is.
        is_binomial = len(sizes) <= 1
        is_enumerated = len(moved) <= MAX_ENUMERATED
        subsets = _subset_sums(differences)
        weight_of_ties = 1 if len(differences) >= MIN_TASKS else 2
        if is_binomial:
            positive = sum(value > 0 for value in moved)
            p_value = _binomial_p_value(positive, len(moved), weight_of_ties)
        elif is_enumerated:
            of_moved = _subset_sums(moved)
            p_value = _sign_flip_p_value(mean, of_moved, weight_of_ties)
        else:
            p_value = _sign_flip_p_value(mean, subsets, weight_of_ties)
        interval = _interval(differences, mean, limits, subsets)
        is_exact = is_binomial or is_enumerated
        return cls(mean, p_value, interval, is_exact)

    @staticmethod
    def adjusted(p_values: Sequence[float]) -> list[float]:
        """Return p-values adjusted for being several (Holm 1979), in the given order."""
        adjusted = [0.0] * len(p_values)
        greatest = 0.0
        places = sorted(range(len(p_values)), key=lambda place: p_values[place])
        for rank, place in enumerate(places):
            hypotheses_left = len(p_values) - rank
            corrected = hypotheses_left * p_values[place]
            # An adjusted p-value is never below that of a smaller p-value.
            greatest = max(greatest, corrected)
            adjusted[place] = min(1.0, greatest)
        return adjusted


def _binomial_p_value(positive: int, total: int, weight_of_ties: int) -> float:
    """Return the two-sided mid-p-value of equal chances (McNemar's for discordant pairs)."""
    fewer = min(positive, total - positive)
    more_extreme = sum(math.comb(total, k) for k in range(fewer))
    ties = math.comb(total, fewer) * weight_of_ties
    patterns = 1 << total
    share_of_patterns = (2 * more_extreme + ties) / patterns
    return min(1.0, share_of_patterns)


def _sign_flip_p_value(
    mean: float, subsets: Sequence[tuple[float, int]], weight_of_ties: int
) -> float:
    # With a subset's signs flipped the sum is as extreme if the subset's own sum is 0, and more
    # extreme if that is on the other side of 0.
    sign = math.copysign(1, mean)
    more_extreme = 0
    as_extreme = 0
    for total, _ in subsets:
        if abs(total) <= _NOISE:
            as_extreme += 1
        elif sign * total < 0:
            more_extreme += 1
    # Together with the observed pattern, so that it is never 0 (Phipson and Smyth 2010).
    ties = weight_of_ties * (as_extreme + 1)
    share_of_patterns = (2 * more_extreme + ties) / (len(subsets) + 1)
    return min(1.0, share_of_patterns)


def _interval(
    differences: Sequence[float],
    mean: float,
    limits: Limits,
    subsets: Sequence[tuple[float, int]],
) -> Interval | None:
    if len(differences) < MIN_TASKS:
        return None
    if max(differences) - min(differences) <= _NOISE:
        return _interval_of_equal(mean, len(differences), limits)
    counts: Counter[float] = Counter()
    for total, size in subsets:
        subset_mean = round(total / size, _DIGITS)
        counts[subset_mean] += 1
    ordered = sorted(counts.items())
    mirrored = [(-value, count) for value, count in reversed(ordered)]
    low = _mid_quantile(ordered)
    high = -_mid_quantile(mirrored)
    return Interval(low, high)


def _interval_of_equal(mean: float, tasks: int, limits: Limits) -> Interval | None:
    """Return the interval of differences that are all the same."""
    if limits is not None and abs(mean) <= _NOISE and limits[0] < 0 < limits[1]:
        # A share of tasks that differ of which none is seen, all of them in one direction.
        unnoticed = 1 - _TAIL ** (1 / tasks)
        low = limits[0] * unnoticed
        high = limits[1] * unnoticed
        return Interval(low, high, is_exact=True)
    return limit_interval(mean, tasks, limits)


def _mid_quantile(ordered: Sequence[tuple[float, int]]) -> float:
    """Return the lower end of the interval from the means of subsets and how often each occurs.

    Means equal to the end count half, as in the mid-p-value, so that test and interval agree.
    Between two means it is interpolated (Ma, Genton and Parzen 2011).
    """
    # With the empty subset, as in the test.
    total = sum(count for _, count in ordered) + 1
    below = 0
    earlier: tuple[float, float] | None = None
    for value, count in ordered:
        half_of_equal = (count + 1) / 2
        share = (below + half_of_equal) / total
        if share >= _TAIL:
            if earlier is None:
                return value
            earlier_value, earlier_share = earlier
            lacking = _TAIL - earlier_share
            step = lacking / (share - earlier_share)
            return earlier_value + step * (value - earlier_value)
        below += count
        earlier = (value, share)
    return ordered[-1][0]


def _subset_sums(values: Sequence[float]) -> list[tuple[float, int]]:
    """Return sums and sizes of all non-empty subsets of a few values, or of random ones of many."""
    # A pattern has one byte for eight values, and each byte looks its sum up.
    tables = []
    for start in range(0, len(values), 8):
        of_byte = values[start : start + 8]
        tables.append(_sums_of_byte(of_byte))
    sums = []
    for pattern, size in _subsets(len(values)):
        total = sum(map(operator.getitem, tables, pattern))
        sums.append((total, size))
    if len(values) > MAX_ENUMERATED:
        # The complement of a random subset is one as well.
        everything = math.fsum(values)
        complements = []
        for total, size in sums:
            rest = len(values) - size
            complements.append((everything - total, rest))
        sums += complements
    return sums


def _sums_of_byte(values: Sequence[float]) -> list[float]:
    """Return the sum of each subset of up to eight values, by the subset's bits."""
    sums = [0.0]
    for value in values:
        sums += [total + value for total in sums]
    return sums


@lru_cache(maxsize=8)
def _subsets(count: int) -> list[tuple[bytes, int]]:
    """Return subsets of so many values, a bit for each value, with their sizes."""
    whole = 2**count - 1
    if count <= MAX_ENUMERATED:
        patterns = list(range(1, whole + 1))
    else:
        draws = random.Random(SEED)
        patterns = []
        for _ in range(DRAWS):
            bits = draws.getrandbits(count)
            # A subset and its complement both count, and neither may be empty.
            is_proper = 0 < bits < whole
            patterns.append(bits if is_proper else 1)
    width = (count + 7) // 8
    subsets = []
    for bits in patterns:
        pattern = bits.to_bytes(width, "little")
        subsets.append((pattern, bits.bit_count()))
    return subsets


def detectable_difference(tasks: int, variance_of_task: float) -> float | None:
    """Return the smallest difference that so many tasks show with 80% power, if any."""
    effective = tasks - _Z**2 / 2
    if effective <= 0:
        return None
    standard_error = math.sqrt(variance_of_task / effective)
    return (_Z + _Z_POWER) * standard_error
