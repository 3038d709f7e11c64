"""The questions of the next batch job, written to its input file as they come, until it is to go out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import chain

from mind2web2.batch_state import BatchFolder, Gathering, Question
from mind2web2.llm_client.batch_endpoints import line_frame
from mind2web2.llm_client.messages import JsonBody

# Bodies come to megabytes: so many are hashed or written at once, whoever else waits has none.
_BODIES_AT_ONCE = 2


class Gatherer:
    """Gathers questions for jobs that keep to a file's limits.

    Args:
        folder: where inputs are written.
        url: what the requests of a job are sent to, as the provider calls it.
        most_requests: in one job; may be lowered.
        most_bytes: in one job's input.
    """

    def __init__(self, folder: BatchFolder, url: str, most_requests: int, most_bytes: int) -> None:
        self.most_requests = most_requests
        self._most_bytes = most_bytes
        self._folder = folder
        self._url = url
        self._gathering = folder.gathering()
        self._full: list[Gathering] = []
        self._counts = self._bytes = 0
        self._arrivals = self._coming = 0
        self._bodies = asyncio.Semaphore(_BODIES_AT_ONCE)
        self._changed = asyncio.Event()

    async def named(self, custom_id: str, make_body: Callable[[], JsonBody]) -> Question:
        """Return by what a question is known."""
        self._coming += 1
        try:
            async with self._bodies:
                body_sha256 = await asyncio.to_thread(lambda: make_body().sha256())
        finally:
            self._coming -= 1
            self._changed.set()
        return custom_id or body_sha256, body_sha256

    async def add(self, question: Question, make_body: Callable[[], JsonBody]) -> None:
        """Write a question into the input of the next job; its body is not kept."""
        self._arrivals += 1
        self._coming += 1
        try:
            async with self._bodies:
                await self._write(question, make_body())
        finally:
            self._coming -= 1
            self._changed.set()

    async def _write(self, question: Question, body: JsonBody) -> None:
        opening, closing = line_frame(question[0], self._url)
        size_bytes = len(opening) + body.size_bytes + len(closing)
        if self._counts and (
            self._counts + 1 > self.most_requests or self._bytes + size_bytes > self._most_bytes
        ):
            self._turn_over()
        self._counts += 1
        self._bytes += size_bytes
        line = chain((opening,), body.pieces(), (closing,))
        await asyncio.to_thread(self._gathering.write, question, line)

    def _turn_over(self) -> None:
        self._full.append(self._gathering)
        self._gathering = self._folder.gathering()
        self._counts = self._bytes = 0

    async def due(self, quiet_s: Callable[[], float]) -> list[Gathering]:
        """Return the inputs that are to go out: full ones at once, what there is when nothing new comes.

        Args:
            quiet_s: tells for how long nothing new must have come.
        """
        while not self._full:
            await self._changed.wait()
            self._changed.clear()
            if self._counts and await self._is_quiet(quiet_s):
                self._turn_over()
        due, self._full = self._full, []
        return due

    async def _is_quiet(self, quiet_s: Callable[[], float]) -> bool:
        """Wait until nobody seems to be about to ask; ``False`` if there is enough for a job before."""
        loop = asyncio.get_running_loop()
        while not self._full:
            pause_s = quiet_s()
            before, started_s = self._arrivals, loop.time()
            await asyncio.sleep(pause_s)
            # A loop that comes late has been busy: who wanted to ask could not.
            is_idle = loop.time() - started_s < 1.5 * pause_s
            if is_idle and self._arrivals == before and not self._coming:
                return True
        return False

    async def all_written(self) -> None:
        """Wait until every line that was begun is in its file: a full one does not wait for quiet."""
        while self._coming:
            self._changed.clear()
            await self._changed.wait()
        self._changed.set()

    def remove(self) -> None:
        """Delete what has not gone out."""
        for gathering in (*self._full, self._gathering):
            gathering.remove()
