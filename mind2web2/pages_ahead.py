"""Pages that a claim may come to, made ready while those before them are judged."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Self


class PagesAhead:
    """Prepares the next few of a claim's pages; an async context manager that gives up what is not needed.

    What cannot be had is left to whoever asks for the page: it may never be asked for.

    Args:
        prepare: makes a page ready, for all who want it.
        urls: in the order in which they are checked.
        at_once: pages in work, the one that is checked included.
    """

    def __init__(
        self, prepare: Callable[[str], Awaitable[object]], urls: Sequence[str], at_once: int
    ) -> None:
        self._prepare = prepare
        self._urls = urls
        self._at_once = at_once
        self._tasks: list[asyncio.Task[object]] = []

    def reach(self, number: int) -> None:
        """Begin on the pages that follow the one with this number, which is being checked now."""
        begun = len(self._tasks) + 1
        for url in self._urls[begun : number + self._at_once]:
            self._tasks.append(asyncio.create_task(self._prepared(url)))

    async def _prepared(self, url: str) -> object:
        return await self._prepare(url)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
