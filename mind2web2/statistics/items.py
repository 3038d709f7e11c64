"""Item analysis: what a leaf of a rubric tells about the answers; pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean


def rest_correlation(item: Sequence[bool | None], rest: Sequence[float]) -> float | None:
    """Return the correlation of a leaf's verdict with the share of other leaves that passed.

    Low or negative: the leaf measures something else than the rest. ``None`` where either does not
    vary.

    Args:
        item: whether the leaf passed in each result, ``None`` where it was not decided.
        rest: the share of the other leaves that passed, in the same results.
    """
    pairs = [
        (float(passed), share)
        for passed, share in zip(item, rest, strict=True)
        if passed is not None
    ]
    if len(pairs) < 3:
        return None
    mean_x = fmean(x for x, _ in pairs)
    mean_y = fmean(y for _, y in pairs)
    across = sum((x - mean_x) * (y - mean_y) for x, y in pairs)
    spread_x = sum((x - mean_x) ** 2 for x, _ in pairs)
    spread_y = sum((y - mean_y) ** 2 for _, y in pairs)
    if spread_x < 1e-12 or spread_y < 1e-12:
        return None
    return across / math.sqrt(spread_x * spread_y)
