"""The permit of a judge request.

It has all that the request waits for, and all that may refuse it, in one place.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from types import TracebackType

from mind2web2.errors import JudgeAccessError, JudgeError, JudgeUnavailableError
from mind2web2.judge.judgment import Judgment
from mind2web2.llm_client.chat import Limit, Usage

log = logging.getLogger(__name__)

# One answer's text may break a server over and over; two answers in a row do not by chance.
_ANSWERS_OF_OUTAGE = 2
# A firewall may reject the text of one answer or of one task, but hardly that of so many answers in
# a row.
_ENOUGH_ANSWERS = 10


class NotAskedError(JudgeError):
    """A question was not asked: another one of the answer failed first, or has a stored reply."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Lets a question be asked as soon as the one that its script waits for is.

    If that one has a stored reply, the script goes on first: it may not need the others.

    Args:
        is_first: the script waits for this question.
        is_asked: whether the one that it waits for was asked; all questions of a pass share it.
    """

    is_first: bool
    is_asked: asyncio.Future[bool]

    def has_come(self) -> bool:
        """Tell whether the question may be asked. Raises NotAskedError: it is not to be asked."""
        if self.is_first:
            self.end(is_asked=True)
        if self.is_asked.done() and not self.is_asked.result():
            raise NotAskedError("another question's reply was stored")
        return self.is_asked.done()

    def end(self, *, is_asked: bool) -> None:
        """Note whether the question was asked."""
        if self.is_first and not self.is_asked.done():
            self.is_asked.set_result(is_asked)


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """The limits that every request for one answer meets.

    Args:
        places: the run's limit of requests in flight.
        check: raises once the answer's judge has failed.
        turn: when a question without a stored reply may be asked; ``None`` for at once.
        asked: takes each judgment that was requested rather than found in the store.
    """

    places: Limit
    check: Callable[[], None]
    turn: Turn | None = None
    asked: list[Judgment] = field(default_factory=list)


class CircuitBreaker:
    """Stops the requests of a run once the judge rejects them all.

    A rejection that concerns all requests (``is_for_all``) opens the circuit at once. Any other may
    be due to one prompt: it opens the circuit only if many answers in a row were rejected and no
    request is in flight. Until a reply comes, requests then go one at a time, so that a wrong model
    costs few of them.

    Attributes:
        reason: why the circuit is open, ``None`` while requests are sent.
        away: how many questions found the server away for too long.
    """

    def __init__(self) -> None:
        self.reason: JudgeAccessError | None = None
        self.away = 0
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
            self.away += 1
        if isinstance(error, JudgeAccessError):
            self._rejected_answers[source] = error
            if error.is_for_all:
                self._open(error)

    def enter(self, away: int) -> asyncio.Event | None:
        """Count a request as in flight; return an event instead if it must wait for other replies.

        Args:
            away: the count when the request began to wait for its place.

        Raises:
            JudgeAccessError: the circuit is open.
            JudgeUnavailableError: an outage was found while the request waited for its place.
                Requests that come later show whether the server is back.
        """
        if self.away > away and (outage := self.outage) is not None:
            raise JudgeUnavailableError(str(outage), is_outage=True)
        rejected = len(self._rejected_answers)
        if self.reason is None and self._in_flight and rejected:
            return self._change
        if rejected >= _ENOUGH_ANSWERS:
            self._open(list(self._rejected_answers.values())[-1])
        if self.reason is not None:
            raise JudgeAccessError(str(self.reason), is_for_all=self.reason.is_for_all)
        self._in_flight += 1
        return None

    def leave(self) -> None:
        """Count a request as no longer in flight."""
        self._in_flight -= 1
        self._notify()

    def _open(self, error: JudgeAccessError) -> None:
        if self.reason is None:
            self.reason = error
            log.info("no further request is sent reason=%s", error)
            self._notify()

    def _notify(self) -> None:
        self._change.set()
        self._change = asyncio.Event()


@dataclass(eq=False)
class Permit:
    """The permit of one question, entered around each of its HTTP requests in turn.

    A request takes these steps, in this order:

    1. Concurrency: it waits for a place among the run's requests in flight.
    2. Failure: it is refused if the judge of its answer has failed since.
    3. Circuit breaker: it is refused if the judge rejects all requests, or turned out to be away
       while it waited for its place. While a rejection is only suspected, it gives its place back
       and waits for the replies in flight.
    4. Budget: it waits until there is room for its cost, or is refused (``PaidPermit``).
    5. Window: fewer requests are in flight than the server takes. ``Attempts`` takes this step
       inside of the permit (``llm_client/retries.py``).

    The place is kept after a reply until ``aclose``, which follows when the reply is stored: a
    process that dies loses no more replies than requests may be in flight.
    """

    limits: AnswerLimits
    breaker: CircuitBreaker
    _place: AsyncExitStack = field(default_factory=AsyncExitStack, init=False)

    async def __aenter__(self) -> None:
        await self.aclose()
        while (replies := await self._take_place()) is not None:
            await replies.wait()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            await self._place.__aexit__(kind, error, trace)

    async def aclose(self) -> None:
        """Give the place back."""
        await self._place.aclose()

    def settle(self, usages: Sequence[Usage]) -> None:
        """Note what the replies cost: nothing counts it here (``PaidPermit``)."""

    async def _reserve(self) -> None:
        """Reserve the cost of a request: none has a limit here."""

    async def _take_place(self) -> asyncio.Event | None:
        """Take all steps but the last; return an event instead if other replies come first."""
        away = self.breaker.away
        async with AsyncExitStack() as place:
            await place.enter_async_context(self.limits.places)
            self.limits.check()
            replies = self.breaker.enter(away)
            if replies is None:
                place.callback(self.breaker.leave)
                await self._reserve()
                self._place = place.pop_all()
        return replies
