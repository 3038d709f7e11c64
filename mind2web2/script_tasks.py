"""Tasks that an eval script starts and never awaits: what they raise is for the answer's log alone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Generator
from contextvars import ContextVar
from typing import Any

_Steps = Coroutine[Any, Any, Any] | Generator[Any, None, Any]

log = logging.getLogger(__name__)


class UnseenErrors:
    """Errors of one script's tasks that nobody has looked at, which asyncio would print with a traceback.

    To be entered before the script's first task begins, in the same context.
    """

    def __init__(self) -> None:
        self._failed: list[asyncio.Task[Any]] = []
        self._is_over = False

    def enter(self) -> None:
        """Watch the tasks that are started from here on in this context, and in those that come of it."""
        loop = asyncio.get_running_loop()
        before = loop.get_task_factory()
        if not isinstance(before, _WatchingFactory):
            # It stays for the next: to tasks of others it does nothing.
            loop.set_task_factory(_WatchingFactory(before))
        _watching.set(self)

    def take(self) -> list[BaseException]:
        """Return those so far, once the script is over; later ones go to the package's own log."""
        self._is_over = True
        unseen = [error for task in self._failed if (error := _unseen(task)) is not None]
        self._failed.clear()
        return unseen

    def note(self, task: asyncio.Task[Any]) -> None:
        """Remember a task that has failed; whoever awaits it may still look at its error."""
        if not self._is_over:
            if task._log_traceback:
                self._failed.append(task)
        elif (error := _unseen(task)) is not None:
            log.info("a script's task failed after the script's end error=%s", type(error).__name__)


_watching: ContextVar[UnseenErrors | None] = ContextVar("_watching", default=None)


class _WatchingFactory:
    def __init__(self, before: Any) -> None:  # whatever makes the loop's tasks: its type differs by version
        self._make = before or _new_task

    def __call__(
        self,
        loop: asyncio.AbstractEventLoop,
        steps: _Steps,
        **options: Any,  # which of them there are differs by version as well
    ) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = self._make(loop, steps, **options)
        unseen = _watching.get()
        if unseen is not None:
            task.add_done_callback(unseen.note)
        return task


def _new_task(loop: asyncio.AbstractEventLoop, steps: _Steps, **options: Any) -> asyncio.Task[Any]:
    return asyncio.Task(steps, loop=loop, **options)


def _unseen(task: asyncio.Task[Any]) -> BaseException | None:
    """Return a task's error if nobody has looked at it, and look at it."""
    # There is no other way to know without looking.
    return task.exception() if task._log_traceback else None
