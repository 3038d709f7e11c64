"""Stops the requests of a run once the judge rejects them all."""

from __future__ import annotations

import asyncio
import logging

from mind2web2.errors import JudgeAccessError, JudgeUnavailableError

log = logging.getLogger(__name__)


# One answer's text may break a server over and over; two answers in a row do not by chance.
_ANSWERS_OF_OUTAGE = 2
# A firewall may reject the text of one answer or of one task, but hardly that of so many answers in a row.
_ENOUGH_ANSWERS = 10


class CircuitBreaker:
    """Stops the requests of a run once the judge rejects them all.

    A rejection that concerns all requests (``is_for_all``) opens the circuit at once. Any other may be due to
    one prompt: it opens the circuit only if many answers in a row were rejected and no request is in flight.
    Until a reply comes, requests then go one at a time, so that a wrong model costs few of them.

    Args:
        one_by_one: ``False`` for batch jobs, as each request would wait for a job of its own.

    Attributes:
        reason: why the circuit is open, ``None`` while requests are sent.
    """

    def __init__(self, *, one_by_one: bool = True) -> None:
        self.reason: JudgeAccessError | None = None
        self._suspected_at = 1 if one_by_one else _ENOUGH_ANSWERS
        self._rejected_answers: dict[tuple[str, str], JudgeAccessError] = {}
        self._failed_answers: dict[tuple[str, str], JudgeUnavailableError] = {}
        self._in_flight = 0
        self._change = asyncio.Event()

    @property
    def outage(self) -> JudgeUnavailableError | None:
        """Return why no further answer is to be started: the server stayed away for too long."""
        failures = list(self._failed_answers.values())
        return failures[-1] if len(failures) >= _ANSWERS_OF_OUTAGE else None

    def note_reply(self) -> None:
        """Note that the judge has answered a request."""
        self._failed_answers.clear()
        self._rejected_answers.clear()
        self._notify()

    def note_failure(self, error: BaseException, source: tuple[str, str]) -> None:
        """Note a failed question of an answer, given as task id and answer name."""
        if isinstance(error, JudgeUnavailableError) and error.is_outage:
            self._failed_answers[source] = error
        if isinstance(error, JudgeAccessError):
            self._rejected_answers[source] = error
            if error.is_for_all:
                self._open(error)

    def enter(self) -> asyncio.Event | None:
        """Count a request as in flight; return an event instead if it must wait for other replies.

        Raises:
            JudgeAccessError: the circuit is open.
        """
        rejected = len(self._rejected_answers)
        if self.reason is None and self._in_flight and rejected >= self._suspected_at:
            return self._change
        if rejected >= _ENOUGH_ANSWERS:
            self._open(list(self._rejected_answers.values())[-1])
        if self.reason is not None:
            raise JudgeAccessError(str(self.reason), is_for_all=self.reason.is_for_all)
        self._in_flight += 1
        return None

    def leave(self, *, has_reply: bool) -> None:
        """Count a request as no longer in flight."""
        self._in_flight -= 1
        if has_reply:
            self.note_reply()
        else:
            self._notify()

    def _open(self, error: JudgeAccessError) -> None:
        if self.reason is None:
            self.reason = error
            log.info("no further request is sent reason=%s", error)
            self._notify()

    def _notify(self) -> None:
        self._change.set()
        self._change = asyncio.Event()
