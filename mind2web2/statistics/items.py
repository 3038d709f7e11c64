"""Item analysis: what a leaf of a rubric tells about the answers; pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import StatisticsError, correlation

_MIN_RESULTS = 3


def rest_correlation(item: Sequence[bool | None], rest: Sequence[float]) -> float | None:
    """Return the correlation of a leaf's verdict with the share of other leaves that passed.

    Low or negative: the leaf measures something else than the rest. ``None`` where either does not
    vary.

    Args:
        item: whether the leaf passed in each result, ``None`` where it was not decided.
        rest: the share of the other leaves that passed, in the same results.
    """
    pairs = [pair for pair in zip(item, rest, strict=True) if pair[0] is not None]
    if len(pairs) < _MIN_RESULTS:
        return None
    verdicts, shares = zip(*pairs, strict=True)
    try:
        return correlation(list(map(float, verdicts)), shares)
    except StatisticsError:
        return None
