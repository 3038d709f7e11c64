"""Asyncio helpers: gather with cancellation, single-flight, and a queue for a worker thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

Value = TypeVar("Value")


async def all_or_first_error(
    coroutines: Iterable[Coroutine[Any, Any, Value]],
) -> list[Value]:
    """Return the results in input order; on an error cancel and await the others."""
    tasks = list(map(asyncio.create_task, coroutines))
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        await end_all(tasks)


async def end_all(tasks: Iterable[asyncio.Future[Any]], reason: str | None = None) -> None:
    """Cancel tasks, and wait until each has ended, in whatever way."""
    ending = list(tasks)
    for task in ending:
        task.cancel(reason)
    await asyncio.gather(*ending, return_exceptions=True)


async def to_the_end(coroutine: Coroutine[Any, Any, Value]) -> Value:
    """Return a coroutine's result; a cancelled caller waits for the coroutine before it ends."""
    task = asyncio.create_task(coroutine)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.add_done_callback(_retrieve_error)
        while not task.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({task})
        raise


def _retrieve_error(task: asyncio.Task[Any]) -> None:
    # Its caller was cancelled. asyncio would log an error that is never retrieved.
    if not task.cancelled():
        task.exception()


Key = TypeVar("Key", bound=Hashable)


class SharedWork(Generic[Key, Value]):
    """Single-flight: callers with the same key share one task. Results are not kept."""

    def __init__(self) -> None:
        self._running: dict[Key, _Running[Value]] = {}

    async def result(self, key: Key, work: Callable[[], Coroutine[Any, Any, Value]]) -> Value:
        """Run the work under this key, unless it runs already, and return its result.

        Cancelling a caller leaves the others waiting; cancelling the last one cancels the work.
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
                # Before the next await: later callers start new work instead of joining cancelled
                # work.
                self._running.pop(key)
                await _cancel_and_wait(running.task)


@dataclass(slots=True)
class _Running(Generic[Value]):
    task: asyncio.Task[Value]
    waiting: int = 0


async def _cancel_and_wait(task: asyncio.Task[Any]) -> None:
    if not task.done():
        task.cancel()
        await asyncio.wait([task])


Work = TypeVar("Work")
Result = TypeVar("Result")
_Batch = list[tuple[Work, "asyncio.Future[Value]"]]


class ThreadQueue(Generic[Work, Value]):
    """Work that one thread does together, as much as is waiting when the thread is free.

    Args:
        name: of the thread.
        do: called in the thread; returns a result or an error for each piece of work, in their
            order.
    """

    def __init__(
        self, name: str, do: Callable[[Sequence[Work]], Sequence[Value | BaseException]]
    ) -> None:
        self._do = do
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._waiting: WeakKeyDictionary[asyncio.AbstractEventLoop, _Batch[Work, Value]] = (
            WeakKeyDictionary()
        )

    def call(self, work: Callable[[], Result]) -> Result:
        """Call a function in the thread and wait for it."""
        return self._thread.submit(work).result()

    def send(self, work: Work) -> asyncio.Future[Value]:
        """Begin a piece of work; the future has its result or error."""
        loop = asyncio.get_running_loop()
        result: asyncio.Future[Value] = loop.create_future()
        waiting = self._waiting.get(loop)
        if waiting is None:
            self._begin(loop, [(work, result)])
        else:
            waiting.append((work, result))
        return result

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown()

    def _begin(self, loop: asyncio.AbstractEventLoop, batch: _Batch[Work, Value]) -> None:
        self._waiting[loop] = []
        # No task: the loop may run a script, whose tasks are cancelled at its end.
        running = loop.run_in_executor(self._thread, self._do, [work for work, _ in batch])
        running.add_done_callback(partial(self._end, loop, batch))

    def _end(
        self,
        loop: asyncio.AbstractEventLoop,
        batch: _Batch[Work, Value],
        running: asyncio.Future[Sequence[Value | BaseException]],
    ) -> None:
        if waiting := self._waiting.pop(loop):
            self._begin(loop, waiting)
        error = running.exception()
        if error is None:
            outcomes = running.result()
        else:
            outcomes = [error] * len(batch)
        for (_, result), outcome in zip(batch, outcomes, strict=True):
            if result.done():  # the caller was cancelled
                continue
            if isinstance(outcome, BaseException):
                result.set_exception(outcome)
            else:
                result.set_result(outcome)
