"""The interval of a mean score.

Pure, the same for a seed.

Intervals resample tasks. The method is BCa (Efron 1987: percentiles corrected for bias and
skewness) with Student's quantiles in place of the normal ones, widened by sqrt(n / (n - 1))
(Hesterberg 2015). Plain percentiles are too narrow where scores are lopsided or tasks few: of 2%
successes over 130 tasks they cover the truth 91% of the time, over 20 tasks 33%.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from statistics import NormalDist, fmean

from pydantic import BaseModel, ConfigDict

LEVEL = 0.95
RESAMPLES = 10_000
SEED = 0
# No resample leaves the range of the tasks' values. Where a value is as likely above the mean as
# below, all n lie on one side of it 2 * 0.5 ** n of the time, and the whole range misses it: below
# six tasks over 5%.
MIN_TASKS = 6
METHOD = (
    "BCa bootstrap over tasks, Student's quantiles;"
    " exact (Clopper-Pearson) where all tasks are at one limit"
)

_NORMAL = NormalDist()
# Sums of the same numbers in another order differ by less.
_NOISE = 1e-9

# A task's parts of the sums behind a metric.
Row = Sequence[float]
Statistic = Callable[[Sequence[float]], float]
# The least and the greatest value that a task can have, of a mean of such values.
Limits = tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Interval:
    """The range of a metric's true value at ``LEVEL``; both ends belong to it.

    Args:
        is_exact: by Clopper and Pearson, as all tasks are at one limit; otherwise resampled.
    """

    low: float
    high: float
    is_exact: bool = False


def bootstrap_intervals(
    rows: Sequence[Row],
    asked: Sequence[tuple[Statistic, Limits]],
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> list[Interval | None]:
    """Return the intervals of statistics of the same tasks, ``None`` without spread.

    That is so with fewer than ``MIN_TASKS`` tasks, and where the statistic stays the same whichever
    task is left out: resamples then show no spread, though other tasks might. At one of its limits
    a statistic has an exact interval instead.

    Args:
        rows: one a task, with its parts of the sums.
        asked: statistics of the sums over tasks, defined for any choice of the rows, each with its
            limits.
    """
    if len(rows) < MIN_TASKS:
        return [None] * len(asked)
    draws = random.Random(seed)
    sums_of_resamples = []
    for _ in range(resamples):
        resample = draws.choices(rows, k=len(rows))
        sums_of_resamples.append(sums_of(resample))
    intervals = []
    for statistic, limits in asked:
        interval = _interval(rows, statistic, limits, sums_of_resamples)
        intervals.append(interval)
    return intervals


def sums_of(rows: Sequence[Row]) -> list[float]:
    """Return the sums over tasks, one a column."""
    return [sum(column) for column in zip(*rows, strict=True)]


def student_quantile(probability: float, degrees_of_freedom: float) -> float:
    """Return a quantile of Student's distribution, for 5 degrees of freedom or more."""
    z = _NORMAL.inv_cdf(probability)
    # Fisher's expansion (Abramowitz and Stegun 26.7.5).
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    corrections = []
    for power, term in enumerate(terms, start=1):
        divisor = math.pow(degrees_of_freedom, power)
        corrections.append(term / divisor)
    return z + sum(corrections)


def wilson(rate: float, items: float) -> tuple[float, float]:
    """Return the score interval (Wilson 1927) of a share that so many items show."""
    z = _NORMAL.inv_cdf((1 + LEVEL) / 2)
    shrinkage = 1 + z**2 / items
    center = (rate + z**2 / (2 * items)) / shrinkage
    variance_of_rate = rate * (1 - rate) / items
    standard_error = math.sqrt(variance_of_rate + z**2 / (4 * items**2))
    spread = z / shrinkage * standard_error
    low = max(0.0, center - spread)
    high = min(1.0, center + spread)
    return low, high


