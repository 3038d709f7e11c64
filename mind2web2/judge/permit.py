"""The permit of a judge request: all that it waits for, and all that may refuse it, in one place."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from types import TracebackType

from mind2web2.errors import BudgetReachedError
from mind2web2.judge.budget import NoReservation
from mind2web2.judge.circuit_breaker import CircuitBreaker
from mind2web2.llm_client.chat import Limit, Usage


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """What every request for one answer meets.

    Args:
        places: the run's limit of requests in flight.
        check: raises once the answer's judge has failed.
    """

    places: Limit
    check: Callable[[], None]


class Permit:
    """The permit of one question, entered around each of its HTTP requests in turn.

    A request takes these steps, in this order:

    1. Concurrency: it waits for a place among the run's requests in flight.
    2. Failure: it is refused if the judge of its answer has failed since.
    3. Circuit breaker: it is refused if the judge rejects all requests. While that is only suspected, it
       gives its place back and waits for the replies in flight.
    4. Budget: it waits until there is room for its cost, or is refused.
    5. Pool and rate limiter: a server takes it. Each try may go to another server, so ``Attempts`` takes this
       step inside of the permit (``llm_client/retries.py``).

    The place is kept after a reply until ``aclose``, which follows when the reply is stored: a process that
    dies loses no more replies than requests may be in flight.
    """

    def __init__(
        self,
        limits: AnswerLimits,
        breaker: CircuitBreaker | None = None,
        reservation: NoReservation | None = None,
    ) -> None:
        self._limits = limits
        self._breaker = breaker or CircuitBreaker()
        self._reservation = reservation or NoReservation()
        self._place = AsyncExitStack()

    async def __aenter__(self) -> None:
        self._reservation.start_over()
        await self.aclose()
        try:
            async with await self._take_place() as place:
                await self._reservation.reserve()
                self._place = place.pop_all()
        except BudgetReachedError:
            # The place is free again; the error cancels the other questions of the answer.
            await self._reservation.settle_refusal()
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._reservation.end(error)
        if error is not None:
            await self._place.__aexit__(kind, error, trace)

    async def aclose(self) -> None:
        """Give the place back."""
        await self._place.aclose()

    def settle(self, usages: list[Usage]) -> None:
        """Replace the estimated cost by that of the replies."""
        self._reservation.settle(usages)

    async def _take_place(self) -> AsyncExitStack:
        """Take the steps up to the circuit breaker; the result leaves them again."""
        while True:
            async with AsyncExitStack() as place:
                await place.enter_async_context(self._limits.places)
                self._limits.check()
                replies = self._breaker.enter()
                if replies is None:
                    place.push(self._leave_breaker)
                    return place.pop_all()
            await replies.wait()

    def _leave_breaker(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._breaker.leave(has_reply=error is None)
