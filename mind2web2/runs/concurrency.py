"""How many tasks and answers a run judges at once."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass

# Seconds between checks for free requests, and for a new answer to send its first ones.
_CHECK_EVERY_S = 0.05
_STEP_S = 0.03


class Admission:
    """Admits answers: more of them start while the judge could take more requests.

    Args:
        most: answers that may run at once at most, as each takes a process and memory.
    """

    def __init__(self, requests: asyncio.Semaphore, least: int, most: int) -> None:
        self._requests = requests
        self._least = least
        self._most = max(least, most)
        self._running = 0
        self._turn = asyncio.Lock()
        self._ended = asyncio.Event()

    async def __aenter__(self) -> None:
        async with self._turn:
            while self._running >= self._least and not self._has_room():
                self._ended.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._ended.wait(), _CHECK_EVERY_S)
            if self._running >= self._least:
                await asyncio.sleep(_STEP_S)
            self._running += 1

    async def __aexit__(self, *_: object) -> None:
        self._running -= 1
        self._ended.set()

    def _has_room(self) -> bool:
        return self._running < self._most and not self._requests.locked()


@dataclass(frozen=True)
class Concurrency:
    """Tasks at once, and answers of each at once; answers also wait for ``admission``."""

    max_tasks: int = 3
    max_answers: int = 3
    admission: Admission | None = None
