"""Raw and corrected scores side by side.

The commands ``metrics``, ``compare`` and ``rejudge`` print them.
"""

from __future__ import annotations

from collections.abc import Iterator

from mind2web2.analysis.corrected_pairs import CorrectedPair
from mind2web2.analysis.correction_record import Ends
from mind2web2.statistics.paired import Estimate
from mind2web2.utils.text import (
    points,
    points_range,
    points_within,
)


def pair_lines(pair: CorrectedPair) -> Iterator[str]:
    """Yield the corrected comparison of two agents, one line each."""
    first, second = pair.agents
    for name, correction in zip(pair.agents, (pair.first, pair.second), strict=True):
        for text in correction.lines():
            yield f"{name}: {text}"
    if pair.corrected_difference is None:
        corrected = "no corrected value, as a sample has fewer than six tasks"
    else:
        corrected = f"corrected {points(pair.corrected_difference)}"
    yield (
        f"Difference of {second} from {first} by the judge {points(pair.raw_difference)}, "
        f"{corrected}; 95% interval for these tasks {_reach(pair.these_tasks)}, for tasks at large "
        f"{_reach(pair.tasks_at_large)}."
    )
    yield (
        f"Errors of the judge, {second} less {first}: passed wrongly {_rate(pair.wrong_passes)}, "
        f"failed wrongly {_rate(pair.wrong_failures)}."
    )


def _reach(ends: Ends | None) -> str:
    return "unknown" if ends is None else points_range(ends.low, ends.high)


def _rate(estimate: Estimate) -> str:
    if estimate.value is None:
        return "unknown"
    return points_within(estimate.value, estimate.low, estimate.high)
