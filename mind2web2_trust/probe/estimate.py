"""The price of a probe before it is made: ``mind2web2 probe --estimate``."""

from __future__ import annotations

from collections.abc import Sequence

from mind2web2.plugin import (
    RunSettings,
    counted,
    dollars,
    text_tokens,
)
from mind2web2_trust.probe.drafting import Probe

# The rules, the question and the schema of the reply.
_RULE_TOKENS = 900
_OUTPUT_TOKENS = 300


def estimate_line(probes: Sequence[Probe], settings: RunSettings) -> str:
    """Return what the probes would cost, in one line."""
    tokens = sum(
        text_tokens(probe.change.text) + text_tokens(probe.case.answer) + _RULE_TOKENS
        for probe in probes
    )
    each = settings.price_usd(tokens // len(probes), _OUTPUT_TOKENS)
    cost, model = None if each is None else each * len(probes), settings.model
    return (
        f"{model}: {counted(len(probes), 'request')} with controls, about {tokens:,} tokens in, "
        f"{_price(cost)}, without discounts for repeated text."
    )


def _price(cost: float | None) -> str:
    return "price unknown" if cost is None else f"about {dollars(cost)}"
