"""Sends each request until it has a reply.

The module says which failures are tried again, how often and for how long.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

from mind2web2.llm_client.chat import Limit, Retries
from mind2web2.llm_client.failures import RequestFailedError
from mind2web2.llm_client.rate_limiter import RateLimiter, Sent
from mind2web2.llm_client.transport import Completion

log = logging.getLogger(__name__)


# Before a server that took no connection is tried once more.
SECOND_CONNECTION_S = 1.0
# A request that the server refuses so often while it accepts others fails.
_MAX_REFUSALS = 30


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long a request is retried.

    Args:
        tries: requests at most, the first included. Refusals (429) and outages do not count.
        total_s: how long a server may refuse all requests; ``Retry-After`` beyond it fails the
            request.
        outage_wait_s: how long a server may be unreachable (no connection, or status 502, 503 or
            504), or answer every question with another 5xx.
        first_wait_s: upper bound of the first wait; it doubles with each try.
        longest_wait_s: upper bound of any wait that the server did not ask for.
        request_timeout_s: a request that takes longer counts as failed.
    """

    tries: int = 6
    total_s: float = 900.0
    outage_wait_s: float = 120.0
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0
    request_timeout_s: float = 300.0

    def wait_s(self, number: int, failure: RequestFailedError) -> float:
        """Return the seconds to wait after so many failures: ``Retry-After``, plus jitter.

        The jitter keeps requests that failed together from being retried together.
        """
        longest_s: float = min(self.first_wait_s * 2.0 ** min(number - 1, 30), self.longest_wait_s)
        if failure.retry_after_s is not None:
            return failure.retry_after_s + random.uniform(
                0, min(longest_s, 0.1 * failure.retry_after_s)
            )
        return random.uniform(longest_s / 2, longest_s)


class Limiter(Protocol):
    """A ``RateLimiter``, or the choice between those of several servers."""

    def passing(self) -> AbstractAsyncContextManager[Sent]:
        """Wait until a request may be sent, as ``RateLimiter.passing`` does."""

    def succeeded(self, sent: Sent, completion: Completion) -> None:
        """Learn from a reply."""

    def failed(self, sent: Sent, failure: RequestFailedError, question: object) -> None:
        """Learn from a failure of a question's request."""

    def is_outage(self, failure: RequestFailedError, since_s: float) -> bool:
        """Tell whether a failure is the server's own, which has replied to nothing since then."""

    def has_given_up(self, wait_s: float) -> bool:
        """Tell whether the server will have failed for too long after this wait."""


class Attempts:
    """Sends the requests of one question, retries them, and counts those that were sent.

    Args:
        limit: entered around each HTTP request, not during a wait between two tries.
        limiter: shared by all requests to a model.
    """

    def __init__(
        self,
        policy: RetryPolicy,
        limit: Limit | None,
        limiter: Limiter | None = None,
        retries: Retries | None = None,
    ) -> None:
        self.made = 0
        self._policy = policy
        self._limit: Limit = nullcontext() if limit is None else limit
        self._limiter: Limiter = limiter or RateLimiter()
        self._retries = retries or Retries()

    async def send(self, request: Callable[[], Awaitable[Completion]]) -> Completion:
        """Return the completion.

        The last ``RequestFailedError`` is raised when retries do not help.
        """
        tries = refusals = outages = 0
        earlier: RequestFailedError | None = None
        loop = asyncio.get_running_loop()
        while True:
            started_s = loop.time()
            try:
                return await self._send_once(request, earlier)
            except RequestFailedError as failure:
                # While others succeed, the fault is this request's own.
                is_outage = self._limiter.is_outage(failure, started_s)
                if failure.is_too_fast:
                    refusals += 1
                    wait_s = self._policy.wait_s(refusals, failure)
                    is_final = refusals >= _MAX_REFUSALS or wait_s >= self._policy.total_s
                elif is_outage:
                    outages += 1
                    wait_s = self._policy.wait_s(min(outages, 3), failure)
                    is_final = False
                else:
                    tries += 1
                    wait_s = self._policy.wait_s(tries, failure)
                    is_final = tries >= self._policy.tries or not failure.can_pass
                has_given_up = (failure.is_too_fast or is_outage) and self._limiter.has_given_up(
                    wait_s
                )
                failure.is_outage = is_outage and has_given_up
                if is_final or has_given_up:
                    raise
                self._log(failure, wait_s, tries)
                earlier = failure
            await asyncio.sleep(wait_s)

    async def _send_once(
        self,
        request: Callable[[], Awaitable[Completion]],
        earlier: RequestFailedError | None = None,
    ) -> Completion:
        # The question's permit (judge/permit.py lists its steps), then the server and its rate
        # limiter.
        async with self._limit, self._limiter.passing() as sent:
            if earlier is not None:  # the limiter may give up before a retry is sent
                self._retries.note(earlier.kind)
            self.made += 1
            try:
                completion = await self._in_time(request)
            except RequestFailedError as failure:
                self.made -= not failure.is_sent
                self._limiter.failed(sent, failure, self)
                raise
            self._limiter.succeeded(sent, completion)
            return completion

    async def _in_time(self, request: Callable[[], Awaitable[Completion]]) -> Completion:
        """Bound the whole exchange.

        A client's own timeout starts again with every byte received.
        """
        timeout_s = self._policy.request_timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                return await request()
        except TimeoutError as error:
            raise RequestFailedError(f"no answer within {timeout_s:g} s") from error

    def _log(self, failure: RequestFailedError, wait_s: float, tries: int) -> None:
        # In an outage every request of a run logs this.
        alike = {"alike": f"judge request: {failure.kind}"}
        if failure.is_too_fast:
            log.warning("Rate limit (%s): waiting %.0f s", failure.kind, wait_s, extra=alike)
            return
        log.warning(
            "Judge request failed, retrying in %.1f s%s: %s",
            wait_s,
            f" (try {tries} of {self._policy.tries})" if tries else "",
            failure,
            extra=alike,
        )
