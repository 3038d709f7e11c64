"""The memory of a judge that failed for good: nothing more is asked for an answer that gets no result."""

from __future__ import annotations

from typing import TypeVar

from mind2web2.errors import JudgeError, Mind2Web2Error

Failure = TypeVar("Failure", bound=Mind2Web2Error)


class FailureLatch:
    """Remembers that a judge failed, so that nothing more is asked for an answer that gets no result."""

    def __init__(self) -> None:
        self.failure: Mind2Web2Error | None = None

    def check(self) -> None:
        """Raise ``JudgeError`` if the judge has failed."""
        if self.failure is not None:
            raise JudgeError(f"nothing more is asked after a failure: {self.failure}") from self.failure

    def fail(self, failure: Failure) -> Failure:
        """Remember the first failure and return this one, to be raised."""
        self.failure = self.failure or failure
        return failure
