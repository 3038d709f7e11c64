"""The event loop of a run: no eval script ends it early or keeps it from ending."""

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
# Time for tasks and threads that scripts have left behind.
_GRACE_S = 2.0
# Ctrl-C ends a run within two seconds: time for it to end by itself, then to report, then to flush
# output.
_STOPPING_S = 1.4
_REPORTING_S = 0.4
_FLUSHING_S = 0.1
_THREAD_NAMES = "run-loop"
# Far more than are ever busy: scripts may leave threads that never end.
_MAX_THREADS = 64
_SHOW_CURSOR = "\x1b[?25h"


def run_to_exit(main: Coroutine[Any, Any, int], report_stop: Callable[[], None]) -> int:
    """Run a command's coroutine and return its exit status, 130 after Ctrl-C or SIGTERM."""
    loop = RunLoop(report_stop)
    try:
        exit_status = loop.run(main)
    except KeyboardInterrupt:
        exit_status = INTERRUPTED
    if loop.has_leftovers:
        end_process(exit_status)
    return exit_status


class RunLoop:
    """Runs a coroutine to its end as ``asyncio.run`` does, whatever eval scripts start beside it.

    ``sys.exit`` or ``KeyboardInterrupt`` in a task of a script reaches only the code that awaits
    the task; Ctrl-C raises nothing while this runs. Tasks that swallow their cancellation and
    threads that never end are abandoned; ``has_leftovers`` then says that ``end_process`` must end
    the process, as Python itself would wait for them.

    Args:
        report_stop: called once when Ctrl-C or SIGTERM has stopped the run, from any thread: prints
            a report, and writes state that is only in memory.
    """

    def __init__(self, report_stop: Callable[[], None] = lambda: None) -> None:
        self.has_leftovers = False
        self._report_stop = report_stop
        self._threads = ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix=_THREAD_NAMES)

    def run(self, main: Coroutine[Any, Any, Value]) -> Value:
        """Return the coroutine's result.

        It raises ``KeyboardInterrupt`` once Ctrl-C or SIGTERM has stopped the coroutine.

        A run that does not stop in time ends with the process; a second Ctrl-C ends it at once.
        """
        runner = asyncio.Runner()
        loop = runner.get_loop()
        loop.set_default_executor(self._threads)
        task = loop.create_task(main)
        with _Interrupts(
            lambda: loop.call_soon_threadsafe(task.cancel), self._report_stop
        ) as interrupts:
            try:
                while not task.done():
                    # asyncio stops the whole loop at one of these in any task.
                    with suppress(SystemExit, KeyboardInterrupt):
                        runner.run(_wait_for_end(task))
            finally:
                self._close(runner)
                if not task.cancelled():
                    # Retrieve the error of a stopped run, so that asyncio does not log it.
                    task.exception()
            interrupts.check()
        return task.result()

    def _close(self, runner: asyncio.Runner) -> None:
        tasks = asyncio.all_tasks(runner.get_loop())
        with suppress(SystemExit, KeyboardInterrupt):
            runner.run(_cancel_all(tasks))
        self._threads.shutdown(wait=False, cancel_futures=True)
        self.has_leftovers = not all(task.done() for task in tasks) or _are_busy(
            threading.enumerate()
        )
        if not self.has_leftovers:
            runner.close()


class _Interrupts:
    """Handles Ctrl-C and SIGTERM while entered.

    The first signal stops the run; if that takes too long, as while a script blocks everything, the
    process ends. A second signal ends it at once. Judgments and results are on disk by then.

    Args:
        stop: begins to stop the run.
        report_stop: as ``RunLoop`` has it.
    """

    def __init__(self, stop: Callable[[], object], report_stop: Callable[[], None]) -> None:
        self._stop = stop
        self._report_stop = report_stop
        self._reporting = threading.Lock()
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
        """After a signal, report the stop and raise ``KeyboardInterrupt``."""
        if self._deadline is None:
            return
        with self._reporting:
            self._deadline.cancel()
            self._report_stop()
        raise KeyboardInterrupt

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self._deadline is not None:
            _in_time(_write_stopped_at_once, _FLUSHING_S)
            end_process(INTERRUPTED)
        self._deadline = threading.Timer(_STOPPING_S, self._give_up)
        self._deadline.daemon = True
        self._deadline.start()
        # The loop may just have ended by itself.
        with suppress(RuntimeError):
            self._stop()

    def _give_up(self) -> None:
        # Never released: `check`, if it comes now, waits until the process ends.
        self._reporting.acquire()
        _in_time(self._report_stop, _REPORTING_S)
        end_process(INTERRUPTED)


def end_process(exit_status: int) -> NoReturn:
    """End the process at once, after flushing its output."""
    _in_time(_flush_output, _FLUSHING_S)
    os._exit(exit_status)


def _in_time(write: Callable[[], None], seconds: float) -> None:
    # In a thread of its own: the reader of our output may have stopped reading.
    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    thread.join(seconds)


def _write_stopped_at_once() -> None:
    # The signal may have caught Python's own buffers half written, so the line goes past them. On a
    # terminal it goes below a live display.
    line = "stopped at once; results and judgments stored so far are kept\n"
    if os.isatty(2):
        line = f"\n{line}"
    with suppress(OSError):
        os.write(2, line.encode())


def _flush_output() -> None:
    for output in (sys.stdout, sys.stderr):
        # The reader may be gone.
        with suppress(OSError, ValueError):
            if output.isatty():
                output.write(_SHOW_CURSOR)
            output.flush()


async def _wait_for_end(task: asyncio.Task[Any]) -> None:
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task})
        raise


async def _cancel_all(tasks: Iterable[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        done, _ = await asyncio.wait(tasks, timeout=_GRACE_S)
        for task in done:
            if not task.cancelled():
                # Retrieve the error, so that asyncio does not log it.
                task.exception()


def _are_busy(threads: Iterable[threading.Thread]) -> bool:
    deadline_s = time.monotonic() + _GRACE_S
    own = [thread for thread in threads if thread.name.startswith(_THREAD_NAMES)]
    for thread in own:
        thread.join(max(0.0, deadline_s - time.monotonic()))
    return any(thread.is_alive() for thread in own)
