"""Amounts of money in words."""

from __future__ import annotations

import math

_SHOWN_FULLY_FROM_USD = 0.0001


def dollars(cost_usd: float) -> str:
    """Return an amount with as many digits as tell something."""
    if math.isnan(cost_usd):
        return "unknown"
    if cost_usd >= 10:
        return f"${cost_usd:,.2f}"
    if 0 < cost_usd < _SHOWN_FULLY_FROM_USD:
        return f"${dollars_as_given(float(f'{cost_usd:.1e}'))}"
    return f"${cost_usd:.4f}"


def dollars_as_given(amount_usd: float) -> str:
    """Return an amount with the digits that it was given in, without a dollar sign."""
    from decimal import Decimal  # slow to load

    written = f"{Decimal(repr(amount_usd)):f}"
    return written.rstrip("0").rstrip(".") if "." in written else written
