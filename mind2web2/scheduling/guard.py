"""What only program order gets right: noticed while a script does it, and the attempt given up as a whole."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn, Protocol, TypeVar

from mind2web2.errors import JudgeError
from mind2web2.utils.installation import caller_of

Kind = TypeVar("Kind", bound=type)

# What changes files or starts programs, as Python's audit events name it.
_CHANGES = frozenset(
    {
        *("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate"),
        *("sqlite3.connect", "subprocess.Popen", "os.system", "os.posix_spawn", "os.fork"),
    }
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC


# The message of a cancellation by the run, as opposed to one by a time limit of the script.
STOPPED = "stopped by the run"


class ProgramOrderNeeded(BaseException):
    """The script does something that only program order gets right; nothing of this attempt counts.

    No ``Exception``, so that a script's own handlers do not take it for one of theirs.
    """


class ScriptBlockedError(BaseException):
    """Raised within a script that would go on for ever.

    Not an ``Exception``, so that the script's own ``try/except Exception`` does not keep it going.
    """


# Why the script that runs in this context was stopped, set by its caller: the script may catch the error.
blocks_noted: ContextVar[list[str] | None] = ContextVar("blocks_noted", default=None)


def stop_script(reason: str) -> NoReturn:
    """Stop the script that runs in this context."""
    noted = blocks_noted.get()
    if noted is not None:
        noted.append(reason)
    raise ScriptBlockedError(reason)


class Attempt(Protocol):
    """One run of a script, with verifications that may be pending."""

    @property
    def has_work_under_way(self) -> bool:
        """Tell whether a verification has been asked for and is not done."""

    def refuse(self, what: str) -> NoReturn:
        """Give this attempt up: ``what`` needs what is pending, and cannot wait."""

    def keep_order(self, why: str) -> None:
        """Defer nothing from now on: another attempt would not begin as this one did."""

    def check_asking(self) -> None:
        """Raise where the attempt is given up, and this is no work that was deferred before."""


_current: ContextVar[Attempt | None] = ContextVar("mind2web2_attempt", default=None)
_hooked: list[bool] = []


@contextmanager
def watched_attempt(attempt: Attempt) -> Iterator[None]:
    """Watch what the script does in the ``with`` block, and in all that it starts."""
    if not _hooked:
        # Hooks cannot be taken back.
        sys.addaudithook(_on_audit_event)
        _hooked.append(True)
    token = _current.set(attempt)
    try:
        yield
    finally:
        _current.reset(token)


def cut_off(name: str) -> JudgeError:
    """Return the failure for a verification that the script's own time limit cancelled."""
    return JudgeError(
        f"the script stopped waiting for the judge on {name!r} (a time limit of its own, such as "
        "asyncio.timeout or wait_for): raise that limit, or run with --sequential"
    )


def check_look(what: str) -> None:
    """Give the attempt up if its script looks at ``what``, and pending work may change that."""
    attempt = _current.get()
    if attempt is not None and attempt.has_work_under_way and is_on_the_loop():
        attempt.refuse(f"a look at {what}")


def check_change(what: str) -> None:
    """Note that the script changes ``what``, where another attempt would find it.

    With work pending the attempt is given up before that; otherwise it goes on without deferring anything,
    so that no other one is needed.
    """
    attempt = _current.get()
    if attempt is not None and is_on_the_loop():
        _change(attempt, what)


def check_asking() -> None:
    """Send no more requests for an attempt that is given up, apart from those of deferred verifications."""
    attempt = _current.get()
    if attempt is not None:
        attempt.check_asking()


def _change(attempt: Attempt, what: str) -> None:
    if attempt.has_work_under_way:
        attempt.refuse(f"a change of {what}")
    attempt.keep_order(f"a change of {what}")


def _on_audit_event(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "open" and event not in _CHANGES:
        return
    attempt = _current.get()
    if attempt is None or _is_harmless(event, arguments):
        return
    if caller_of(sys._getframe(1)) == "script":
        _change(attempt, f"files or processes ({event})")


def _is_harmless(event: str, arguments: tuple[Any, ...]) -> bool:
    """Tell whether this only reads a file, or stores the compiled form of a module."""
    path = arguments[0] if arguments else None
    name = os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else ""
    if event == "open":
        flags = arguments[2]
        is_read = not name or not isinstance(flags, int) or not flags & _WRITING
        return is_read or name.startswith("/dev/") or "__pycache__" in name
    return "__pycache__" in name


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
