"""Text: shortened; amounts with their nouns and in dollars; lone surrogates found and replaced."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal

# The least share that is not shown as 0%.
_LEAST_SHOWN = 0.005
_PLURALS = {"leaf": "leaves", "reply": "replies", "try": "tries"}
_SHOWN_FULLY_FROM_USD = 0.0001


def counted(amount: int, noun: str) -> str:
    """Return an amount with its noun, such as ``1 task``, ``3 leaves`` or ``2 earlier results``."""
    *adjectives, last = noun.split(" ")
    if amount != 1:
        last = _PLURALS.get(last, f"{last}s")
    return " ".join([f"{amount:,}", *adjectives, last])


def cut(text: str, most: int) -> str:
    """Return the text, or its beginning and ``...`` if it has more than so many characters."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def first_few(parts: Sequence[str], most: int) -> list[str]:
    """Return the first parts, and how many more there are as the last one."""
    hidden = len(parts) - most
    more = [f"and {hidden} more"] if hidden > 0 else []
    return [*parts[:most], *more]


def fixed(value: float, digits: int) -> str:
    """Return a value with so many digits, halves rounded away from zero.

    The viewer's JavaScript rounds in this way.
    """
    return str(Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


def number(value: float | None, *, is_difference: bool = False) -> str:
    """Return a score or share as tables have it, such as ``0.60``.

    Exact ones and zeros are ``1`` and ``0``.

    Args:
        is_difference: of two scores, which has a sign, such as ``+0.05``.
    """
    if value is None:
        return "-"
    if is_difference:
        return _signed(value, 2)
    return str(int(value)) if value in (0, 1) else fixed(value, 2)


def _signed(value: float, digits: int) -> str:
    return fixed(value, digits) if value < 0 else f"+{fixed(value, digits)}"


def whole(value: float | None) -> str:
    """Return an amount without its fraction, such as ``1,234``."""
    return "-" if value is None else f"{value:,.0f}"


def percent(share: float) -> str:
    """Return a share as sentences have it, such as ``60%``."""
    if 0 < share < _LEAST_SHOWN:
        return "under 1%"
    if 1 - _LEAST_SHOWN < share < 1:
        return "over 99%"
    return f"{fixed(100 * share, 0)}%"


def points(difference: float) -> str:
    """Return a difference of shares as sentences have it, such as ``+5 points``."""
    return f"{_signed(100 * difference, 0)} points"


def points_range(low: float, high: float) -> str:
    """Return an interval of differences of shares, such as ``-3 to +5 points``."""
    return f"{_signed(100 * low, 0)} to {points(high)}"


def points_within(difference: float, low: float | None, high: float | None) -> str:
    """Return a difference with its interval, such as ``+5 points (-3 to +12 points)``."""
    if low is None or high is None:
        return points(difference)
    return f"{points(difference)} ({points_range(low, high)})"


def is_unicode_text(text: str) -> bool:
    """Tell whether the text can be written as UTF-8, that is, holds no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def as_unicode_text(text: str) -> str:
    """Return the text with lone surrogates as U+FFFD, and pairs as their character."""
    if text.isascii() or is_unicode_text(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def dollars(cost_usd: float | None) -> str:
    """Return an amount with as many digits as tell something; ``None`` is an unknown price."""
    if cost_usd is None:
        return "price unknown"
    if math.isnan(cost_usd):
        return "unknown"
    if cost_usd >= 10:
        return f"${cost_usd:,.2f}"
    if 0 < cost_usd < _SHOWN_FULLY_FROM_USD:
        return f"${dollars_as_given(float(f'{cost_usd:.1e}'))}"
    return f"${cost_usd:.4f}"


def dollars_as_given(amount_usd: float) -> str:
    """Return an amount with the digits that it was given in, without a dollar sign."""
    written = f"{Decimal(repr(amount_usd)):f}"
    return written.rstrip("0").rstrip(".") if "." in written else written
