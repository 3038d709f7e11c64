"""The time in a script's process: its clock, and the timers of a pass.

The clock is the real one, or one that is frozen at a chosen moment. In a pass nothing comes from
outside, so that time jumps from timer to timer.
"""

from __future__ import annotations

import asyncio
import os
import selectors
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from mind2web2.utils.callers import caller_of
from mind2web2.utils.moments import ClockReading
from mind2web2.utils.private_attributes import check_private_attributes

_LOCALTIME = Path("/etc/localtime")
_UTC_NAMES = frozenset(
    {"Etc/UTC", "Etc/UCT", "Etc/Universal", "Etc/Zulu", "UCT", "Universal", "Zulu"}
)


class ScriptClock:
    """The clock of this process: scripts see ``as_of``, our own code and logging see the real time.

    Args:
        as_of: the moment at which the clock is frozen; ``None`` for the real time.
        zone: name of the time zone to run in; ``None`` for that of the process.

    Attributes:
        is_read: a script has read the clock.
    """

    def __init__(self, as_of: datetime | None = None, zone: str | None = None) -> None:
        self.is_read = False
        self._as_of = as_of
        self._stands_at = as_of
        self._moved_ns: Callable[[], int] = lambda: 0
        self._started = datetime.now(UTC)
        if zone is not None and zone != time_zone():
            os.environ["TZ"] = zone
            time.tzset()
        self._zone = time_zone()

    def install(self) -> None:
        """Answer every question for the time in this process, until it ends."""
        import time_machine

        check_private_attributes("time-machine")
        real_ns = time_machine.escape_hatch.time.time_ns

        def time_ns() -> int:
            # The library's own functions are written in C and have no frame: this one is the
            # caller's.
            if caller_of(sys._getframe(1), ignored=_LOGGING) == "own":
                return real_ns()
            self.is_read = True
            return real_ns() if self._stands_at is None else _ns(self._stands_at) + self._moved_ns()

        traveller = time_machine.travel(0, tick=False).start()
        traveller.time_ns = time_ns  # type: ignore[method-assign]  # tells who asks, which the library does not

    def begin(self, moment: datetime) -> None:
        """Note when the script begins."""
        self._started = moment

    def stand_still(self, moved_ns: Callable[[], int]) -> None:
        """Freeze the clock from now on, at the script's beginning unless it stands already.

        Args:
            moved_ns: what it moves all the same: a script may divide by the time that has passed.
        """
        self._stands_at = self._stands_at or self._started
        self._moved_ns = moved_ns

    def reading(self) -> ClockReading:
        """Return the moment at which the script ran."""
        moment = self._as_of or self._started
        return ClockReading(
            moment=moment.astimezone().isoformat(timespec="microseconds"),
            zone=self._zone,
            is_read=self.is_read,
        )


def _ns(moment: datetime) -> int:
    return round(moment.timestamp() * 1e6) * 1000


# Records of a log carry the real time, though a script may have written them.
_LOGGING = frozenset({"logging"})


def time_zone() -> str:
    """Return the name of the local time zone."""
    name = os.environ.get("TZ", "").lstrip(":")
    if not name and "/zoneinfo/" in (target := str(_LOCALTIME.resolve())):
        name = target.partition("/zoneinfo/")[2]
    name = name or "/".join(time.tzname)
    return "UTC" if name in _UTC_NAMES or name == "UTC/UTC" else name


class _NothingComes(selectors.SelectSelector):
    """Waits for no file; a wait for a timer is over at once.

    Args:
        stuck: called where there is no timer either; it does not return.
    """

    def __init__(self, stuck: Callable[[], NoReturn]) -> None:
        super().__init__()
        self.waited_s = 0.0
        self._stuck = stuck

    def select(self, timeout: float | None = None) -> list[Any]:
        """Return no event."""
        if timeout is None:
            self._stuck()
        self.waited_s += max(timeout, 0.0)
        return []


class PassLoop(asyncio.SelectorEventLoop):
    """Runs coroutines that never wait for anything outside.

    Args:
        stuck: called where all of them wait; it does not return.
    """

    def __init__(self, stuck: Callable[[], NoReturn]) -> None:
        self._nothing_comes = _NothingComes(stuck)
        self._started_s = time.monotonic()
        super().__init__(self._nothing_comes)

    def time(self) -> float:
        """Return the time by which timers have been waited for."""
        return self._started_s + self._nothing_comes.waited_s

    def moved_ns(self) -> int:
        """Return what the clock moves meanwhile: a microsecond for each second."""
        return round(self._nothing_comes.waited_s * 1000)
