"""Work that several callers want at once: done once, and given up only when nobody waits for it any more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class SharedWork(Generic[Key, Value]):
    """Work under way, by key. What is done is not remembered."""

    def __init__(self) -> None:
        self._running: dict[Key, _Running[Value]] = {}

    async def result(self, key: Key, work: Callable[[], Coroutine[Any, Any, Value]]) -> Value:
        """Return what the work under this key yields, or raise what it raises; begin it if nobody has.

        A caller that is cancelled leaves the others waiting; the last one takes the work along.
        """
        running = self._running.get(key)
        if running is None:
            running = self._running[key] = _Running(asyncio.create_task(work()))
        running.waiting += 1
        try:
            return await asyncio.shield(running.task)
        finally:
            running.waiting -= 1
            if running.waiting == 0:
                # Before the next await: whoever comes now begins anew instead of joining what is given up.
                self._running.pop(key)
                await _ended(running.task)


@dataclass(slots=True)
class _Running(Generic[Value]):
    task: asyncio.Task[Value]
    waiting: int = 0


async def _ended(task: asyncio.Task[Any]) -> None:
    if not task.done():
        task.cancel()
        await asyncio.wait([task])
