"""How much a run does at once, judge requests and page captures, and who is let in at all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext, suppress
from types import TracebackType
from typing import Any, Self

from mind2web2.utils.api_misuse import script_api

# Seconds between two looks at the judge's requests, and for a new answer to send its first ones.
_LOOK_EVERY_S = 0.05
_STEP_S = 0.03


@script_api
class DualSemaphore:
    """The limits that a script is given.

    ``async with`` on the pair itself holds neither permit: every request inside enters its own limit.

    Args:
        webpage_semaphore: entered around each page capture.
        llm_semaphore: entered around each judge request.
    """

    def __init__(self, webpage_semaphore: Any, llm_semaphore: Any) -> None:
        self.webpage = webpage_semaphore
        self.llm = llm_semaphore

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class CheckedLimit:
    """A limit that is left again where a check says so, which whoever was waiting for it has to pass too.

    Args:
        limit: entered first; ``None`` for no limit.
        check: called within; raises for who is not to be let in.
    """

    def __init__(self, limit: AbstractAsyncContextManager[Any] | None, check: Callable[[], None]) -> None:
        self._limit = nullcontext() if limit is None else limit
        self._check = check

    async def __aenter__(self) -> None:
        async with AsyncExitStack() as entered:
            await entered.enter_async_context(self._limit)
            self._check()
            entered.pop_all()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._limit.__aexit__(kind, error, trace)


class Admission:
    """Entered by each answer: further answers start while fewer judge requests are in flight than may be.

    Args:
        requests: the limit of judge requests.
        least: answers that may run at once in any case.
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
                    await asyncio.wait_for(self._ended.wait(), _LOOK_EVERY_S)
            if self._running >= self._least:
                await asyncio.sleep(_STEP_S)
            self._running += 1

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running -= 1
        self._ended.set()

    def _has_room(self) -> bool:
        return self._running < self._most and not self._requests.locked()
