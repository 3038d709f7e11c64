"""How long a server asks to wait, by the headers of its reply."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait, ``None`` where it gives none that can be read.

    Args:
        headers: looked up by names in lower case: ``retry-after-ms``, or ``retry-after`` in seconds
            or as a date.
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
