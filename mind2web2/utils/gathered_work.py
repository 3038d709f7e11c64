"""Work for one thread that is handed over together: what gathers while a batch is done is the next batch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

Item = TypeVar("Item")
_Batch = list[tuple[Item, asyncio.Future[Any]]]


@dataclass(frozen=True, slots=True)
class Failed:
    """What became of an item that failed."""

    error: BaseException


class GatheredWork(Generic[Item]):
    """Has items done in a thread, as many at a time as have gathered, in the order in which they came.

    Args:
        thread: where batches are done.
        do_all: does a batch there and returns what became of each item: a value, or ``Failed``.
    """

    def __init__(self, thread: Executor, do_all: Callable[[Sequence[Item]], Sequence[Any]]) -> None:
        self._thread = thread
        self._do_all = do_all
        # What waits while a batch is under way, for each event loop: its tasks wait for it. A loop without
        # a batch has no entry.
        self._gathering: WeakKeyDictionary[asyncio.AbstractEventLoop, _Batch[Item]] = WeakKeyDictionary()

    async def result(self, item: Item) -> Any:
        """Return what became of an item, or raise what it failed with."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()
        gathering = self._gathering.get(loop)
        if gathering is None:
            self._begin(loop, [(item, done)])
        else:
            gathering.append((item, done))
        return await done

    def _begin(self, loop: asyncio.AbstractEventLoop, batch: _Batch[Item]) -> None:
        self._gathering[loop] = []
        work = self._thread.submit(self._do_all, [item for item, _ in batch])

        def call_back(done: Future[Sequence[Any]]) -> None:
            # A loop that was closed meanwhile has nobody left to be told.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._end, loop, batch, done)

        work.add_done_callback(call_back)

    def _end(self, loop: asyncio.AbstractEventLoop, batch: _Batch[Item], work: Future[Sequence[Any]]) -> None:
        gathered = self._gathering.pop(loop)
        if gathered:
            self._begin(loop, gathered)
        error = work.exception()
        outcomes = [Failed(error)] * len(batch) if error is not None else work.result()
        for (_, done), outcome in zip(batch, outcomes, strict=True):
            # Who was cancelled waits no more.
            if done.done():
                continue
            if isinstance(outcome, Failed):
                done.set_exception(outcome.error)
            else:
                done.set_result(outcome)
