"""Which questions are with the judge just now, as all processes that share a store of judgments see it.

A question's turn is a lock on one byte of an empty file, at the place that the question's hash says. It ends
with its process, and nothing is left of it.
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

if sys.platform != "win32":
    import fcntl

log = logging.getLogger(__name__)

# Longer than retries may take. A process that is stopped (Ctrl-Z) keeps its turns: then the question is
# asked all the same.
_LONGEST_WAIT_S = 900.0
_FIRST_POLL_S = 0.01
_LONGEST_POLL_S = 0.5
# Places are 60 bits of the question's hash.
_HASH_DIGITS = 15
# struct flock of Linux, padded at its end.
_FLOCK = "hhqqi0q"


class QuestionTurns:
    """Lets one process at a time ask a question; within a process, callers see to that themselves.

    Where such locks are not to be had (Windows, some network drives), everybody has a turn: two processes
    may then pay for the same question, and the later reply is kept.

    Args:
        path: of the file, made when the first question is asked; ``None`` for a store that nobody shares.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file: int | None = None

    @asynccontextmanager
    async def turn(self, key: str) -> AsyncIterator[None]:
        """Wait until no other process asks the question, and keep others from asking it meanwhile."""
        place = int(key[:_HASH_DIGITS], 16)
        is_taken = await self._taken(place)
        try:
            yield
        finally:
            if is_taken:
                self._give_back(place)

    def close(self) -> None:
        """Give back what is taken, and have no turns any more."""
        self._path = None
        if self._file is not None:
            os.close(self._file)
            self._file = None

    async def _taken(self, place: int) -> bool:
        waited_s, pause_s = 0.0, _FIRST_POLL_S
        while waited_s < _LONGEST_WAIT_S:
            try:
                file = self._opened()
                if file is None:
                    return False
                if _lock(file, place):
                    return True
            except OSError as error:
                log.debug("questions are not shared among processes path=%s reason=%s", self._path, error)
                self.close()
                return False
            await asyncio.sleep(pause_s)
            waited_s += pause_s
            pause_s = min(1.5 * pause_s, _LONGEST_POLL_S)
        log.warning("another process has asked a question for %g s: it is asked once more", waited_s)
        return False

    def _opened(self) -> int | None:
        if self._file is None and self._path is not None and sys.platform != "win32":
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        return self._file

    def _give_back(self, place: int) -> None:
        if self._file is not None:
            _unlock(self._file, place)


def _lock(file: int, place: int) -> bool:
    """Lock a byte, and tell whether that succeeded; never waits."""
    try:
        if sys.platform == "linux":
            # Owned by the open file rather than by the process, in which several stores may be open.
            fcntl.fcntl(file, fcntl.F_OFD_SETLK, _flock(fcntl.F_WRLCK, place))
        elif sys.platform != "win32":
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
    except OSError as error:
        if error.errno in {errno.EAGAIN, errno.EACCES}:
            return False
        raise
    return True


def _unlock(file: int, place: int) -> None:
    if sys.platform == "linux":
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, _flock(fcntl.F_UNLCK, place))
    elif sys.platform != "win32":
        fcntl.lockf(file, fcntl.LOCK_UN, 1, place)


def _flock(kind: int, place: int) -> bytes:
    return struct.pack(_FLOCK, kind, os.SEEK_SET, place, 1, 0)
