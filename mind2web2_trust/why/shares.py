"""How a difference of scores is split among its causes; pure, and exact.

The rule is Shapley's (1953): a cause's share is its effect on the score, averaged over all orders
in which the causes may come in. The shares sum to the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import factorial
from typing import Literal, get_args

Cause = Literal["answers", "pages", "rubric", "judge", "other"]
# In the order in which they are shown.
CAUSES: tuple[Cause, ...] = get_args(Cause)
NAMES: Mapping[Cause, str] = {
    "answers": "other answers",
    "pages": "changed pages",
    "rubric": "changed scripts",
    "judge": "judge, votes or prompts",
    "other": "something else",
}
# The parts that are taken from the second side; the others are from the first.
Corner = frozenset[Cause]


@dataclass(frozen=True, slots=True)
class Bounds:
    """A score or a share, known up to the replies that are missing."""

    low: Fraction
    high: Fraction

    @classmethod
    def exact(cls, score: float) -> Bounds:
        """Return a known score."""
        return cls(Fraction(score), Fraction(score))

    @property
    def known(self) -> float | None:
        """Return the number, ``None`` where replies are missing."""
        return float(self.low) if self.low == self.high else None

    def times(self, factor: Fraction) -> Bounds:
        """Return the product."""
        ends = sorted((self.low * factor, self.high * factor))
        return Bounds(*ends)

    def minus(self, other: Bounds) -> Bounds:
        """Return the difference."""
        return self + other.times(Fraction(-1))

    def __add__(self, other: Bounds) -> Bounds:
        return Bounds(self.low + other.low, self.high + other.high)


NOTHING = Bounds(Fraction(0), Fraction(0))


def corners(causes: Sequence[Cause]) -> Iterator[Corner]:
    """Yield all choices between the two sides of what differs."""
    for size in range(len(causes) + 1):
        yield from map(frozenset, combinations(causes, size))


def shares(causes: Sequence[Cause], score_of: Callable[[Corner], Bounds]) -> Mapping[Cause, Bounds]:
    """Return each cause's share of the difference between the last corner and the first."""
    scores = {corner: score_of(corner) for corner in corners(causes)}
    return {cause: _share(cause, len(causes), scores) for cause in causes}


def _share(cause: Cause, count: int, scores: Mapping[Corner, Bounds]) -> Bounds:
    share = NOTHING
    for corner, score in scores.items():
        before = len(corner - {cause})
        weight = Fraction(factorial(before) * factorial(count - before - 1), factorial(count))
        share += score.times(weight if cause in corner else -weight)
    return share
