"""How far to trust the figure of ``mind2web2 probe``: simulated judges whose error is known.

Run ``uv run python benchmarks/probe_estimates.py``. Each judge passes a share of claims whatever
the page says, or does not see one kind of change. The script prints how often the 95% interval
holds the true share, and how often 200 probes come within three points of it. It is a pure
simulation that asks nothing.
"""

import random
import sys
from dataclasses import dataclass

from mind2web2.statistics.agreement import share_by_task
from mind2web2_trust.probe.edits import CHANGES

SIMULATIONS = 500
PROBES = 200


@dataclass(frozen=True)
class Design:
    """How probes are spread: so many pages with so many claims each."""

    pages: int
    claims: int


@dataclass(frozen=True)
class Accuracy:
    """The share of simulations whose interval holds the truth, and whose value is near it."""

    covered: float
    near: float
    half_width: float


def simulate(design: Design, share_passed: float) -> Accuracy:
    """Return the accuracy of the estimated share of passed probes."""
    covered = near = 0
    width = 0.0
    for seed in range(SIMULATIONS):
        draw = random.Random(f"{design} {share_passed} {seed}")
        rows = []
        for _ in range(design.pages):
            passed = sum(draw.random() < share_passed for _ in range(design.claims))
            rows.append((passed, design.claims))
        estimate = share_by_task(rows)
        if estimate.value is None or estimate.low is None or estimate.high is None:
            continue
        covered += estimate.low <= share_passed <= estimate.high
        near += abs(estimate.value - share_passed) <= 0.03
        width += (estimate.high - estimate.low) / 2
    return Accuracy(covered / SIMULATIONS, near / SIMULATIONS, width / SIMULATIONS)


def main() -> None:
    """Print the accuracy for each design and each judge."""
    blind_to_one_kind = 1 / len(CHANGES)
    for design in (Design(200, 1), Design(100, 2), Design(40, 5)):
        for share in (0, 0.02, 0.05, 0.1, blind_to_one_kind, 0.2):
            found = simulate(design, share)
            sys.stdout.write(
                f"{design.pages} pages of {design.claims} claims, judge passes {share:.0%}: "
                f"interval holds it in {found.covered:.1%}, within 3 points in {found.near:.0%}, "
                f"reach {found.half_width:.3f}\n"
            )


if __name__ == "__main__":
    main()
