"""The event loop of a run, which no eval script can end early or keep from ending."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Coroutine, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, NoReturn, TypeVar

Value = TypeVar("Value")

# What scripts have left behind is given up after this long.
_GRACE_S = 2.0
_THREAD_NAMES = "run-loop"
# Far more than are ever busy: a script's call that never ends must not take the last one.
_MAX_THREADS = 64


class RunLoop:
    """Runs a coroutine to its end as ``asyncio.run`` does, whatever eval scripts start beside it.

    ``sys.exit`` in a task of a script's own reaches whoever awaits that task, and nobody else. Tasks that
    swallow their cancellation and threads that never end are given up; ``has_leftovers`` then says that
    the process must be ended by ``end_process``, as Python itself would wait for them.
    """

    def __init__(self) -> None:
        self.has_leftovers = False
        self._threads = ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix=_THREAD_NAMES)

    def run(self, main: Coroutine[Any, Any, Value]) -> Value:
        """Return the coroutine's result; ``KeyboardInterrupt`` once Ctrl-C or SIGTERM has stopped it."""
        with _sigterm_as_ctrl_c():
            return self._run(main)

    def _run(self, main: Coroutine[Any, Any, Value]) -> Value:
        runner = asyncio.Runner()
        loop = runner.get_loop()
        loop.set_default_executor(self._threads)
        task = loop.create_task(main)
        try:
            while not task.done():
                # asyncio stops the whole loop at a SystemExit in any task.
                with suppress(SystemExit):
                    runner.run(_ended(task))
            return task.result()
        finally:
            self._close(runner)

    def _close(self, runner: asyncio.Runner) -> None:
        tasks = asyncio.all_tasks(runner.get_loop())
        with suppress(SystemExit):
            runner.run(_cancelled(tasks))
        self._threads.shutdown(wait=False, cancel_futures=True)
        self.has_leftovers = not all(task.done() for task in tasks) or _are_busy(threading.enumerate())
        if not self.has_leftovers:
            runner.close()


@contextmanager
def _sigterm_as_ctrl_c() -> Iterator[None]:
    """Stop as cleanly when a supervisor ends the process as when a person does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def end_process(exit_status: int) -> NoReturn:
    """End the process at once, with what has been printed."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(exit_status)


async def _ended(task: asyncio.Task[Any]) -> None:
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task})
        raise


async def _cancelled(tasks: Iterable[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        done, _ = await asyncio.wait(tasks, timeout=_GRACE_S)
        for task in done:
            if not task.cancelled():
                # Looked at, so that asyncio does not complain of an error that concerns nobody any more.
                task.exception()


def _are_busy(threads: Iterable[threading.Thread]) -> bool:
    deadline_s = time.monotonic() + _GRACE_S
    own = [thread for thread in threads if thread.name.startswith(_THREAD_NAMES)]
    for thread in own:
        thread.join(max(0.0, deadline_s - time.monotonic()))
    return any(thread.is_alive() for thread in own)
