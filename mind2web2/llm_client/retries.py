"""Sends each request until it has a reply.

The module says which failures are tried again, how often and for how long.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import dataclass

from mind2web2.llm_client.chat import Completion, Limit, Retries, SentRequests, Slowdown, Usage
from mind2web2.llm_client.failures import RequestFailedError
from mind2web2.llm_client.window import Window

log = logging.getLogger(__name__)


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

    def window(self, slowdown: Slowdown) -> Window:
        """Return a window for the requests to a model."""
        return Window(slowdown, self.request_timeout_s, self.total_s, self.outage_wait_s)

    def wait_s(self, number: int, failure: RequestFailedError) -> float:
        """Return the seconds to wait after so many failures, at least ``Retry-After``.

        The jitter keeps requests that failed together from being retried together.
        """
        longest_s: float = min(self.first_wait_s * 2.0 ** min(number - 1, 30), self.longest_wait_s)
        wished_s = (failure.retry_after_s or 0.0) * random.uniform(1, 1.1)
        return max(wished_s, random.uniform(longest_s / 2, longest_s))


class Attempts:
    """Sends the requests of one question, retries them, and counts those that were sent.

    Args:
        limit: entered around each HTTP request, not during a wait between two tries.
        window: shared by all requests to a model.
        sent: of the question; counts requests beside those of this call.
    """

    def __init__(
        self,
        policy: RetryPolicy,
        limit: Limit | None,
        window: Window,
        retries: Retries,
        sent: SentRequests,
    ) -> None:
        self.made = 0
        self._sent = sent
        self._policy = policy
        self._limit: Limit = nullcontext() if limit is None else limit
        self._window = window
        self._retries = retries

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
                is_outage = self._window.is_outage(failure, started_s)
                is_soon = is_outage or failure.is_too_fast
                wait_s = self._policy.wait_s(min(failures, 3) if is_soon else failures, failure)
                if failure.is_too_fast:
                    tries += _SHARE_OF_REFUSAL
                elif not is_outage:
                    tries += 1
                has_given_up = is_soon and self._window.has_given_up(failure, wait_s)
                failure.is_outage = is_outage and has_given_up
                is_final = tries >= self._policy.tries or not failure.can_pass
                if is_final or has_given_up or wait_s >= self._policy.total_s:
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
        async with self._limit, self._window.passing() as place:
            if earlier is not None:  # the window may give up before a retry is sent
                self._retries.note(earlier.kind)
            self._sent.first_sent_ns = self._sent.first_sent_ns or time.time_ns()
            self._count(1)
            timeout_s = self._policy.request_timeout_s
            try:
                # The whole exchange: a client's own timeout starts again with every byte.
                async with asyncio.timeout(timeout_s):
                    completion = await request()
            except TimeoutError as error:
                late = RequestFailedError(f"no answer within {timeout_s:g} s", is_timeout=True)
                self._window.failed(place, late, self)
                raise late from error
            except RequestFailedError as failure:
                self._count(-(not failure.is_sent))
                # A reply that was lost may be billed; an error of the server is not.
                self._sent.reported += failure.status is not None
                self._window.failed(place, failure, self)
                raise
            self._sent.reported += completion.usage != Usage()
            self._sent.replies.append(completion.usage)
            self._window.succeeded(place)
            return completion

    def _count(self, requests: int) -> None:
        self.made += requests
        self._sent.requests += requests
