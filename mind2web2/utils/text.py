"""Small functions on text: whether it is valid Unicode, amounts in dollars, the syntax tree of a source."""

from __future__ import annotations

import ast
import math
import threading
from decimal import Decimal


def is_unicode_text(text: str) -> bool:
    """Tell whether the text can be written as UTF-8, that is, holds no lone surrogate."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def as_unicode_text(text: str) -> str:
    """Return the text with lone surrogates as U+FFFD, and pairs of them as the character they mean."""
    if is_unicode_text(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# Python 3.11 counts the depth of a tree for all threads together: one that parses while another does raises
# SystemError ("AST constructor recursion depth mismatch").
_ONE_AT_A_TIME = threading.Lock()


def parsed(source: str | bytes, filename: str = "<unknown>") -> ast.Module:
    """Return the syntax tree of a source, in any thread."""
    with _ONE_AT_A_TIME:
        return ast.parse(source, filename=filename)


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
    written = f"{Decimal(repr(amount_usd)):f}"
    return written.rstrip("0").rstrip(".") if "." in written else written
