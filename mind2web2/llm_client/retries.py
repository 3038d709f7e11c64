"""When requests to a model are sent: how many at once, and which ones again.

- The window begins small and grows by one with each reply (slow start), until the server has
  refused two requests in a row (429) or let one time out. Then it halves, and grows slowly.
- It does not grow to where a request would wait for a reply longer than it may: if a server
  answers one request after the other, a reply takes as long as those before it.
- When most questions fail and none is answered, all requests wait: as long as ``Retry-After``
  says, or some seconds. Then single requests probe the server, and slow start begins again.
- A request is sent again after failures that can pass, for as long as the policy says.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from mind2web2.llm_client.chat import Completion, Limit, Retries, SentRequests, Slowdown, Usage
from mind2web2.llm_client.failures import RequestFailedError

log = logging.getLogger(__name__)

FIRST_WINDOW = 8
_GROWTH = 0.02
_LEAST_GROWTH = 0.1
# The part of a request's time limit that its reply may take before the window stops to grow.
_MOST_OF_TIMEOUT = 0.8
# More questions than the votes on one claim: one text may break a server over and over.
_MANY = 4
_PROBE_INTERVALS_S = (1.0, 5.0)
# Before a server that took no connection is tried once more.
SECOND_CONNECTION_S = 1.0
# A request that the server refuses so often while it accepts others fails, too.
_SHARE_OF_REFUSAL = 0.2


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long a request is retried.

    Args:
        tries: requests at most, the first included. Outages do not count, and refusals (429) a
            fifth.
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
        """Return the seconds to wait after so many failures, at least ``Retry-After``.

        The jitter keeps requests that failed together from being retried together.
        """
        longest_s: float = min(self.first_wait_s * 2.0 ** min(number - 1, 30), self.longest_wait_s)
        wished_s = (failure.retry_after_s or 0.0) * random.uniform(1, 1.1)
        return max(wished_s, random.uniform(longest_s / 2, longest_s))


@dataclass(frozen=True, slots=True)
class Sent:
    """A request that may be sent: its number and how many others were in flight."""

    number: int
    at_s: float
    others: int


class Window:
    """Lets requests to one model pass.

    Args:
        slowdown: updated by this window.
    """

    def __init__(self, policy: RetryPolicy, slowdown: Slowdown) -> None:
        self.policy = policy
        self._slowdown = slowdown
        self._size = float(FIRST_WINDOW)
        self._slow_start_until = math.inf
        self._in_flight = 0
        self._number = 0
        # Requests up to this number say nothing about the present size, which is tried once a later
        # one has a reply.
        self._settled_number = 0
        self._is_tried = True
        self._paused_until_s = -math.inf
        self._changed = asyncio.Event()
        self._succeeded_at_s = -math.inf
        # Since the latest reply: the questions that failed by the server's fault, and since when.
        self._failing: set[object] = set()
        self._failing_since_s = math.inf
        self._failed_at_s = -math.inf
        self._failure = RequestFailedError("")

    @asynccontextmanager
    async def passing(self) -> AsyncIterator[Sent]:
        """Wait until a request may be sent; it is in flight during the ``with`` block.

        Raises:
            RequestFailedError: the last failure, if the server has failed for too long.
        """
        arrived_s = now_s = _now_s()
        while self._in_flight >= int(self._size) or self._paused_until_s > now_s:
            # A probe in flight may succeed; a failure of the same answer's other requests would
            # cancel it.
            has_seen_failure = not self._in_flight and arrived_s <= self._failed_at_s
            if has_seen_failure and self.has_given_up(self._failure):
                raise self._failure
            await self._wait()
            now_s = _now_s()
        self._number += 1
        sent = Sent(self._number, now_s, self._in_flight)
        self._in_flight += 1
        try:
            yield sent
        finally:
            self._in_flight -= 1
            self._changed.set()
            self._changed = asyncio.Event()

    def succeeded(self, sent: Sent) -> None:
        """Learn from a reply."""
        now_s = self._succeeded_at_s = _now_s()
        self._is_tried |= sent.number > self._settled_number
        self._failing.clear()
        self._failing_since_s = math.inf
        in_flight = sent.others + 1
        latency_s = max(now_s - sent.at_s, 1e-6)
        most = in_flight * _MOST_OF_TIMEOUT * self.policy.request_timeout_s / latency_s
        if in_flight >= self._size / 2 and self._size < most:
            is_slow_start = self._size < self._slow_start_until
            self._size += 1 if is_slow_start else max(_LEAST_GROWTH, _GROWTH * self._size)

    def failed(self, sent: Sent, failure: RequestFailedError, question: object) -> None:
        """Learn from a failure by the server's fault.

        Args:
            question: several requests may be its.
        """
        if not failure.is_of_server:
            return
        self._failure, self._failed_at_s = failure, _now_s()
        self._failing_since_s = min(self._failing_since_s, self._failed_at_s)
        self._failing.add(question)
        self._slowdown.refusals += failure.is_too_fast
        if failure.is_timeout:
            log.warning(
                "%s, with %d requests in flight; if the judge's server answers few at once, say so: "
                "--max_llm_requests 4",
                failure,
                self._in_flight,
                extra={"alike": "judge request: no answer in time"},
            )
        if len(self._failing) >= max(_MANY, self._in_flight):
            if sent.number > self._settled_number:
                self._pause(failure)
        elif self._is_tried and (failure.is_timeout or self._is_refused_twice(failure)):
            self._size = self._slow_start_until = max(1.0, self._size / 2)
            self._settled_number = self._number
            self._is_tried = False
            log.info("judge's limit reached in_flight=%.0f reason=%s", self._size, failure.kind)

    def _is_refused_twice(self, failure: RequestFailedError) -> bool:
        """Tell whether two requests in a row were refused: a single refusal is no limit."""
        return failure.is_too_fast and len(self._failing) > 1

    def is_outage(self, failure: RequestFailedError, since_s: float) -> bool:
        """Tell whether a failure is the server's own, which has replied to nothing since then."""
        is_down = failure.is_unreachable or (failure.is_of_server and len(self._failing) >= _MANY)
        return is_down and not failure.is_too_fast and self._succeeded_at_s < since_s

    def has_given_up(self, failure: RequestFailedError, wait_s: float = 0.0) -> bool:
        """Tell whether the server will have failed in this way for too long after this wait."""
        patience_s = self.policy.total_s if failure.is_too_fast else self.policy.outage_wait_s
        return _now_s() + wait_s - self._failing_since_s >= patience_s

    def _pause(self, failure: RequestFailedError) -> None:
        """Let all requests wait, then send one at a time."""
        shortest_s, longest_s = _PROBE_INTERVALS_S
        wait_s = failure.retry_after_s
        if wait_s is None or wait_s >= self.policy.total_s:
            failing_s = self._failed_at_s - self._failing_since_s
            wait_s = min(max(failing_s / 2, shortest_s), longest_s)
        self._size = 1.0
        self._settled_number = self._number
        self._paused_until_s = max(self._paused_until_s, self._failed_at_s + wait_s)
        log.warning(
            "all requests to the judge wait for %.0f s: %s",
            wait_s,
            failure,
            extra={"alike": "all requests to the judge wait"},
        )

    async def _wait(self) -> None:
        """Wait until a request has ended, or the end of the pause if none has to."""
        started_s = _now_s()
        is_full = self._in_flight >= int(self._size)
        with suppress(TimeoutError):
            async with asyncio.timeout_at(None if is_full else self._paused_until_s):
                await self._changed.wait()
        if self._settled_number:
            self._slowdown.waited_s += _now_s() - started_s


