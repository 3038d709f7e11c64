"""One process at a time judges an answer: others do something else first, and then wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from mind2web2.errors import ResultWriteError
from mind2web2.utils.files import remove_leftovers
from mind2web2.utils.process_lock import ProcessLock

_LOCK_NAME = ".judging.lock"
# Not to be late by more than a person notices, nor to keep the disk busy.
_POLL_S = 0.25


@asynccontextmanager
async def answer_locked(folder: Path) -> AsyncIterator[bool]:
    """Keep others from judging an answer, and yield whether that succeeded; without waiting.

    The lock ends with its process. Whoever has it removes what killed processes have left unfinished.

    Args:
        folder: of the answer's evaluations.

    Raises:
        ResultWriteError: the folder cannot be written.
    """
    lock = ProcessLock(folder / _LOCK_NAME)
    taking = asyncio.ensure_future(asyncio.to_thread(_take, lock, folder))
    try:
        yield await asyncio.shield(taking)
    finally:
        # Also when it was taken for somebody who was cancelled meanwhile.
        await asyncio.wait({taking})
        lock.give_back()


async def clear_left_lock(folder: Path) -> None:
    """Remove the lock of a process that was killed right after it had written its result."""
    if await asyncio.to_thread((folder / _LOCK_NAME).exists):
        with suppress(ResultWriteError):
            async with answer_locked(folder):
                pass


async def until_unlocked(folder: Path) -> None:
    """Wait until nobody judges the answer, or it cannot be told, as whoever tries to judge it will hear."""
    with suppress(ResultWriteError):
        while True:
            async with answer_locked(folder) as is_ours:
                if is_ours:
                    return
            await asyncio.sleep(_POLL_S)


def _take(lock: ProcessLock, folder: Path) -> bool:
    try:
        is_ours = lock.take()
    except OSError as error:
        raise ResultWriteError(f"cannot write to {folder}: {error.strerror or error}") from error
    if is_ours:
        for written in (folder, folder / "results"):
            remove_leftovers(written, min_age_s=0.0)
    return is_ours
