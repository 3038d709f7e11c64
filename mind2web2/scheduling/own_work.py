"""Work that a script starts itself: tasks, timers, callbacks, calls in threads.

Such work runs beside the script. In program order the script is slower than with deferred verifications, so
that the work would be further on when the script looks. Therefore pending verdicts and such work never exist
at the same time: work starts when all verdicts before it are decided, and nothing is deferred until it ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context
from functools import partial
from typing import Any
from weakref import WeakSet

Callback = Callable[..., object]

# asyncio's own callback that ends a sleep, by its name: it has no public one.
_END_OF_SLEEP = "_set_result_unless_cancelled"
# Event loops that report what scripts start.
_reporting: WeakSet[asyncio.AbstractEventLoop] = WeakSet()


class OwnWork:
    """The work of one script that is not done yet."""

    def __init__(self) -> None:
        self._futures: set[asyncio.Future[Any]] = set()
        self._handles: set[asyncio.Handle] = set()

    @property
    def is_done(self) -> bool:
        """Tell whether nothing is left."""
        if self._handles:
            self._handles = {
                handle for handle in self._handles if not handle.cancelled()
            }
        return not self._futures and not self._handles

    def add_future(self, future: asyncio.Future[Any]) -> None:
        """Count a task, or a call in a thread, until its callbacks are called."""
        self._futures.add(future)
        future.add_done_callback(self._futures.discard)

    def add_handle(
        self, schedule: Callable[[Callback], asyncio.Handle], callback: Callback
    ) -> Any:
        """Schedule a callback and count it until it has run or is cancelled."""
        scheduled: list[asyncio.Handle] = []

        def call(*arguments: object) -> None:
            self._handles.difference_update(scheduled)
            scheduled.clear()  # the handle refers to this function: a cycle would keep its arguments alive
            callback(*arguments)

        scheduled.append(schedule(call))
        self._handles.update(scheduled)
        return scheduled[0]


# Returns the work of the script whose code runs, after all pending verdicts; ``None`` for other code.
Starting = Callable[[], OwnWork | None]


def report_work(loop: asyncio.AbstractEventLoop, starting: Starting) -> None:
    """Let a loop call ``starting`` whenever something is to be started on it."""
    if loop in _reporting:
        return
    _reporting.add(loop)
    _report_tasks(loop, starting)
    for name in ("call_soon", "call_soon_threadsafe"):
        _report_callbacks(loop, name, starting)
    _report_timers(loop, starting)
    _report_threads(loop, starting)


def _report_tasks(loop: asyncio.AbstractEventLoop, starting: Starting) -> None:
    make_task = loop.get_task_factory() or _plain_task

    def reported(
        loop: asyncio.AbstractEventLoop,
        coroutine: Coroutine[Any, Any, Any],
        **keywords: Any,
    ) -> asyncio.Future[Any]:
        try:
            work = starting()
        except BaseException:
            coroutine.close()
            raise
        task = make_task(loop, coroutine, **keywords)
        if work is not None:
            work.add_future(task)
        return task

    loop.set_task_factory(reported)  # type: ignore[arg-type]  # the keywords differ by Python version


def _plain_task(
    loop: asyncio.AbstractEventLoop,
    coroutine: Coroutine[Any, Any, Any],
    **keywords: Any,
) -> asyncio.Future[Any]:
    return asyncio.Task(coroutine, loop=loop, **keywords)


def _report_callbacks(
    loop: asyncio.AbstractEventLoop, name: str, starting: Starting
) -> None:
    call = getattr(loop, name)

    def reported(
        callback: Callback, *arguments: Any, context: Context | None = None
    ) -> asyncio.Handle:
        schedule = partial(_scheduled, call, arguments, context)
        if _is_step(callback):
            return schedule(callback)
        work = starting()
        handle: asyncio.Handle = (
            schedule(callback) if work is None else work.add_handle(schedule, callback)
        )
        return handle

    setattr(loop, name, reported)  # C code of asyncio looks it up on the loop, too


def _is_step(callback: Callback) -> bool:
    """Tell whether a callback is the next step of a task, which is counted itself."""
    return type(callback).__module__ == "_asyncio" or isinstance(
        getattr(callback, "__self__", None), asyncio.Task
    )


def _scheduled(
    call: Callable[..., asyncio.Handle],
    arguments: tuple[Any, ...],
    context: Context | None,
    callback: Callback,
) -> asyncio.Handle:
    return call(callback, *arguments, context=context)


def _report_timers(loop: asyncio.AbstractEventLoop, starting: Starting) -> None:
    call_at = loop.call_at

    def reported(
        when: float, callback: Callback, *arguments: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        began_s = loop.time()
        # The end of asyncio.sleep: a task waits for it, which is counted itself.
        work = (
            None if getattr(callback, "__name__", "") == _END_OF_SLEEP else starting()
        )
        # A time limit does not run while the script waits for earlier verdicts.
        when += loop.time() - began_s
        schedule = partial(_scheduled, partial(call_at, when), arguments, context)
        handle: asyncio.TimerHandle = (
            schedule(callback) if work is None else work.add_handle(schedule, callback)  # type: ignore[assignment]
        )
        return handle

    loop.call_at = reported  # type: ignore[method-assign,assignment]


def _report_threads(loop: asyncio.AbstractEventLoop, starting: Starting) -> None:
    run_in_executor = loop.run_in_executor

    def reported(
        executor: Any, function: Callback, *arguments: Any
    ) -> asyncio.Future[Any]:
        work = starting()
        future = run_in_executor(executor, function, *arguments)
        if work is not None:
            work.add_future(future)
        return future

    loop.run_in_executor = reported  # type: ignore[method-assign,assignment]
