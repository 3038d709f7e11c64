"""The event loop of a command: Ctrl-C and SIGTERM stop it in order, and a second one at once."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

INTERRUPTED = 130
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SHOW_CURSOR = "\x1b[?25h"


def run_to_exit(main: Coroutine[Any, Any, int], report_stop: Callable[[], None]) -> int:
    """Run a command's coroutine and return its exit status, 130 after Ctrl-C or SIGTERM.

    The first signal cancels the coroutine. A second one ends the process at once: judgments and
    results are on disk by then.

    Args:
        report_stop: called once when a signal has stopped the coroutine.
    """
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        task = loop.create_task(main)
        with _signals_handled(lambda: loop.call_soon_threadsafe(task.cancel)):
            try:
                return runner.run(_result_of(task))
            except asyncio.CancelledError:
                report_stop()
                return INTERRUPTED


async def _result_of(task: asyncio.Task[int]) -> int:
    return await task


@contextmanager
def _signals_handled(stop: Callable[[], object]) -> Iterator[None]:
    """Call ``stop`` at the first signal, and end the process at the second; for its main thread."""

    def handle(*_: object) -> None:
        for number in _SIGNALS:
            signal.signal(number, _end_at_once)
        stop()

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end_at_once(*_: object) -> NoReturn:
    # The signal may have caught Python's own buffers half written, so the line goes past them. On a
    # terminal it goes below a live display, which hides the cursor.
    line = "stopped at once; results and judgments stored so far are kept\n"
    if os.isatty(2):
        line = f"{_SHOW_CURSOR}\n{line}"
    with suppress(OSError):
        os.write(2, line.encode())
    os._exit(INTERRUPTED)
