"""An exclusive lock, within this process and among processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from mind2web2.errors import ResultWriteError, UsageError

if TYPE_CHECKING:
    from filelock import BaseFileLock


_POLL_S = 0.01


class ProcessLock:
    """An exclusive lock, within this process and among processes.

    Args:
        path: of the lock's file, which exists while the lock is held. A file that a killed process
            left does not count.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock: BaseFileLock | None = None

    def take(self, timeout_s: float = 0.0) -> bool:
        """Tell whether it could be taken within this time; its folder is made where needed.

        Raises:
            ResultWriteError: the folder cannot be written.
        """
        from filelock import FileLock, Timeout  # brings asyncio

        with ResultWriteError.unable_to(f"write to {self._path.parent}"):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            # Taken by one thread, it may be given back by another.
            lock = FileLock(self._path, thread_local=False)
            try:
                lock.acquire(timeout=timeout_s, poll_interval=_POLL_S)
            except Timeout:
                return False
        self._lock = lock
        return True

    @contextmanager
    def hold(self, by_another: str) -> Iterator[None]:
        """Hold the lock while entered.

        Args:
            by_another: the message where another process holds it.

        Raises:
            UsageError: another process holds it.
            ResultWriteError: the folder cannot be written.
        """
        if not self.take():
            raise UsageError(by_another)
        try:
            yield
        finally:
            self.give_back()

    def give_back(self) -> None:
        """Release the lock and remove its file."""
        if self._lock is None:
            return
        # A process that waits on the removed file notices and starts over. On a disk that cannot be
        # written any more the file stays, and does not count.
        with suppress(OSError):
            self._path.unlink()
        self._lock.release()
        self._lock = None
