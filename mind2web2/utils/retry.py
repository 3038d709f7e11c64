"""Try again what failed for a moment: the one loop for this, except for requests to judges.

Requests to judges share a rate limit and outages, so ``llm_client/retries.py`` has a loop for them.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

log = logging.getLogger(__name__)

Result = TypeVar("Result")


class PassingError(Exception):
    """A failure that may be gone at the next try.

    Args:
        wish_s: seconds that the other side asks to wait.
    """

    def __init__(self, reason: str, wish_s: float = 0.0) -> None:
        super().__init__(reason)
        self.wish_s = wish_s


@dataclass(frozen=True)
class Tries:
    """How often something is tried, and how long it waits between two tries.

    Args:
        most: tries, the first included.
        first_wait_s: it doubles with each try.
        longest_wait_s: also where the other side asks for more.
        total_s: after so many seconds, there is no further try.
    """

    most: int
    first_wait_s: float
    longest_wait_s: float = 60.0
    total_s: float = 3600.0

    def wait_s(self, failures: int, wish_s: float = 0.0) -> float:
        """Return the seconds to wait after so many failures, with jitter."""
        own_s = self.first_wait_s * 2.0 ** (failures - 1) * random.uniform(0.75, 1.25)
        return min(max(own_s, wish_s), self.longest_wait_s)


class _Failures:
    """The failures of one piece of work."""

    def __init__(self, tries: Tries) -> None:
        self._tries = tries
        self._count = 0
        self._last_try_s = time.monotonic() + tries.total_s

    def pause_s(self, error: PassingError) -> float:
        """Return the seconds until the next try. Raises the error if there is none."""
        self._count += 1
        if self._count >= self._tries.most or time.monotonic() > self._last_try_s:
            raise error
        pause_s = self._tries.wait_s(self._count, error.wish_s)
        log.info("trying again wait_s=%.1f reason=%s", pause_s, error)
        return pause_s


async def tried(work: Callable[[], Awaitable[Result]], tries: Tries) -> Result:
    """Return what the work returns, tried again after each ``PassingError``; the last is raised."""
    failures = _Failures(tries)
    while True:
        try:
            return await work()
        except PassingError as error:
            pause_s = failures.pause_s(error)
        await asyncio.sleep(pause_s)


def tried_in_thread(work: Callable[[], Result], tries: Tries) -> Result:
    """Do as ``tried`` for work that blocks its thread."""
    failures = _Failures(tries)
    while True:
        try:
            return work()
        except PassingError as error:
            pause_s = failures.pause_s(error)
        time.sleep(pause_s)
