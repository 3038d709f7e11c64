"""The event loop of a run, which no eval script can end early or keep from ending."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import FrameType
from typing import Any, NoReturn, Self, TypeVar

Value = TypeVar("Value")

INTERRUPTED = 130
# What scripts have left behind is given up after this long.
_GRACE_S = 2.0
# A run that was told to stop does so within two seconds, whatever is under way: this long it may take to end
# by itself, and then to say so and to bring out what was printed.
_STOPPING_S = 1.4
_TELLING_S = 0.4
_FLUSHING_S = 0.1
_THREAD_NAMES = "run-loop"
# Far more than are ever busy: a script's call that never ends must not take the last one.
_MAX_THREADS = 64
_SHOW_CURSOR = "\x1b[?25h"


def _say_nothing() -> None:
    """Leave it to the caller."""


class RunLoop:
    """Runs a coroutine to its end as ``asyncio.run`` does, whatever eval scripts start beside it.

    ``sys.exit`` in a task of a script's own, or a ``KeyboardInterrupt`` that it raises, reaches whoever
    awaits that task, and nobody else; Ctrl-C raises none while this runs. Tasks that
    swallow their cancellation and threads that never end are given up; ``has_leftovers`` then says that
    the process must be ended by ``end_process``, as Python itself would wait for them.

    Args:
        tell_stopped: called once when Ctrl-C or SIGTERM has stopped the run, from any thread: says so, and
            writes down what would be lost with the process.
    """

    def __init__(self, tell_stopped: Callable[[], None] = _say_nothing) -> None:
        self.has_leftovers = False
        self._tell_stopped = tell_stopped
        self._threads = ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix=_THREAD_NAMES)

    def run(self, main: Coroutine[Any, Any, Value]) -> Value:
        """Return the coroutine's result; ``KeyboardInterrupt`` once Ctrl-C or SIGTERM has stopped it.

        What does not stop in time is given up with the process, and so is everything at a second Ctrl-C.
        """
        runner = asyncio.Runner()
        loop = runner.get_loop()
        loop.set_default_executor(self._threads)
        task = loop.create_task(main)
        with _Interrupts(lambda: loop.call_soon_threadsafe(task.cancel), self._tell_stopped) as interrupts:
            try:
                while not task.done():
                    # asyncio stops the whole loop at one of these in any task.
                    with suppress(SystemExit, KeyboardInterrupt):
                        runner.run(_ended(task))
            finally:
                self._close(runner)
                if not task.cancelled():
                    # Looked at, so that asyncio does not complain of what a stop has cut short.
                    task.exception()
            interrupts.check()
        return task.result()

    def _close(self, runner: asyncio.Runner) -> None:
        tasks = asyncio.all_tasks(runner.get_loop())
        with suppress(SystemExit, KeyboardInterrupt):
            runner.run(_cancelled(tasks))
        self._threads.shutdown(wait=False, cancel_futures=True)
        self.has_leftovers = not all(task.done() for task in tasks) or _are_busy(threading.enumerate())
        if not self.has_leftovers:
            runner.close()


class _Interrupts:
    """While entered, takes Ctrl-C, and SIGTERM as when a supervisor ends the process.

    The first one stops the run; where that takes too long, as while a script blocks everything, the process
    is ended. The second one ends it at once. All that was earned is on disk by then: judgments and results
    are written as they come.

    Args:
        stop: begins to stop the run.
        tell_stopped: as ``RunLoop`` has it.
    """

    def __init__(self, stop: Callable[[], object], tell_stopped: Callable[[], None]) -> None:
        self._stop = stop
        self._tell_stopped = tell_stopped
        self._told = threading.Lock()
        self._deadline: threading.Timer | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def check(self) -> None:
        """Raise ``KeyboardInterrupt`` if there was one, when it has been told."""
        if self._deadline is None:
            return
        with self._told:
            self._deadline.cancel()
            self._tell_stopped()
        raise KeyboardInterrupt

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self._deadline is not None:
            _in_time(_say_stopped_at_once)
            end_process(INTERRUPTED)
        self._deadline = threading.Timer(_STOPPING_S, self._give_up)
        self._deadline.daemon = True
        self._deadline.start()
        # The loop may just have ended by itself.
        with suppress(RuntimeError):
            self._stop()

    def _give_up(self) -> None:
        # Never released: who comes to tell it in the last moment waits for the end of the process.
        self._told.acquire()
        # In a thread of its own: whoever reads our output may have stopped reading.
        telling = threading.Thread(target=self._tell_stopped, daemon=True)
        telling.start()
        telling.join(_TELLING_S)
        end_process(INTERRUPTED)


def end_process(exit_status: int) -> NoReturn:
    """End the process at once, with what has been printed."""
    _in_time(_flush_output)
    os._exit(exit_status)


def _in_time(write: Callable[[], None]) -> None:
    # In a thread of its own: whoever reads our output may have stopped reading.
    writing = threading.Thread(target=write, daemon=True)
    writing.start()
    writing.join(_FLUSHING_S)


def _say_stopped_at_once() -> None:
    # Past Python's own buffers, which the signal may have caught half written; below a live display.
    line = "\n" * os.isatty(2) + "stopped at once; what was kept by then stays\n"
    with suppress(OSError):
        os.write(2, line.encode())


def _flush_output() -> None:
    for output in (sys.stdout, sys.stderr):
        # Whoever was to read it may have gone.
        with suppress(OSError, ValueError):
            if output.isatty():
                output.write(_SHOW_CURSOR)
            output.flush()


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
