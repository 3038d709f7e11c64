"""What only program order gets right: noticed while a script does it, and the attempt given up as a whole."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NoReturn, Protocol, TypeVar

Kind = TypeVar("Kind", bound=type)


class ProgramOrderNeeded(BaseException):
    """The script does something that only program order gets right; nothing of this attempt counts.

    No ``Exception``, so that a script's own handlers do not take it for one of theirs.
    """


class Attempt(Protocol):
    """One run of a script, with verifications that may be under way."""

    @property
    def has_work_under_way(self) -> bool:
        """Tell whether a verification has been asked for and is not done."""

    def refuse(self, what: str) -> NoReturn:
        """Give this attempt up: ``what`` needs what is under way, and cannot wait."""


_current: ContextVar[Attempt | None] = ContextVar("mind2web2_attempt", default=None)


@contextmanager
def watched_attempt(attempt: Attempt) -> Iterator[None]:
    """Watch what the script does in the ``with`` block, and in all that it starts."""
    token = _current.set(attempt)
    try:
        yield
    finally:
        _current.reset(token)


def check_look(what: str) -> None:
    """Give the attempt up if its script looks at ``what``, and work under way may change that."""
    attempt = _current.get()
    if attempt is not None and attempt.has_work_under_way and is_on_the_loop():
        attempt.refuse(f"a look at {what}")


def check_change(what: str) -> None:
    """Give any deferred attempt up whose script changes ``what``: another one could not begin without it."""
    attempt = _current.get()
    if attempt is not None and is_on_the_loop():
        attempt.refuse(f"a change of {what}")


def is_on_the_loop() -> bool:
    """Tell whether this code runs on an event loop, as scripts do, and no work of ours on files."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


_watching: set[type] = set()


def watching(kind: Kind) -> Kind:
    """Mark a class as one whose objects check every look and change themselves; no subclass is marked."""
    _watching.add(kind)
    return kind


def is_watching(thing: object) -> bool:
    """Tell whether an object checks every look at it and every change itself."""
    return type(thing) in _watching
