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
    if seconds is None:
        # The server's own clock may be an hour off.
        return _seconds_until(value, headers.get("date", ""))
    return seconds


def number(text: str) -> float | None:
    """Return a number that is finite and not negative."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _seconds_until(date: str, now: str) -> float | None:
    moment = _moment(date)
    if moment is None:
        return None
    return max(0.0, (moment - (_moment(now) or datetime.now(UTC))).total_seconds())


def _moment(date: str) -> datetime | None:
    from email.utils import parsedate_to_datetime  # slow to load

    try:
        moment = parsedate_to_datetime(date)
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, TypeError, OverflowError):
        return None
