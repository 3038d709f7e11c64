"""What judges of one answer share: the first failure ends them, and the ledger notes their replies."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from mind2web2.errors import JudgeError, Mind2Web2Error
from mind2web2.judge.ledger import JudgeLedger, Noted, Rejection
from mind2web2.judge.protocol import Failure, Judge, QuestionContext
from mind2web2.llm_client.chat import ChatReply, Usage
from mind2web2.llm_client.image_limits import NO_LIMIT, ImageLimit
from mind2web2.scheduling.deferral import guard_access
from mind2web2.scheduling.stopping import STOPPED, cut_off


class FailureLatch:
    """Remembers that a judge failed, so that an answer without a result sends no more requests."""

    def __init__(self) -> None:
        self.failure: Mind2Web2Error | None = None

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
    """Return the judge failure for an unforeseen error of its client."""
    return JudgeError(f"the judge's client failed: {type(error).__name__}: {error}")


class JudgeSession:
    """The part of a ``Judge`` that every implementation shares: failure, ledger and image limit."""

    def __init__(self, usage: Usage, image_limit: ImageLimit = NO_LIMIT) -> None:
        self._latch = FailureLatch()
        self._ledger = JudgeLedger(usage)
        self.image_limit = image_limit

    @property
    def ledger(self) -> JudgeLedger:
        """Return usage and notes."""
        guard_access()
        return self._ledger

    @property
    def failure(self) -> Mind2Web2Error | None:
        """Return the first permanent failure."""
        guard_access()
        return self._latch.failure

    def fail(self, failure: Failure) -> Failure:
        """Record a permanent failure."""
        return self._latch.fail(failure)

    def note(self, kind: Noted, text: str) -> None:
        """Add a note to the ledger."""
        getattr(self._ledger, kind).append(text)

    def _note_rejection(self, reply: ChatReply, subject: QuestionContext) -> None:
        if reply.declined is not None:
            self._ledger.rejections.append(
                Rejection(subject.node, subject.page, reply.declined)
            )


@contextmanager
def cut_off_noted(judge: Judge, name: str) -> Iterator[None]:
    """Record a failure of the judge if the script cancels the work in the ``with`` block."""
    try:
        yield
    except asyncio.CancelledError as error:
        if STOPPED not in error.args:
            judge.fail(cut_off(name))
        raise
