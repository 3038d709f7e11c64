"""A judge's mean score, corrected by whole answers that a better judge scored; pure."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median, variance

from mind2web2.statistics.correction import NOISE, CorrectedMean
from mind2web2.statistics.uncertainty import (
    LEVEL,
    none_seen,
    student_quantile,
    wilson,
)
from mind2web2.statistics.variance import pooled_variance


@dataclass(frozen=True, slots=True)
class JudgedTwice:
    """An answer's score by the judge, and by a better one where it is in the sample."""

    task: str
    cheap: float
    exact: float | None = None


def correct_by_answers(answers: Sequence[JudgedTwice]) -> tuple[CorrectedMean, float]:
    """Correct the mean over tasks by scores of a better judge.

    Return the cheap judge's weight as well.

    The sample is drawn in rounds, each with one random answer of each task in random order, and may
    end at any answer. The estimate is the mean of the exact scores in the sample, moved by what the
    sample lacks of the cheap judge's mean (a regression estimator, Cochran 1977, chapter 7). The
    weight is cov / var, which makes the variance smallest, and 0 where that gives the narrower
    interval.

    Raises:
        ValueError: no answer has an exact score.
    """
    if all(one.exact is None for one in answers):
        raise ValueError("no answer has an exact score")
    # A weight of 0 is the plain mean of the sample.
    best = _best_weight(answers)
    with_cheap = _weigh(answers, best)
    without_cheap = _weigh(answers, 0.0)
    if with_cheap.below <= without_cheap.below:
        estimate, weight = with_cheap, best
    else:
        estimate, weight = without_cheap, 0.0
    least_below, least_above = _least_reach(answers, weight)
    below = max(estimate.below, least_below)
    above = max(estimate.above, least_above)
    return replace(estimate, below=below, above=above), weight


def _best_weight(answers: Sequence[JudgedTwice], without: str | None = None) -> float:
    """Return the weight by the sample, or by what it has of all other tasks."""
    cheap: list[float] = []
    exact: list[float] = []
    for one in answers:
        if one.exact is not None and one.task != without:
            cheap.append(one.cheap)
            exact.append(one.exact)
    if len(exact) < 3:
        return 1.0
    cheap_mean = fmean(cheap)
    exact_mean = fmean(exact)
    squares = []
    products = []
    for cheap_score, exact_score in zip(cheap, exact, strict=True):
        deviation = cheap_score - cheap_mean
        squares.append(deviation**2)
        products.append(deviation * (exact_score - exact_mean))
    spread = sum(squares)
    if not spread:
        return 0.0
    slope = sum(products) / spread
    return min(1.0, max(0.0, slope))


def _weigh(answers: Sequence[JudgedTwice], weight: float) -> CorrectedMean:
    cheap: dict[str, list[float]] = defaultdict(list)
    rest: dict[str, list[float]] = defaultdict(list)
    for one in answers:
        cheap[one.task].append(one.cheap)
        if one.exact is not None:
            rest[one.task].append(one.exact - weight * one.cheap)
    raw = {task: fmean(values) for task, values in cheap.items()}
    task_means = {task: fmean(values) for task, values in rest.items()}
    mean = fmean(task_means.values())
    # Tasks in the sample stand for the others as well.
    scale = len(cheap) / len(task_means)
    by_task = {}
    for task, cheap_score in raw.items():
        if task in task_means:
            own_part = scale * (task_means[task] - mean)
        else:
            own_part = 0.0
        by_task[task] = weight * cheap_score + mean + own_part
    labels = sum(map(len, rest.values()))
    if weight and labels < len(answers):
        unbiased = _without_own_weight(answers, fmean(raw.values()))
        moved = unbiased - fmean(by_task.values())
        by_task = {task: value + moved for task, value in by_task.items()}
    squared, degrees = _error_of_rest(cheap, rest, is_fitted=0.0 < weight < 1.0)
    if weight:
        squared += _unseen(answers)
    error = math.sqrt(squared)
    quantile = student_quantile((1 + LEVEL) / 2, degrees)
    reach = quantile * error
    return CorrectedMean(
        raw_by_task=raw,
        by_task=by_task,
        below=reach,
        above=reach,
        standard_error=error,
        labels=labels,
        population=len(answers),
        labelled_tasks=len(task_means),
    )


def _without_own_weight(answers: Sequence[JudgedTwice], cheap_mean: float) -> float:
    """Return the estimate, with each task's weight from the other tasks."""
    weights: dict[str, float] = {}
    by_task: dict[str, list[float]] = defaultdict(list)
    for one in answers:
        if one.exact is None:
            continue
        if one.task not in weights:
            weights[one.task] = _best_weight(answers, without=one.task)
        deviation = one.cheap - cheap_mean
        estimate = one.exact - weights[one.task] * deviation
        by_task[one.task].append(estimate)
    task_means = map(fmean, by_task.values())
    return fmean(task_means)


