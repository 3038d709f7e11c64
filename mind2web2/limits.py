"""How much a run does at once, judge requests and page captures, and who is let in at all."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from types import TracebackType
from typing import Any, Self

from mind2web2.utils.api_misuse import script_api


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
