"""The memory of a judge that failed for good: nothing more is asked for an answer that gets no result."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from mind2web2.errors import JudgeError, Mind2Web2Error

Failure = TypeVar("Failure", bound=Mind2Web2Error)


class FailureLatch:
    """Remembers that a judge failed, so that nothing more is asked for an answer that gets no result."""

    def __init__(self) -> None:
        self.failure: Mind2Web2Error | None = None
        self._usual: FailureLatch | None = None

    def check(self) -> None:
        """Raise ``JudgeError`` if the judge has failed."""
        if self.failure is not None:
            raise JudgeError(f"nothing more is asked after a failure: {self.failure}") from self.failure
        if self._usual is not None:
            self._usual.check()

    def fail(self, failure: Failure) -> Failure:
        """Remember the first failure and return this one, to be raised."""
        self.failure = self.failure or failure
        return failure

    def beside(self, usual: FailureLatch) -> FailureLatch:
        """Be a latch that checks the usual one as well, while its own failures stay with it."""
        self._usual = usual
        return self


_latch_set_aside: ContextVar[FailureLatch | None] = ContextVar("mind2web2_latch_set_aside", default=None)


@contextmanager
def failures_set_aside() -> Iterator[None]:
    """Keep the failures of what starts in the ``with`` block apart: they may not count in the end."""
    token = _latch_set_aside.set(FailureLatch())
    try:
        yield
    finally:
        _latch_set_aside.reset(token)


def current_latch(usual: FailureLatch) -> FailureLatch:
    """Return the latch that failures of this code's questions are kept in."""
    aside = _latch_set_aside.get()
    return usual if aside is None else aside.beside(usual)