def none_seen(items: float) -> float:
    """Return the upper end of the mid-p interval of a share of which so many items show none."""
    return 1.0 - math.pow(1 - LEVEL, 1 / items)


def _interval(
    rows: Sequence[Row],
    statistic: Statistic,
    limits: Limits,
    sums_of_resamples: Sequence[Sequence[float]],
) -> Interval | None:
    """Return the BCa interval (Efron 1987), widened to Student's quantiles."""
    value = statistic(sums_of(rows))
    without_one = _without_one(rows, statistic)
    noise = _NOISE * max(1.0, abs(value))
    if max(without_one) - min(without_one) <= noise:
        return limit_interval(value, len(rows), limits)
    resampled = sorted(map(statistic, sums_of_resamples))
    bias = _bias(resampled, value, noise)
    skewness = _acceleration(without_one)
    tasks = len(rows)
    degrees_of_freedom = tasks - 1
    quantile = student_quantile((1 + LEVEL) / 2, degrees_of_freedom)
    # Resamples spread less than samples do, as their variance divides by the number of tasks.
    reach = math.sqrt(tasks / degrees_of_freedom) * quantile
    last = len(resampled) - 1
    share_below_low = _share_below(-reach, bias, skewness)
    share_below_high = _share_below(reach, bias, skewness)
    low = resampled[math.floor(last * share_below_low)]
    high = resampled[math.ceil(last * share_below_high)]
    return Interval(low, high)


def _bias(resampled: Sequence[float], value: float, noise: float) -> float:
    """Return how far the median of sorted resamples is from the value, in standard normal units."""
    count = len(resampled)
    below = bisect_left(resampled, value - noise)
    below_or_equal = bisect_right(resampled, value + noise)
    # Resamples equal to the value count half.
    share = (below + below_or_equal) / (2 * count)
    least = 0.5 / count
    share = min(max(share, least), 1 - least)
    return _NORMAL.inv_cdf(share)


def _without_one(rows: Sequence[Row], statistic: Statistic) -> list[float]:
    """Return the statistic without each of the tasks in turn."""
    sums = sums_of(rows)
    values = []
    for row in rows:
        others = [total - score for total, score in zip(sums, row, strict=True)]
        values.append(statistic(others))
    return values


def _acceleration(without_one: Sequence[float]) -> float:
    """Return how fast the statistic's spread changes with its value, from the jackknife."""
    mean = fmean(without_one)
    deviations = [mean - value for value in without_one]
    squares = [math.pow(deviation, 2) for deviation in deviations]
    spread = math.sqrt(sum(squares))
    cubes = [math.pow(deviation / spread, 3) for deviation in deviations]
    return sum(cubes) / 6


def _share_below(reach: float, bias: float, skewness: float) -> float:
    """Return which share of the resamples lies below an end of the interval."""
    moved = bias + reach
    # Beyond this pole the correction has no meaning, and the last resample is the end.
    room = 1 - skewness * moved
    if room <= 0:
        return 1.0 if reach > 0 else 0.0
    return _NORMAL.cdf(bias + moved / room)


def limit_interval(value: float, tasks: int, limits: Limits) -> Interval | None:
    """Return the exact interval of a mean of tasks at one limit, else ``None``."""
    if limits is None:
        return None
    low, high = limits
    # By Clopper and Pearson for shares; it holds for all values within the limits, as no values of
    # the same mean leave a limit more rarely than shares do.
    tail = (1 - LEVEL) / 2
    unnoticed_share = 1 - tail ** (1 / tasks)
    unnoticed = unnoticed_share * (high - low)
    if math.isclose(value, low, abs_tol=_NOISE):
        return Interval(low, low + unnoticed, is_exact=True)
    if math.isclose(value, high, abs_tol=_NOISE):
        return Interval(high - unnoticed, high, is_exact=True)
    return None


