"""A lock among processes that ends with the process that holds it, however that ends."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from filelock import BaseFileLock

_POLL_S = 0.01


class ProcessLock:
    """Keeps everybody else out, in this process and in others, until it is given back.

    Args:
        path: of the lock's file, made by whoever takes it and removed by whoever gives it back. One that a
            killed process has left is as good as none.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock: BaseFileLock | None = None

    def take(self, timeout_s: float = 0.0) -> bool:
        """Tell whether it could be taken within this time; its folder is made where needed.

        Raises:
            OSError: the folder cannot be written.
        """
        from filelock import FileLock, Timeout  # brings asyncio

        self._path.parent.mkdir(parents=True, exist_ok=True)
        # Taken by one thread, it may be given back by another.
        lock = FileLock(self._path, thread_local=False)
        try:
            lock.acquire(timeout=timeout_s, poll_interval=_POLL_S)
        except Timeout:
            return False
        self._lock = lock
        return True

    def give_back(self) -> None:
        """Let others in."""
        if self._lock is None:
            return
        # Nobody exchanges lock files: who waits on a removed one notices and starts over. On a disk that
        # cannot be written any more the file stays, which hinders nobody.
        with suppress(OSError):
            self._path.unlink()
        self._lock.release()
        self._lock = None