# Simulated samples of 4 to 195 answers then cover 93 to 98%; with a whole difference, 94 to 99%.
_UNSEEN = 2 / 3


def _unseen(answers: Sequence[JudgedTwice]) -> float:
    """Return the squared error that one more difference of the judges would add.

    Judges differ at few answers, and a small sample may show none of them.
    """
    exact = [one.exact for one in answers if one.exact is not None]
    if len(exact) < 2:
        return 0.0
    unsampled = 1 - len(exact) / len(answers)
    return _UNSEEN * unsampled * variance(exact) / len(exact) ** 2


def _least_reach(answers: Sequence[JudgedTwice], weight: float) -> tuple[float, float]:
    """Return how far the interval reaches below and above at least.

    Where most scores are 0 or 1, few answers are unlike the others. A sample may show none of them,
    and the variance of those that it shows is mostly too small, so that their share has an interval
    of its own.
    """
    sampled = [one for one in answers if one.exact is not None]
    exact = [one.exact for one in answers if one.exact is not None]
    if len(sampled) == len(answers):
        return 0.0, 0.0
    usual = median(exact)
    # A cheap judge of little weight tells less of a score than what is usual.
    expected = [one.cheap if weight > 0.5 else usual for one in sampled]
    differences = [exact_score - other for exact_score, other in zip(exact, expected, strict=True)]
    # The finite population correction.
    items = len(sampled) / (1 - len(sampled) / len(answers))
    below = [-one for one in differences if one < -NOISE]
    above = [one for one in differences if one > NOISE]
    largest = max(below + above, default=1.0)
    room_below = _room(below, largest, len(sampled), items)
    room_above = _room(above, largest, len(sampled), items)
    return room_below, room_above


def _room(differences: Sequence[float], largest: float, sampled: int, items: float) -> float:
    """Return what more differences in one direction than the sample has would move its mean by."""
    if not differences:
        return none_seen(items) * largest
    share = len(differences) / sampled
    _, most = wilson(share, items)
    size = math.sqrt(fmean(each**2 for each in differences))
    return (most - share) * size


# Degrees of freedom from which the variance between answers of one task is estimated by itself.
_ENOUGH_DEGREES = 30


def _error_of_rest(
    cheap: Mapping[str, Sequence[float]],
    rest: Mapping[str, Sequence[float]],
    is_fitted: bool,
) -> tuple[float, int]:
    """Return the squared standard error of the residuals' mean, and its degrees of freedom."""
    degrees = len(rest) - 1 - is_fitted
    if degrees < 1:
        return 0.0, 1
    drawn = sum(map(len, rest.values()))
    total = sum(map(len, cheap.values()))
    unsampled = 1 - drawn / total
    # As if answers were drawn without regard to tasks: too much where a task's answers are alike.
    variance_of_tasks = variance(map(fmean, rest.values()))
    spread = variance_of_tasks * (len(rest) - 1) / degrees
    squared = unsampled * spread / len(rest)
    within_degrees = drawn - len(rest)
    if len(rest) < len(cheap) or within_degrees < _ENOUGH_DEGREES:
        return squared, degrees
    # Every task is in the sample, and only the choice among its answers is random. Few answers
    # differ, so that this estimate is often too small: half of its advantage is given away.
    within = pooled_variance(list(rest.values()))
    assert within is not None, "some tasks have several answers"
    # Each task's unsampled answers leave this open (the finite population correction).
    left_open = []
    for task, scores in rest.items():
        all_of_task = len(cheap[task])
        left_open.append(1 / len(scores) - 1 / all_of_task)
    squared_within = within * sum(left_open) / len(cheap) ** 2
    return (squared_within + squared) / 2, within_degrees


def sampling_order(answers: Sequence[tuple[str, str]], seed: int) -> list[tuple[str, str]]:
    """Return answers, by task and name, in the order in which a sample takes them.

    Each round has one random answer of each task that has one left, in random order of the tasks.
    """
    chance = random.Random(seed)  # a sample, not a secret
    left: dict[str, list[str]] = defaultdict(list)
    for task, name in sorted(answers):
        left[task].append(name)
    for names in left.values():
        chance.shuffle(names)
    order = []
    while left:
        tasks = list(left)
        chance.shuffle(tasks)
        for task in tasks:
            name = left[task].pop()
            order.append((task, name))
        left = {task: names for task, names in left.items() if names}
    return order