@dataclass(frozen=True, slots=True)
class TaskSums:
    """A metric as a statistic of sums over tasks.

    Args:
        columns: one a sum, at least two, with each task's part.
        limits: the least and the greatest value that a task can have.
    """

    tasks: tuple[str, ...]
    columns: tuple[tuple[float, ...], ...]
    statistic: Statistic
    limits: Limits

    @property
    def value(self) -> float:
        """Return the metric over all the tasks."""
        return self.statistic([sum(column) for column in self.columns])


class IntervalFigures(BaseModel):
    """A metric's interval as it is published, ``None`` with the reason where there is none.

    Args:
        exact: by Clopper and Pearson, as all tasks have the same value.
        tasks: the number of tasks with a value.
    """

    model_config = ConfigDict(frozen=True)

    low: float | None
    high: float | None
    exact: bool
    tasks: int
    reason: str | None

    @property
    def is_known(self) -> bool:
        """Tell whether there is an interval."""
        return self.low is not None


@dataclass(frozen=True, slots=True)
class SampledInterval:
    """A metric's interval, or the reason why there is none.

    Args:
        tasks: the number of tasks with a value, which were resampled.
        digits: after the point, as published.
    """

    tasks: int
    interval: Interval | None
    reason: str | None
    digits: int

    def figures(self) -> IntervalFigures:
        """Return it as it stands in ``summary.json``."""
        interval = self.interval
        return IntervalFigures(
            low=None if interval is None else round(interval.low, self.digits),
            high=None if interval is None else round(interval.high, self.digits),
            exact=interval is not None and interval.is_exact,
            tasks=self.tasks,
            reason=self.reason,
        )


def sampled_intervals(
    metrics: Mapping[str, TaskSums], digits: Mapping[str, int], no_spread: str
) -> dict[str, SampledInterval]:
    """Return the intervals of metrics by name.

    Args:
        metrics: those with a value.
        digits: of all metrics, also of those without any value.
        no_spread: the reason where the tasks' values do not differ.
    """
    intervals = _intervals(metrics)
    sampled = {}
    for name in digits:
        tasks = len(metrics[name].tasks) if name in metrics else 0
        reason = too_few(tasks)
        if reason is None and intervals[name] is None:
            reason = no_spread
        sampled[name] = SampledInterval(tasks, intervals.get(name), reason, digits[name])
    return sampled


def rounded(value: float | None, digits: int) -> float | None:
    """Return a value as it is published; one that is unknown stays so."""
    return None if value is None else round(value, digits)


def too_few(tasks: int) -> str | None:
    """Return why there can be no interval over so many tasks, ``None`` if there can."""
    if not tasks:
        return "no value is known"
    if tasks < MIN_TASKS:
        return f"too few tasks: {tasks}, {MIN_TASKS} are needed"
    return None


def _intervals(metrics: Mapping[str, TaskSums]) -> dict[str, Interval | None]:
    # Metrics of the same tasks are resampled together: drawing is most of the work.
    alike: dict[tuple[str, ...], dict[str, TaskSums]] = defaultdict(dict)
    for name, metric in metrics.items():
        alike[metric.tasks][name] = metric
    by_name: dict[str, Interval | None] = {}
    for group in alike.values():
        by_name |= _of_same_tasks(group)
    return by_name


def _of_same_tasks(metrics: Mapping[str, TaskSums]) -> dict[str, Interval | None]:
    places: dict[tuple[float, ...], int] = {}
    asked = []
    for metric in metrics.values():
        # Equal columns, as the counts of answers mostly are, are summed once.
        metric_places = []
        for column in metric.columns:
            place = places.setdefault(column, len(places))
            metric_places.append(place)
        statistic = _of_places(metric.statistic, itemgetter(*metric_places))
        asked.append((statistic, metric.limits))
    rows = list(zip(*places, strict=True))
    intervals = bootstrap_intervals(rows, asked)
    return dict(zip(metrics, intervals, strict=True))


def _of_places(
    statistic: Statistic, places: Callable[[Sequence[float]], Sequence[float]]
) -> Statistic:
    return lambda sums: statistic(places(sums))
