"""How much a run does at once: judge requests and page captures."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Literal, Self


class ReentrantSemaphore(asyncio.Semaphore):
    """A semaphore that whoever holds it may enter again.

    Scripts may hold the judge's semaphore around calls that enter it themselves; with a plain one, as
    many of them as there are permits would wait for one another for ever.
    """

    def __init__(self, value: int) -> None:
        super().__init__(value)
        self._held: ContextVar[int] = ContextVar("held", default=0)

    async def acquire(self) -> Literal[True]:
        """Take a permit, unless this task or one that started it holds one."""
        if self._held.get() == 0:
            await super().acquire()
        self._held.set(self._held.get() + 1)
        return True

    def release(self) -> None:
        """Give the permit back when it has been released as often as acquired."""
        self._held.set(self._held.get() - 1)
        if self._held.get() == 0:
            super().release()


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
