"""The event loop of a pass: nothing comes from outside, so that time jumps from timer to timer."""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable
from typing import Any, NoReturn


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
