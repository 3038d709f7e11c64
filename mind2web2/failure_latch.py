"""The memory of a judge that failed for good: nothing more is asked for an answer that gets no result."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from types import TracebackType
from typing import TypeVar

from mind2web2.errors import JudgeError, Mind2Web2Error
from mind2web2.llm_client.chat import Limit

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


class LatchedLimit:
    """A limit that lets nobody in once the judge has failed, not even those who were waiting.

    Args:
        limit: entered first; ``None`` for no limit.
        latch: looked at afterwards.
    """

    def __init__(self, limit: Limit | None, latch: FailureLatch) -> None:
        self._limit: Limit = nullcontext() if limit is None else limit
        self._latch = latch

    async def __aenter__(self) -> None:
        await self._limit.__aenter__()
        try:
            self._latch.check()
        except JudgeError:
            await self._limit.__aexit__(None, None, None)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._limit.__aexit__(kind, error, trace)