@dataclass(eq=False)
class Attempts:
    """Sends the requests of one question, retries them, and counts those that were sent.

    Args:
        window: shared by all requests to a model.
        limit: entered around each HTTP request, not during a wait between two tries.
        sent: of the question; counts requests beside those of this call.

    Attributes:
        made: how many were sent in this call.
    """

    window: Window
    limit: Limit
    retries: Retries
    sent: SentRequests
    made: int = 0

    async def send(self, request: Callable[[], Awaitable[Completion]]) -> Completion:
        """Return the completion.

        The last ``RequestFailedError`` is raised when retries do not help.
        """
        tries = 0.0
        failures = 0
        earlier: RequestFailedError | None = None
        loop = asyncio.get_running_loop()
        while True:
            started_s = loop.time()
            try:
                return await self._send_once(request, earlier)
            except RequestFailedError as failure:
                failures += 1
                # While others succeed, the fault is this request's own.
                is_outage = self.window.is_outage(failure, started_s)
                is_soon = is_outage or failure.is_too_fast
                wait_s = self.window.policy.wait_s(
                    min(failures, 3) if is_soon else failures, failure
                )
                if failure.is_too_fast:
                    tries += _SHARE_OF_REFUSAL
                elif not is_outage:
                    tries += 1
                has_given_up = is_soon and self.window.has_given_up(failure, wait_s)
                failure.is_outage = is_outage and has_given_up
                is_final = tries >= self.window.policy.tries or not failure.can_pass
                if is_final or has_given_up or wait_s >= self.window.policy.total_s:
                    raise
                log.warning(
                    "judge request failed, retrying in %.1f s: %s",
                    wait_s,
                    failure,
                    # In an outage every request of a run logs this.
                    extra={"alike": f"judge request: {failure.kind}"},
                )
                earlier = failure
            await asyncio.sleep(wait_s)

    async def _send_once(
        self,
        request: Callable[[], Awaitable[Completion]],
        earlier: RequestFailedError | None,
    ) -> Completion:
        # The question's permit (judge/permit.py lists its steps), then the model's window.
        async with self.limit, self.window.passing() as place:
            if earlier is not None:  # the window may give up before a retry is sent
                self.retries.note(earlier.kind)
            self.sent.first_sent_ns = self.sent.first_sent_ns or time.time_ns()
            self.made += 1
            self.sent.requests += 1
            timeout_s = self.window.policy.request_timeout_s
            try:
                # The whole exchange: a client's own timeout starts again with every byte.
                async with asyncio.timeout(timeout_s):
                    completion = await request()
            except TimeoutError as error:
                late = RequestFailedError(f"no answer within {timeout_s:g} s", is_timeout=True)
                self.window.failed(place, late, self)
                raise late from error
            except RequestFailedError as failure:
                self.made -= not failure.is_sent
                self.sent.requests -= not failure.is_sent
                # A reply that was lost may be billed; an error of the server is not.
                self.sent.reported += failure.status is not None
                self.window.failed(place, failure, self)
                raise
            self.sent.reported += completion.usage != Usage()
            self.sent.replies.append(completion.usage)
            self.window.succeeded(place)
            return completion


def _now_s() -> float:
    return asyncio.get_running_loop().time()
