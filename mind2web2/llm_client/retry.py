"""Trying again what can pass: exponentially, with jitter, bounded in tries and in time."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

import backoff

from mind2web2.llm_client.chat import Limit
from mind2web2.llm_client.failures import RequestFailedError
from mind2web2.llm_client.pacing import Pacer
from mind2web2.llm_client.toll import Retries
from mind2web2.llm_client.transport import Completion

if TYPE_CHECKING:
    from backoff.types import Details

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long a judge is asked before it counts as unavailable.

    Args:
        tries: HTTP requests at most, the first included. Refusals for coming too fast do not count: who asks
            as fast as the server allows is refused now and then.
        total_s: no new try later than this; time spent waiting for a limit's turn does not count, nor
            does that before the server last let in a request.
        first_wait_s: ceiling of the first wait; each later one doubles.
        longest_wait_s: ceiling of any wait that the server did not ask for.
        request_timeout_s: a request that takes longer counts as failed.
    """

    tries: int = 6
    total_s: float = 900.0
    first_wait_s: float = 2.0
    longest_wait_s: float = 60.0
    request_timeout_s: float = 300.0


class _NotYetError(RequestFailedError):
    """The request has not been sent, since others have to be answered or time has to pass first."""


class Attempts:
    """Sends one request, again where that can help, and counts what was sent.

    Args:
        policy: when to stop.
        limit: entered around each HTTP request, never during a wait.
        endpoint: named in the log.
        pacer: whose turns are waited for; shared by all requests to a model.
        retries: counts along.
        clock: tells seconds.
    """

    def __init__(
        self,
        policy: RetryPolicy,
        limit: Limit | None,
        endpoint: str,
        pacer: Pacer | None = None,
        retries: Retries | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.made = 0
        self._policy = policy
        self._limit: Limit = nullcontext() if limit is None else limit
        self._endpoint = endpoint
        self._pacer = pacer or Pacer()
        self._retries = retries or Retries()
        self._clock = clock

    async def send(self, request: Callable[[], Awaitable[Completion]]) -> Completion:
        """Return what the request brought; the last ``RequestFailedError`` passes when nothing helped."""
        started_s = self._clock()
        queued_s = 0.0

        async def attempt() -> Completion:
            asked_s = self._clock()

            def begun() -> None:
                nonlocal queued_s
                queued_s += self._clock() - asked_s
                self.made += 1

            return await self._let_in(request, begun)

        def is_final(failure: RequestFailedError) -> bool:
            if failure.is_too_fast:
                return True  # tried again already
            spent_s = self._clock() - started_s - queued_s
            return not failure.can_pass or spent_s + (failure.retry_after_s or 0.0) >= self._policy.total_s

        retrying = backoff.on_exception(
            waits,  # type: ignore[arg-type]  # declared without the failure that is sent in
            RequestFailedError,
            max_tries=self._policy.tries,
            # the waits have their jitter already: a server's Retry-After must not be shortened
            jitter=None,
            giveup=is_final,  # type: ignore[arg-type]  # only RequestFailedError is caught
            on_backoff=self._note_wait,
            logger=None,
            policy=self._policy,
        )
        return await retrying(attempt)()

    async def _let_in(
        self, request: Callable[[], Awaitable[Completion]], begun: Callable[[], None]
    ) -> Completion:
        """Send, and again as long as the server refuses this request but lets in others."""
        loop = asyncio.get_running_loop()
        asked_s = loop.time()
        while True:
            try:
                return await self._in_turn(request, begun)
            except RequestFailedError as failure:
                refused_for_s = loop.time() - max(asked_s, self._pacer.let_in_s)
                wish_s = failure.retry_after_s or 0.0
                if not failure.is_too_fast or refused_for_s + wish_s >= self._policy.total_s:
                    raise
                self._retries.note(failure.kind)

    async def _in_turn(
        self, request: Callable[[], Awaitable[Completion]], begun: Callable[[], None]
    ) -> Completion:
        """Send within limit and pace; who has to wait for the pace leaves the limit to others meanwhile."""
        try:
            async with self._limit:
                turn = self._pacer.turn_at_once()
                if turn is None:
                    raise _NotYetError("others go first")
                with self._pacer.given_back():
                    return await self._sent(request, begun, turn)
        except _NotYetError:
            turn = await self._pacer.turn()
        with self._pacer.given_back():
            # The limit may let nobody in any more by now.
            async with self._limit:
                return await self._sent(request, begun, turn)

    async def _sent(
        self, request: Callable[[], Awaitable[Completion]], begun: Callable[[], None], turn: int
    ) -> Completion:
        begun()
        with self._pacer.sending():
            try:
                completion = await self._in_time(request)
            except RequestFailedError as failure:
                self.made -= not failure.is_sent
                if failure.is_too_fast:
                    self._pacer.refused(turn, failure.allowances, failure.retry_after_s)
                raise
            usage = completion.usage
            self._pacer.answered(turn, completion.allowances, usage.input_tokens + usage.output_tokens)
            return completion

    async def _in_time(self, request: Callable[[], Awaitable[Completion]]) -> Completion:
        """Bound the whole exchange: a client's own timeout starts anew with every byte received."""
        timeout_s = self._policy.request_timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                return await request()
        except TimeoutError as error:
            raise RequestFailedError(f"no answer within {timeout_s:g} s") from error

    def _note_wait(self, details: Details) -> None:
        # the library passes the exception along, but its type declares only the common keys
        failure = details.get("exception")
        kind = failure.kind if isinstance(failure, RequestFailedError) else "unknown"
        self._retries.note(kind)
        log.warning(
            "judge request failed, trying again endpoint=%s try=%d of=%d wait_s=%.2f reason=%s",
            self._endpoint,
            details["tries"],
            self._policy.tries,
            details["wait"],
            failure,
            # In an outage every request of a run says so.
            extra={"alike": f"judge request: {kind}"},
        )


def waits(policy: RetryPolicy) -> Generator[float, RequestFailedError, None]:
    """Yield seconds to wait after each failure sent in: the server's wish plus, or else only, full jitter."""
    ceilings = backoff.expo(factor=policy.first_wait_s, max_value=policy.longest_wait_s)
    ceilings.send(None)
    failure = yield 0.0
    while True:
        # jitter on top of a server's wish keeps thirty waiting requests from coming back as one
        jitter_s = backoff.full_jitter(next(ceilings))
        failure = yield (failure.retry_after_s or 0.0) + jitter_s


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the wait a server asks for: ``retry-after-ms``, or ``Retry-After`` as seconds or a date."""
    milliseconds = _seconds(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "")
    seconds = _seconds(value)
    return _seconds_until(value) if seconds is None else seconds


def _seconds(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _seconds_until(date: str) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, (moment - datetime.now(UTC)).total_seconds())
    except (ValueError, OverflowError):
        return None
