"""Functions on text and JSON: Unicode, dollars, syntax trees, dates, names, fields, invisible characters."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TypeGuard

from mind2web2.errors import UsageError


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


MAX_NAME_BYTES = 200  # file systems stop at 255, and result files add a stamp and a suffix
MAX_NAMES_SHOWN = 10


def check_name(kind: str, name: str) -> str:
    """Return ``name`` if it is safe as one folder or file name below a root.

    Raises:
        UsageError: it is empty, too long, begins with a dot, or could lead out of its folder.
    """
    fault = _fault(name)
    if fault is not None:
        raise UsageError(f"{kind} {name[:MAX_NAME_BYTES]!r} {fault}: give its plain folder name")
    return name


def is_file_name(value: object) -> TypeGuard[str]:
    """Tell whether a value from a file can be the name of one file or folder, however odd."""
    if not isinstance(value, str) or not value.strip(".") or "/" in value or "\\" in value or "\0" in value:
        return False
    return len(value.encode("utf-8", "replace")) <= MAX_NAME_BYTES


def natural_key(name: str) -> tuple[tuple[tuple[int, int, str], ...], str]:
    """Return a sort key by which ``answer_2`` comes before ``answer_10``."""
    parts = re.split(r"([0-9]+)", name)
    return tuple(_part_key(part) for part in parts if part), name


def _part_key(part: str) -> tuple[int, int, str]:
    # Digits are compared by length, then as text: int() refuses the very long ones.
    digits = part.lstrip("0")
    return (0, len(digits), digits) if part[0] in "0123456789" else (1, 0, part)


def name_list(names: Iterable[str]) -> str:
    """Return names in natural order for one line of a message, shortened when there are many."""
    ordered = sorted(names, key=natural_key)
    shown = ", ".join(ordered[:MAX_NAMES_SHOWN])
    hidden = len(ordered) - MAX_NAMES_SHOWN
    return f"{shown} and {hidden} more" if hidden > 0 else shown or "none"


def stamp_now() -> str:
    """Return the local time as ``YYYYMMDD_HHMMSS``, which begins the name of every log and result."""
    return datetime.now().strftime("%Y%m%d_%H%M%S")


def _fault(name: str) -> str | None:
    if not name.strip():
        return "is empty"
    if name.startswith("."):
        return "begins with a dot"
    if ".." in name or "/" in name or "\\" in name:
        return "contains '..', '/' or '\\'"
    if not name.isprintable():
        return "contains a character that cannot be printed"
    if len(name.encode("utf-8")) > MAX_NAME_BYTES:
        return f"is longer than {MAX_NAME_BYTES} bytes"
    return None


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait, ``None`` where it gives none that can be read.

    Args:
        headers: looked up by names in lower case: ``retry-after-ms``, or ``retry-after`` in seconds or as a
            date.
    """
    milliseconds = number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "").strip()
    seconds = number(value)
    return _seconds_until(value) if seconds is None else seconds


def number(text: str) -> float | None:
    """Return a number that is finite and not negative."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _seconds_until(date: str) -> float | None:
    from email.utils import parsedate_to_datetime  # slow to load

    try:
        moment = parsedate_to_datetime(date)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, (moment - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return None


# Fields of JSON files, whatever other programs wrote there


# Characters that people cannot see but models read are replaced by marks, or kept where languages need them:
# the judge sees that something was there, but not its content, which no reader of the page could see.
