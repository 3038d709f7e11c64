"""Moments as people write them."""

from __future__ import annotations

from datetime import datetime, time


def parse_moment(text: str) -> datetime:
    """Return the local moment that a date names, with a time or at noon.

    Raises:
        ValueError: it names none.
    """
    moment = datetime.fromisoformat(text.strip())
    if "T" not in text.upper() and ":" not in text:
        moment = datetime.combine(moment.date(), time(12))
    return moment.astimezone()
