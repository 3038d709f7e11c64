"""A judge's mean score, corrected by whole answers that a better judge scored; pure."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from mind2web2.statistics.correction import CorrectedMean
from mind2web2.statistics.uncertainty import LEVEL, student_quantile


@dataclass(frozen=True, slots=True)
class JudgedTwice:
    """An answer's score by the judge, and by a better one where it is in the sample."""

    task: str
    cheap: float
    exact: float | None = None


def corrected_by_answers(answers: Sequence[JudgedTwice]) -> tuple[CorrectedMean, float]:
    """Correct the mean over tasks by scores of a better judge; return the cheap judge's weight as well.

    The sample is drawn in rounds, each with one random answer of each task in random order, and may end at
    any answer. The estimate is the mean of the exact scores in the sample, moved by what the sample lacks of
    the cheap judge's mean (a regression estimator, Cochran 1977, chapter 7). The weight is cov / var, which
    makes the variance smallest, and 0 where that gives the narrower interval.

    Raises:
        ValueError: no answer has an exact score.
    """
    if all(one.exact is None for one in answers):
        raise ValueError("no answer has an exact score")
    weights = (_best_weight(answers), 0.0)
    found = [(_weighted(answers, weight), weight) for weight in weights]
    return min(found, key=lambda each: each[0].below)


def _best_weight(answers: Sequence[JudgedTwice], without: str | None = None) -> float:
    """Return the weight by the sample, or by what it has of all other tasks."""
    pairs = [
        (one.cheap, one.exact)
        for one in answers
        if one.exact is not None and one.task != without
    ]
    if len(pairs) < 3:
        return 1.0
    cheap_mean, exact_mean = (fmean(side) for side in zip(*pairs, strict=True))
    spread = sum((cheap - cheap_mean) ** 2 for cheap, _ in pairs)
    if not spread:
        return 0.0
    together = sum(
        (cheap - cheap_mean) * (exact - exact_mean) for cheap, exact in pairs
    )
    return min(1.0, max(0.0, together / spread))


def _weighted(answers: Sequence[JudgedTwice], weight: float) -> CorrectedMean:
    cheap: dict[str, list[float]] = defaultdict(list)
    rest: dict[str, list[float]] = defaultdict(list)
    for one in answers:
        cheap[one.task].append(one.cheap)
        if one.exact is not None:
            rest[one.task].append(one.exact - weight * one.cheap)
    own = {task: fmean(values) for task, values in rest.items()}
    mean = fmean(own.values())
    scale = len(cheap) / len(own)
    by_task = {
        task: weight * fmean(values)
        + mean
        + (scale * (own[task] - mean) if task in own else 0.0)
        for task, values in cheap.items()
    }
    labels = sum(map(len, rest.values()))
    if weight and labels < len(answers):
        moved = _without_own_weight(answers, fmean(map(fmean, cheap.values()))) - fmean(
            by_task.values()
        )
        by_task = {task: value + moved for task, value in by_task.items()}
    squared, degrees = _error_of_rest(cheap, rest, is_fitted=0.0 < weight < 1.0)
    if weight:
        squared += _unseen(answers)
    error = math.sqrt(squared)
    reach = student_quantile((1 + LEVEL) / 2, degrees) * error
    return CorrectedMean(
        raw_by_task={task: fmean(values) for task, values in cheap.items()},
        by_task=by_task,
        below=reach,
        above=reach,
        standard_error=error,
        labels=labels,
        population=len(answers),
        labelled_tasks=len(own),
    )


def _without_own_weight(answers: Sequence[JudgedTwice], cheap_mean: float) -> float:
    """Return the estimate with each task's weight from the other tasks: its own would bias small samples."""
    own: dict[str, list[float]] = defaultdict(list)
    for one in answers:
        if one.exact is not None:
            own[one.task].append(one.exact)
    by_task = defaultdict(list)
    weights = {task: _best_weight(answers, without=task) for task in own}
    for one in answers:
        if one.exact is not None:
            by_task[one.task].append(
                one.exact - weights[one.task] * (one.cheap - cheap_mean)
            )
    return fmean(map(fmean, by_task.values()))


# Simulated samples of 4 to 195 answers then cover 93 to 98%; with a whole difference, 94 to 99%.
_UNSEEN = 2 / 3


def _unseen(answers: Sequence[JudgedTwice]) -> float:
    """Return the squared error for a part of one more difference of the judges, as large as scores differ.

    Judges differ at few answers, and a small sample may show none of them.
    """
    exact = [one.exact for one in answers if one.exact is not None]
    if len(exact) < 2:
        return 0.0
    left = 1 - len(exact) / len(answers)
    return _UNSEEN * left * variance(exact) / len(exact) ** 2


# Degrees of freedom from which the variance between answers of one task is estimated by itself.
_ENOUGH_DEGREES = 30


def _error_of_rest(
    cheap: Mapping[str, Sequence[float]],
    rest: Mapping[str, Sequence[float]],
    is_fitted: bool,
) -> tuple[float, int]:
    """Return the squared standard error of the mean of what the cheap judge leaves open, and its degrees."""
    degrees = len(rest) - 1 - is_fitted
    if degrees < 1:
        return 0.0, 1
    drawn, total = sum(map(len, rest.values())), sum(map(len, cheap.values()))
    # As if answers were drawn without regard to tasks: too much where a task's answers are alike.
    spread = variance(map(fmean, rest.values())) * (len(rest) - 1) / degrees
    squared = (1 - drawn / total) * spread / len(rest)
    repeated = [values for values in rest.values() if len(values) > 1]
    within_degrees = sum(len(values) - 1 for values in repeated)
    if len(rest) < len(cheap) or within_degrees < _ENOUGH_DEGREES:
        return squared, degrees
    # Every task is in the sample, and only the choice among its answers is random. Few answers differ, so
    # that this estimate is often too small: half of its advantage is given away.
    within = (
        sum(variance(values) * (len(values) - 1) for values in repeated)
        / within_degrees
    )
    left = sum((1 / len(own) - 1 / len(cheap[task])) for task, own in rest.items())
    return (within * left / len(cheap) ** 2 + squared) / 2, within_degrees


def sampling_order(
    answers: Sequence[tuple[str, str]], seed: int
) -> list[tuple[str, str]]:
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
        order += [(task, left[task].pop()) for task in tasks]
        left = {task: names for task, names in left.items() if names}
    return order
