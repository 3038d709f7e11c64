"""How much a run does at once: judge requests and page captures."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self


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
