"""Turns of the event loop: long rounds let other tasks run."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from weakref import WeakKeyDictionary

# Short beside what a request takes, long beside a round of the loop (some 30 microseconds).
_LONGEST_S = 0.002
_MAX_ASKING = 16


class LoopTurns:
    """The turns of tasks in one event loop.

    The loop calls all that was ready at the beginning of a round before it looks at its connections
    again. Where hundreds of questions become ready at once, each of which takes half a millisecond,
    the first request would go out when the last question is prepared, and no other task would run
    until then.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Callable[[], float]) -> None:
        self._call_soon = loop.call_soon
        self._clock = clock
        self._began_s: float | None = None
        self._create_future = loop.create_future
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def turn(self) -> None:
        """Return in a round of the loop that has not taken long yet.

        The first to ask always has a turn.
        """
        if self._waiting or not self._has_time():
            await self._wait()

    async def _wait(self) -> None:
        place = self._create_future()
        self._waiting.append(place)
        try:
            # If all that wait asked in each round, a thousand of them would take a millisecond of
            # it.
            if len(self._waiting) > _MAX_ASKING:
                await place
            while self._waiting[0] is not place or not self._has_time():  # noqa: ASYNC110 (each round)
                await asyncio.sleep(0)
        finally:
            self._waiting.remove(place)
            if len(self._waiting) >= _MAX_ASKING and not self._waiting[_MAX_ASKING - 1].done():
                self._waiting[_MAX_ASKING - 1].set_result(None)

    def _has_time(self) -> bool:
        """Return whether this round has not taken long yet; the first to ask begins it."""
        if self._began_s is not None:
            return self._clock() - self._began_s < _LONGEST_S
        self._began_s = self._clock()
        # A callback scheduled now runs in the next round, before the tasks that resume in it.
        self._call_soon(self._end_round)
        return True

    def _end_round(self) -> None:
        self._began_s = None


_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, LoopTurns] = WeakKeyDictionary()


async def loop_turn() -> None:
    """Yield to other tasks if this round of the event loop has taken long already."""
    loop = asyncio.get_running_loop()
    turns = _turns.get(loop)
    if turns is None:
        turns = _turns[loop] = LoopTurns(loop, time.perf_counter)
    await turns.turn()
