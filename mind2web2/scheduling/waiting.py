"""Plain functions of a script can wait: its coroutine runs in a greenlet, which gives way to the event loop.

A coroutine gives way by what its ``await`` yields. A plain function cannot yield through its callers, but the
greenlet in which all of them run can be left and entered again. SQLAlchemy's asyncio layer works in this way.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from types import coroutine as awaitable_generator
from typing import Any, TypeVar

from greenlet import getcurrent, greenlet

Result = TypeVar("Result")


class CannotWaitError(Exception):
    """Code outside of a hosted coroutine was to wait, such as a plain callback of the event loop."""


class _Host(greenlet):
    """Runs a coroutine step by step; leaves it wherever the coroutine, or a function in it, waits."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        super().__init__()
        self._coroutine = coroutine
        # Changes of context variables by the coroutine are those of its task.
        self.gr_context = getcurrent().gr_context

    def run(self, value: Any, error: BaseException | None) -> Any:
        """Run the coroutine to its end and return its result."""
        while True:
            try:
                awaited = _step(self._coroutine, value, error)
            except StopIteration as end:
                return end.value
            value, error = self.wait_for(awaited)

    def wait_for(self, awaited: Any) -> tuple[Any, BaseException | None]:
        """Give way until the event loop has an outcome of what is awaited."""
        assert self.parent is not None
        outcome: tuple[Any, BaseException | None] = self.parent.switch(awaited)
        return outcome

    def enter(self, value: Any = None, error: BaseException | None = None) -> Any:
        """Go on, and return what the coroutine awaits next, or its result once it is ``dead``."""
        self.parent = getcurrent()
        return self.switch(value, error)


def _step(
    coroutine: Coroutine[Any, Any, Any], value: Any, error: BaseException | None
) -> Any:
    if error is None:
        return coroutine.send(value)
    return coroutine.throw(error)


@awaitable_generator
def hosted(
    coroutine: Coroutine[Any, Any, Result], note_error: Callable[[BaseException], None]
) -> Generator[Any, Any, Result]:
    """Return a coroutine's result; functions that it calls may use ``wait_now``.

    Args:
        note_error: called with each error that enters the coroutine where it waits, such as a cancellation.
    """
    host = _Host(coroutine)
    awaited = host.enter()
    while not host.dead:
        try:
            value = yield awaited
        except BaseException as error:  # it belongs to the coroutine
            note_error(error)
            awaited = host.enter(error=error)
        else:
            awaited = host.enter(value)
    result: Result = awaited
    return result


def wait_now(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Return a coroutine's result to a plain function, while the event loop goes on with other tasks.

    Raises:
        CannotWaitError: the function was not called by a hosted coroutine.
    """
    host = getcurrent()
    if not isinstance(host, _Host):
        coroutine.close()
        raise CannotWaitError
    value: Any = None
    error: BaseException | None = None
    while True:
        try:
            awaited = _step(coroutine, value, error)
        except StopIteration as end:
            result: Result = end.value
            return result
        value, error = host.wait_for(awaited)
