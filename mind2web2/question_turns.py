"""Which questions are with the judge just now, as all processes that share a store of judgments see it.

A question's turn is a lock on one byte of an empty file, at the place that the question's hash says. It ends
with its process, and nothing is left of it. How long a question takes has no bound, as it may queue for the
judge; so who has a turn shows that it is alive, by a lock on another byte that comes and goes.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import struct
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from mind2web2.loop_guard import LONGEST_BLOCK_S

if sys.platform != "win32":
    import fcntl

log = logging.getLogger(__name__)

_BEAT_S = 5.0
# A process that is stopped (Ctrl-Z) or hangs keeps its turns: then the question is asked all the same. One
# whose script blocks it goes on afterwards: a beat may have been due just then, and the next takes a moment.
_LONGEST_SILENCE_S = LONGEST_BLOCK_S + 2 * _BEAT_S
_FIRST_POLL_S = 0.01
_LONGEST_POLL_S = 0.5
# Places are 60 bits of the question's hash.
_HASH_DIGITS = 15
_BEATS = 1 << 60
# struct flock of Linux, padded at its end.
_FLOCK = "hhqqi0q"


class QuestionTurns:
    """Lets one process at a time ask a question; within a process, callers see to that themselves.

    Where such locks are not to be had (Windows, some network drives), everybody has a turn: two processes
    may then pay for the same question, and the later reply is kept.

    Args:
        path: of the file, made when the first question is asked; ``None`` for a store that nobody shares.
        beat_s: how often a process shows that it is alive.
        longest_silence_s: a process that has shown nothing for so long is waited for no longer.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        beat_s: float = _BEAT_S,
        longest_silence_s: float = _LONGEST_SILENCE_S,
    ) -> None:
        self._path = path
        self._file: int | None = None
        self._beat_s = beat_s
        self._longest_silence_s = longest_silence_s
        self._beats: dict[int, asyncio.TimerHandle] = {}

    @asynccontextmanager
    async def turn(self, key: str) -> AsyncIterator[None]:
        """Wait until no other process asks the question, and keep others from asking it meanwhile."""
        place = int(key[:_HASH_DIGITS], 16)
        is_taken = await self._taken(place)
        if is_taken:
            self._beat_later(place, shown=True)
        try:
            yield
        finally:
            if is_taken:
                self._give_back(place)

    def close(self) -> None:
        """Give back what is taken, and have no turns any more."""
        self._path = None
        for beat in self._beats.values():
            beat.cancel()
        self._beats.clear()
        if self._file is not None:
            os.close(self._file)
            self._file = None

    async def _taken(self, place: int) -> bool:
        silent_s, pause_s, was_shown = 0.0, _FIRST_POLL_S, False
        while silent_s < self._longest_silence_s:
            try:
                file = self._opened()
                if file is None:
                    return False
                if _lock(file, place):
                    return True
                is_shown = _is_locked(file, place + _BEATS)
            except OSError as error:
                log.debug("questions are not shared among processes path=%s reason=%s", self._path, error)
                self.close()
                return False
            silent_s = silent_s + pause_s if is_shown == was_shown else 0.0
            was_shown = is_shown
            await asyncio.sleep(pause_s)
            # Often enough to see each beat.
            pause_s = min(1.5 * pause_s, _LONGEST_POLL_S, self._beat_s / 3)
        log.warning(
            "the process that asks a question has shown no life for %g s: it is asked once more", silent_s
        )
        return False

    def _opened(self) -> int | None:
        if self._file is None and self._path is not None and sys.platform != "win32":
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        return self._file

    def _beat_later(self, place: int, *, shown: bool) -> None:
        loop = asyncio.get_running_loop()
        self._beats[place] = loop.call_later(self._beat_s, self._beat, place, shown)

    def _beat(self, place: int, shown: bool) -> None:
        if self._file is None:
            return
        try:
            if shown:
                _lock(self._file, place + _BEATS)
            else:
                _unlock(self._file, place + _BEATS)
        except OSError as error:
            log.debug("no sign of life can be given path=%s reason=%s", self._path, error)
            return
        self._beat_later(place, shown=not shown)

    def _give_back(self, place: int) -> None:
        if (beat := self._beats.pop(place, None)) is not None:
            beat.cancel()
        if self._file is not None:
            _unlock(self._file, place + _BEATS)
            _unlock(self._file, place)


def _lock(file: int, place: int, *, is_shared: bool = False) -> bool:
    """Lock a byte, and tell whether that succeeded; never waits."""
    try:
        if sys.platform == "linux":
            # Owned by the open file rather than by the process, in which several stores may be open.
            kind = fcntl.F_RDLCK if is_shared else fcntl.F_WRLCK
            fcntl.fcntl(file, fcntl.F_OFD_SETLK, _flock(kind, place))
        elif sys.platform != "win32":
            kind = fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX
            fcntl.lockf(file, kind | fcntl.LOCK_NB, 1, place)
    except OSError as error:
        if error.errno in {errno.EAGAIN, errno.EACCES}:
            return False
        raise
    return True


def _is_locked(file: int, place: int) -> bool:
    """Tell whether another has locked a byte; those who look do not see one another."""
    if not _lock(file, place, is_shared=True):
        return True
    _unlock(file, place)
    return False


def _unlock(file: int, place: int) -> None:
    if sys.platform == "linux":
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, _flock(fcntl.F_UNLCK, place))
    elif sys.platform != "win32":
        fcntl.lockf(file, fcntl.LOCK_UN, 1, place)


def _flock(kind: int, place: int) -> bytes:
    return struct.pack(_FLOCK, kind, os.SEEK_SET, place, 1, 0)
