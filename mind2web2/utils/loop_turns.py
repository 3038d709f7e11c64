"""Shares the event loop: work that comes in crowds goes on in the next round after some milliseconds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from weakref import WeakKeyDictionary

# Short beside what a request takes, long beside a round of the loop (some 30 microseconds).
_LONGEST_S = 0.002


class LoopTurns:
    """Whose turn it is in one event loop.

    The loop calls all that was ready at the beginning of a round before it looks at its connections again.
    Where hundreds of questions become ready at once, each of which takes half a millisecond, the first
    request would go out when the last question is prepared, and nobody else would have a say meanwhile.

    Args:
        loop: where the work runs.
        clock: tells seconds.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Callable[[], float]) -> None:
        self._call_soon = loop.call_soon
        self._clock = clock
        self._began_s: float | None = None

    async def turn(self) -> None:
        """Return in a round of the loop that has not taken long yet; the first to ask always has a turn."""
        while self._began_s is not None:
            if self._clock() - self._began_s < _LONGEST_S:
                return
            await asyncio.sleep(0)
        self._began_s = self._clock()
        # What is scheduled now is called in the next round, before all who come back in it.
        self._call_soon(self._end_round)

    def _end_round(self) -> None:
        self._began_s = None


_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, LoopTurns] = WeakKeyDictionary()


async def loop_turn() -> None:
    """Let others have the running loop first where this round of it has taken long already."""
    loop = asyncio.get_running_loop()
    turns = _turns.get(loop)
    if turns is None:
        turns = _turns[loop] = LoopTurns(loop, time.perf_counter)
    await turns.turn()
