"""Moments: as people write them, when an answer was made, and the one that a script saw."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, time
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from mind2web2.errors import AnswerError


def parse_moment(text: str) -> datetime:
    """Return the local moment that a date names, with a time or at noon.

    Raises:
        ValueError: it names none.
    """
    moment = datetime.fromisoformat(text.strip())
    if "T" not in text.upper() and ":" not in text:
        moment = datetime.combine(moment.date(), time(12))
    return moment.astimezone()


@dataclass(frozen=True, slots=True)
class ClockReading:
    """The moment at which a script ran.

    Args:
        moment: ISO 8601 with the local offset; the script's own clock, not the run's.
        zone: name of the local time zone.
        is_read: the script has read the clock; otherwise it may only convert local times.
    """

    moment: str
    zone: str
    is_read: bool

    @property
    def date(self) -> str:
        """Return the local date."""
        return self.moment[:10]


# A moment, or the moment at which each answer was made.
AsOf = datetime | Literal["answer"]


def answer_moment(path: Path, created: str | None) -> datetime:
    """Return when an answer was made: ``created`` of its meta file, else the file's own time.

    Raises:
        AnswerError: ``created`` is not a date.
    """
    if created is None:
        return datetime.fromtimestamp(int(path.stat().st_mtime)).astimezone()
    try:
        return parse_moment(created)
    except ValueError as error:
        raise AnswerError(
            f"{path.with_suffix('.meta.json')}: created {created!r} is not a date such as 2025-03-14 "
            "(--as_of answer and --archive need it)"
        ) from error


def recorded_moment(reading: ClockReading) -> datetime | None:
    """Return the moment of an earlier run, ``None`` where its record is damaged."""
    with suppress(ValueError):
        moment = datetime.fromisoformat(reading.moment)
        if moment.tzinfo is not None:
            return moment
    return None


def known_zone(name: str | None) -> str | None:
    """Return a time zone's name if this machine knows it."""
    with suppress(ZoneInfoNotFoundError, ValueError, OSError):
        return ZoneInfo(name).key if name else None
    return None
