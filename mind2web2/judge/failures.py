"""A judge's failure leaves the answer without a result, and the judge is asked nothing more."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from mind2web2.errors import JudgeError, Mind2Web2Error
from mind2web2.judge.protocol import Failure, Judge

log = logging.getLogger(__name__)

# The message of a cancellation by the run: no time limit of the script has expired.
STOPPED = "stopped by the run"


class FailureLatch:
    """Remembers that a judge failed, so that an answer without a result sends no more requests.

    Attributes:
        failure: the first permanent one.
    """

    failure: Mind2Web2Error | None = None

    def check(self) -> None:
        """Raise ``JudgeError`` if the judge has failed."""
        if self.failure is not None:
            raise JudgeError(
                f"nothing more is asked after a failure: {self.failure}"
            ) from self.failure

    def fail(self, failure: Failure) -> Failure:
        """Remember the first failure and return this one, to be raised."""
        self.failure = self.failure or failure
        return failure


def unexpected(error: Exception) -> JudgeError:
    """Return the judge failure for an unforeseen error of its client; the log has the traceback."""
    log.info("the judge's client failed", exc_info=error)
    return JudgeError(f"the judge's client failed: {type(error).__name__}: {error}")


@contextmanager
def cut_off_noted(judge: Judge, name: str) -> Iterator[None]:
    """Record a failure of the judge if the script cancels the work in the ``with`` block."""
    try:
        yield
    except asyncio.CancelledError as error:
        if STOPPED not in error.args:
            judge.fail(_cut_off(name))
        raise


def _cut_off(name: str) -> JudgeError:
    """Return why there is no result where a time limit of the script's own expired."""
    return JudgeError(
        f"the script stopped waiting for the judge on {name!r} (a time limit of its own, such as "
        "asyncio.timeout or wait_for): raise that limit"
    )
