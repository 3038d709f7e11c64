"""A thread that runs an event loop of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from mind2web2.utils.aio import Value

# Scripts may leave threads that never end.
_MAX_THREADS = 64


class LoopThread:
    """A thread that runs an event loop until it is stopped, whatever eval scripts raise in it."""

    def __init__(self, name: str) -> None:
        self.is_started = False
        self._is_stopping = False
        self._threads = ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix=name)
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._loop: asyncio.AbstractEventLoop

    def start(self) -> None:
        """Start the thread."""
        # The loop is made only now, because that of a thread that never starts would stay open.
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(self._threads)
        self.is_started = True
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, Value]) -> Future[Value]:
        """Run a coroutine in the thread."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def stop(self) -> None:
        """Let the thread end."""
        self._is_stopping = True
        self._loop.call_soon_threadsafe(self._loop.stop)

    def join(self, timeout_s: float) -> None:
        """Wait until the thread has ended."""
        self._thread.join(timeout_s)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        while not self._is_stopping:
            # asyncio stops the whole loop at one of these in any task of a script.
            with suppress(SystemExit, KeyboardInterrupt):
                self._loop.run_forever()
        with suppress(SystemExit, KeyboardInterrupt):
            self._loop.run_until_complete(_end_all(asyncio.all_tasks(self._loop)))
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._loop.close()


async def _end_all(tasks: set[asyncio.Task[Any]]) -> None:
    """Cancel the tasks that scripts have left behind."""
    for task in tasks:
        task.cancel()
    if tasks:
        done, _ = await asyncio.wait(tasks, timeout=1.0)
        for task in done:
            if not task.cancelled():
                task.exception()  # retrieved, so that asyncio does not log it
