"""The price of a probe before it is made: ``mind2web2 probe --estimate``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mind2web2.plugin import (
    Estimate,
    Usage,
    counted,
    dollars,
    percent,
    text_tokens,
    total_price_usd,
)
from mind2web2_trust.probe.drafting import PROBES_A_CONTROL, Probe

_OUTPUT_TOKENS = 300
# The reach of a narrow interval to either side.
_NARROW = 0.03
# Judges that pass so many changed pages.
_ASSUMED_SHARES = (0.05, 0.1)


def estimate_lines(probes: Sequence[Probe], model: str) -> Iterator[str]:
    """Yield what the probes would cost, and how many a narrow interval takes."""
    tokens = sum(
        text_tokens(probe.change.text) + text_tokens(probe.case.answer) + _OUTPUT_TOKENS
        for probe in probes
    )
    usage = Usage(tokens, output_tokens=_OUTPUT_TOKENS * len(probes))
    cost = total_price_usd([usage], model)
    yield (
        f"{model}: {counted(len(probes), 'request')} with controls, about {tokens:,} tokens in, "
        f"{_price(cost)}, without discounts for repeated text."
    )
    for share in _ASSUMED_SHARES:
        count = probes_needed(share, _NARROW)
        requests = count + -(-count // PROBES_A_CONTROL)
        scaled = None if cost is None else cost * requests / len(probes)
        yield (
            f"  If it passes {percent(share)} of changed pages, an interval of {_NARROW * 100:g} "
            f"points to either side takes about {counted(requests, 'request')}, {_price(scaled)}."
        )


def probes_needed(share: float, reach: float) -> int:
    """Return how many probes of independent pages give an interval of this reach to either side."""
    count = 1
    while True:
        found = Estimate.of_share(share * count, count)
        if (found.high or 1.0) - (found.low or 0.0) <= 2 * reach:
            return count
        count += 1


def _price(cost: float | None) -> str:
    return "price unknown" if cost is None else f"about {dollars(cost)}"
