"""An event loop whose seconds are short, for what waits: pauses, paces, time limits."""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Iterator
from contextlib import contextmanager


class _Selector(selectors.DefaultSelector):
    hurry = 1.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for files, and for as many real seconds as the loop's seconds take."""
        return super().select(timeout / self.hurry if timeout else timeout)


class HurriedLoop(asyncio.SelectorEventLoop):
    """A loop whose clock can be made to run faster than others."""

    def __init__(self) -> None:
        self._own_selector = _Selector()
        self._changed_s = self._changed_real_s = time.monotonic()
        super().__init__(self._own_selector)

    def time(self) -> float:
        """Return the loop's seconds."""
        return (
            self._changed_s + (time.monotonic() - self._changed_real_s) * self._own_selector.hurry
        )

    @contextmanager
    def hurried(self, times: float) -> Iterator[None]:
        """Let time pass so many times as fast."""
        self._set(times)
        try:
            yield
        finally:
            self._set(1.0)

    def _set(self, times: float) -> None:
        self._changed_s, self._changed_real_s = self.time(), time.monotonic()
        self._own_selector.hurry = times
