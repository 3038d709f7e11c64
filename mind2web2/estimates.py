"""What a run will take, from what earlier evaluations took: expected amounts with a range (pure)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import NamedTuple

# From the mean to the 90th percentile of a normal distribution, in standard deviations.
_TO_90_PERCENT = 1.2816
# How far one evaluation may be from the next where there is only one to go by, as a share of it.
_LONE_DEVIATION = 0.5
# How far a guess may be off.
_GUESS_DEVIATION = 1.0
# With fewer evaluations than these a guess counts as well. The first ones to end are short ones.
_ENOUGH_EVALUATIONS = 5
# How much of an evaluation is expected to be left, at least, where it was stopped on its way.
_LEAST_EXPECTED_SHARE = 0.2


class Amounts(NamedTuple):
    """What evaluations take; the dollars are ``nan`` where the price is not known."""

    requests: float
    input_tokens: float
    cached_tokens: float
    output_tokens: float
    cost_usd: float

    def times(self, factor: float) -> Amounts:
        """Return this many times as much."""
        return Amounts(*(factor * amount for amount in self))


NOTHING = Amounts(0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Sample:
    """Evaluations to judge by.

    Args:
        mean: of one answer.
        deviation: from one answer to the next.
        count: of answers; 0 where a guess has a part in it.
        is_of_task: they are of the very task that is estimated.
        basis: what this is, in words.
    """

    mean: Amounts
    deviation: Amounts
    count: int
    is_of_task: bool
    basis: str


@dataclass(frozen=True)
class TaskEstimate:
    """What a task's answers are expected to take.

    Args:
        answers: those there are.
        to_evaluate: those without a result that still holds.
        shares: for each of the latter, how much of a mean evaluation is still to be asked.
        least_shares: the same at best, if all that is stored can be reused.
        sample: what an evaluation takes; ``None`` where there is nothing to evaluate.
    """

    task_id: str
    answers: int
    to_evaluate: int
    shares: tuple[float, ...]
    least_shares: tuple[float, ...]
    sample: Sample | None

    @property
    def expected(self) -> Amounts:
        """Return what is expected."""
        return NOTHING if self.sample is None else self.sample.mean.times(sum(self.shares))


class Range(NamedTuple):
    """An amount with its 10th and 90th percentile."""

    low: float
    expected: float
    high: float


def sample_of(evaluations: Sequence[Amounts], basis: str, *, is_of_task: bool) -> Sample:
    """Return what one or more evaluations show."""
    columns = list(zip(*evaluations, strict=True))
    mean = Amounts(*(fmean(column) for column in columns))
    if len(evaluations) == 1:
        deviation = mean.times(_LONE_DEVIATION)
    else:
        deviation = Amounts(*(_deviation(column) for column in columns))
    return Sample(mean, deviation, len(evaluations), is_of_task, basis)


def _deviation(amounts: Sequence[float]) -> float:
    return math.nan if any(map(math.isnan, amounts)) else stdev(amounts)


def guessed_sample(guess: Amounts, basis: str) -> Sample:
    """Return a guess at one evaluation."""
    return Sample(guess, guess.times(_GUESS_DEVIATION), 0, is_of_task=False, basis=basis)


def blended_sample(found: Sample, guess: Sample) -> Sample:
    """Return what evaluations show, drawn towards a guess as far as they are few."""
    if found.count >= _ENOUGH_EVALUATIONS:
        return found
    weight = found.count / _ENOUGH_EVALUATIONS
    mean = _between(guess.mean, found.mean, weight)
    deviation = _between(guess.deviation, found.deviation, weight)
    return Sample(mean, deviation, 0, is_of_task=False, basis=f"{found.basis} and {guess.basis}")


def _between(start: Amounts, end: Amounts, weight: float) -> Amounts:
    return Amounts(*((1 - weight) * one + weight * other for one, other in zip(start, end, strict=True)))


def shares_left(kept: int, expected: float) -> tuple[float, float]:
    """Return how much of a stopped evaluation is still to be asked: as expected, and at best.

    It was stopped on its way, so that something is left even where more is kept than was expected in all.

    Args:
        kept: judgments that are stored.
        expected: judgments of a whole evaluation, to which the shares refer.
    """
    if not expected:
        return 0.0, 0.0
    done = kept / expected
    left = max(0.0, 1.0 - done)
    return max(left, _LEAST_EXPECTED_SHARE * max(1.0, done), 1.0 / max(1.0, expected)), left


def total_ranges(tasks: Iterable[TaskEstimate]) -> list[Range]:
    """Return what all tasks together will take, in the order of the fields of ``Amounts``."""
    sampled = [(task, task.sample) for task in tasks if task.sample is not None]
    return [_total_range(sampled, index) for index in range(len(Amounts._fields))]


def _total_range(tasks: Sequence[tuple[TaskEstimate, Sample]], index: int) -> Range:
    expected = sum(sum(task.shares) * sample.mean[index] for task, sample in tasks)
    if not expected or math.isnan(expected):
        return Range(expected, expected, expected)
    least = sum(sum(task.least_shares) * sample.mean[index] for task, sample in tasks)
    # On a logarithmic scale: amounts are never negative, and are far above their mean at times.
    spread = math.sqrt(math.log1p(_variance(tasks, index) / expected**2))
    factor = math.exp(_TO_90_PERCENT * spread)
    return Range(least / factor, expected, expected * factor)


def _variance(tasks: Sequence[tuple[TaskEstimate, Sample]], index: int) -> float:
    """Return the variance of a total: chance from answer to answer, and samples that are small."""
    chance = 0.0
    by_sample: dict[int, tuple[float, Sample]] = {}
    guessed = 0.0
    for task, sample in tasks:
        answers, deviation = sum(task.shares), sample.deviation[index]
        if sample.count == 0:
            # All guesses are wrong in the same way.
            guessed += answers * deviation
            continue
        # Judged by other tasks, the answers to one task are above or below the mean together.
        chance += (answers if sample.is_of_task else answers**2) * deviation**2
        so_far, _ = by_sample.get(id(sample), (0.0, sample))
        by_sample[id(sample)] = (so_far + answers, sample)
    small = sum(
        (answers * sample.deviation[index]) ** 2 / sample.count for answers, sample in by_sample.values()
    )
    return chance + small + guessed**2
