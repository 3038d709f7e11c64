"""The rate limiter for all requests to one model.

- A refused request (429) waits as long as ``Retry-After`` says. By itself it slows no other request down.
- One window limits how many requests are in flight. It opens with each reply until a larger share of the
  latest requests is refused. Then it falls to the number that was in flight at the refusals, at most by
  half, and grows again slowly.
- When most requests fail, all requests wait for ``Retry-After``. Then single requests probe the server, and
  after the first reply the number in flight doubles with each round of replies (slow start).
- Rate limit headers are budgets: no request is sent beyond the remaining requests or tokens until they reset.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from mind2web2.llm_client.chat import Slowdown
from mind2web2.llm_client.failures import Allowance, Allowances, RequestFailedError
from mind2web2.llm_client.transport import Completion

log = logging.getLogger(__name__)

FIRST_WINDOW = 32
# A window is judged by at least so many requests, and by two rounds of it.
_LEAST_SAMPLE = 40
# It falls beyond the first share of refusals while no limit is known, later beyond the second, and grows
# below the third.
_FIRST_CUT_SHARE = 0.15
_CUT_SHARE = 0.12
_GROWTH_SHARE = 0.05
# Its growth by one sample, which doubles with each until it falls.
_FIRST_GROWTH = 0.01
_MOST_GROWTH = 0.5
# So many refusals are never a reason.
_FREE_REFUSALS = 2
# From this share on, most requests are refused.
_CLOSED_SHARE = 0.5
_LEAST_UNREACHABLE = 3
# More than the votes on one claim that are asked at once: one text may break a server over and
# over.
_LEAST_BROKEN = 4
_PROBE_INTERVALS_S = (1.0, 2.0, 4.0, 5.0)
# The first probe comes after this part of the time that the server refused everything before.
_EARLIER_WAIT_SHARE = 0.7
# A known window is sent over this part of the time of a reply, not in one burst.
_PACED_SHARE = 0.8
# A late event loop may send the requests of so many seconds at once.
_CATCH_UP_S = 0.02
# Daily limits reset in hours: a request is sent earlier, and the refusal names the time.
_LONGEST_BUDGET_WAIT_S = 120.0


@dataclass(frozen=True, slots=True, eq=False)
class Sent:
    """A request that the limiter let pass: its number and how many others were in flight."""

    number: int
    at_s: float
    others: int


class _Budget:
    """The remaining requests or tokens of one limit, by the newest reply."""

    def __init__(self) -> None:
        self._number = 0
        self._latest = Allowance(math.inf, None, math.inf)
        self._resets_at_s = math.inf

    def note(self, allowance: Allowance | None, number: int, now_s: float) -> None:
        if allowance is not None and number >= self._number:
            self._number = number
            self._latest = allowance
            self._resets_at_s = now_s + min(allowance.reset_s, _LONGEST_BUDGET_WAIT_S)

    def opens_at_s(self, next_number: int, cost: float, now_s: float, share: float) -> float:
        needed = (next_number - self._number) * cost
        if needed <= self._latest.remaining * share:
            return now_s
        if now_s >= self._resets_at_s:
            # At least one request: the server says if it is larger than the whole budget.
            left = max(self._latest.limit or 0.0, cost)
            reset_s = max(self._latest.reset_s, 1.0)
            self.note(Allowance(left, left, reset_s), next_number - 1, now_s)
            return now_s
        return self._resets_at_s


@dataclass(slots=True)
class _Sample:
    """The latest requests.

    Args:
        lowest: the smallest number of others in flight at a refusal.
    """

    sent: int = 0
    refused: int = 0
    replies: int = 0
    lowest: float = math.inf

    @property
    def share(self) -> float:
        """Return the share of refusals."""
        return self.refused / max(self.sent, 1)

    def exceeds(self, share: float) -> bool:
        """Tell whether more than this share was refused, beside single refusals."""
        return self.refused >= _FREE_REFUSALS + share * self.sent

    def later_half(self) -> _Sample:
        """Return a sample in which these requests count half."""
        return _Sample(self.sent // 2, self.refused // 2)


class RateLimiter:
    """Lets requests to one model pass in order of arrival.

    Args:
        slowdown: updated by this limiter.
        patience_s: how long a server may refuse all requests before they fail.
        outage_wait_s: how long a server may be unreachable before requests fail.
        name: of the server, for the log.
        effect: of a server that fails, for the log.

    Attributes:
        latency_s: smoothed mean time of a reply, 0 before the first one.
        failure: the latest refusal or outage.
        share: of the server's limits, less than 1 where other machines send requests too.
    """

    def __init__(
        self,
        slowdown: Slowdown | None = None,
        patience_s: float = 900.0,
        outage_wait_s: float = 120.0,
        name: str = "Judge",
        effect: str = "all requests wait",
    ) -> None:
        self.slowdown = slowdown or Slowdown()
        self.succeeded_at_s = -math.inf
        self.share = 1.0
        self._name = name
        self._effect = effect
        self._patience_s = patience_s
        self._outage_wait_s = outage_wait_s
        self._turn = asyncio.Lock()
        self._changed = asyncio.Event()
        self._number = 0
        self._in_flight = 0
        self._requests = _Budget()
        self._tokens = _Budget()
        self._tokens_each = 0.0
        self.latency_s = 0.0
        # The window that was learned, and the one that opens with each reply.
        self._window = math.inf
        self._growth = _FIRST_GROWTH
        self._slow_start = FIRST_WINDOW
        self._next_at_s = -math.inf
        # Requests up to this number say nothing about the present window.
        self._changed_number = 0
        self._sample = _Sample()
        # While all requests wait: the time of the next probe, the number of probes, since when.
        self._probe_at_s: float | None = None
        self._probes = 0
        self._closed_at_s = -math.inf
        self._refused_for_s = 0.0
        self._unreachable = 0
        self._failing_since_s: float | None = None
        self._failed_at_s = -math.inf
        # The questions that the server broke down over since its latest reply.
        self._broken: set[object] = set()
        self.failure = RequestFailedError("")

    @asynccontextmanager
    async def passing(self) -> AsyncIterator[Sent]:
        """Wait until a request may be sent; it is in flight during the ``with`` block.

        Raises:
            RequestFailedError: the last failure, if the server has failed for too long.
        """
        arrived_s = _now_s()
        async with self._turn:
            await self._opened(arrived_s)
            sent = self._next(_now_s())
        try:
            yield sent
        finally:
            self._in_flight -= 1
            self._changed.set()

    def succeeded(self, sent: Sent, completion: Completion) -> None:
        """Learn from a reply."""
        now_s = _now_s()
        self.succeeded_at_s = now_s
        self._failing_since_s = None
        self._unreachable = 0
        self._broken.clear()
        self._slow_start += 1
        self.latency_s = _smoothed(self.latency_s, now_s - sent.at_s)
        tokens = completion.usage.input_tokens + completion.usage.output_tokens
        self._tokens_each = _smoothed(self._tokens_each, tokens or self._tokens_each)
        self._note_budgets(sent, completion.allowances, now_s)
        if sent.number <= self._changed_number:
            return
        if self._probe_at_s is not None:
            self._reopen(now_s)
        self._sample.replies += 1
        self._end_sample()

    def failed(
        self,
        sent: Sent,
        failure: RequestFailedError,
        question: object,
        *,
        is_down: bool = False,
    ) -> None:
        """Learn from a failure; only refusals and a server that is unreachable or broken matter.

        Args:
            question: several requests may be its.
            is_down: count any other failure as an unreachable server, too.
        """
        if failure.is_server_error:
            self._broken.add(question)
            is_down = is_down or self._is_broken
        if not (failure.is_too_fast or failure.is_unreachable or is_down):
            return
        now_s = _now_s()
        self._failed_at_s = now_s
        if self._failing_since_s is None:
            self._failing_since_s = now_s
        self.failure = failure
        self._note_budgets(sent, failure.allowances, now_s)
        if failure.is_too_fast:
            self.slowdown.refusals += 1
        else:
            self._unreachable += 1
        if sent.number <= self._changed_number:
            return
        if self._probe_at_s is not None or self._unreachable >= _LEAST_UNREACHABLE:
            self._close(failure, now_s)
        elif failure.is_too_fast:
            self._learn_from_refusal(sent, failure, now_s)

    @property
    def _is_broken(self) -> bool:
        """Tell whether so many questions failed that the fault is not in one of them."""
        return len(self._broken) >= _LEAST_BROKEN

    def is_outage(self, failure: RequestFailedError, since_s: float) -> bool:
        """Tell whether a failure is the server's own, which has replied to nothing since then."""
        is_down = failure.is_unreachable or (failure.is_server_error and self._is_broken)
        return is_down and self.succeeded_at_s < since_s

    @property
    def is_closed(self) -> bool:
        """Tell whether only single requests probe the server."""
        return self._probe_at_s is not None

    def has_given_up(self, wait_s: float = 0.0) -> bool:
        """Tell whether the server will have failed for too long after this wait."""
        if self._failing_since_s is None:
            return False
        is_down = self.failure.is_unreachable or not self.failure.is_too_fast
        patience_s = self._outage_wait_s if is_down else self._patience_s
        failing_s = _now_s() + wait_s - self._failing_since_s
        return failing_s >= patience_s

    def _learn_from_refusal(self, sent: Sent, failure: RequestFailedError, now_s: float) -> None:
        sample = self._sample
        sample.refused += 1
        sample.lowest = min(sample.lowest, sent.others)
        is_closed = sample.share >= _CLOSED_SHARE
        # Where nothing was accepted yet, the limit may still be anywhere.
        is_limit_known = sample.replies > 0
        share = _FIRST_CUT_SHARE if self._window == math.inf else _CUT_SHARE
        if not sample.exceeds(share) or not (is_limit_known or is_closed):
            return
        if is_limit_known:
            window = min(self._slow_start, self._window)
            self._window = max(1.0, window / 2, min(sample.lowest, window))
            self._growth = _FIRST_GROWTH
            log.info("rate limit reached in_flight=%.0f", self._window)
        if is_closed:
            self._close(failure, now_s)
        self._changed_number = self._number
        self._sample = _Sample()

    def _end_sample(self) -> None:
        """Let the window grow where it was used long enough with few refusals."""
        sample = self._sample
        rounds = 0.0 if self._window == math.inf else 2 * self._window
        if sample.replies < max(_LEAST_SAMPLE, rounds):
            return
        if sample.share <= _GROWTH_SHARE:
            self._window *= 1 + self._growth
            self._growth = min(2 * self._growth, _MOST_GROWTH)
        # The latest requests still count, so that a few refusals at once are a small share.
        self._sample = sample.later_half()

    def _close(self, failure: RequestFailedError, now_s: float) -> None:
        """Let all requests wait for the next probe."""
        wait_s = failure.retry_after_s
        if wait_s is None or wait_s >= self._patience_s:
            wait_s = self._probe_interval_s()
            if self._probe_at_s is None and failure.is_too_fast:
                wait_s = max(wait_s, _EARLIER_WAIT_SHARE * self._refused_for_s)
        if self._probe_at_s is None:
            self._changed_number = self._number
            self._slow_start = 1
            self._closed_at_s = now_s
            if failure.is_too_fast:
                log.warning(
                    "%s: rate limit (%s): %s for %.0f s",
                    self._name,
                    failure.kind,
                    self._effect,
                    wait_s,
                )
            else:
                log.warning("%s unavailable, %s: %s", self._name, self._effect, failure)
        self._probes += 1
        self._probe_at_s = max(self._probe_at_s or 0.0, now_s + wait_s)

    def _reopen(self, now_s: float) -> None:
        """Send requests again, one at first."""
        self._probe_at_s = None
        self._probes = 0
        self._changed_number = self._number
        self._refused_for_s = 0.0
        self._sample = _Sample()
        if self.failure.is_too_fast:
            self._refused_for_s = now_s - self._closed_at_s
            # The next refusal means that the limit is still reached.
            self._sample = _Sample(sent=_FREE_REFUSALS, refused=_FREE_REFUSALS)
        log.info("%s accepts requests again", self._name)

    def _probe_interval_s(self) -> float:
        last = len(_PROBE_INTERVALS_S) - 1
        return _PROBE_INTERVALS_S[min(self._probes, last)]

    def _note_budgets(self, sent: Sent, allowances: Allowances, now_s: float) -> None:
        self._requests.note(allowances.requests, sent.number, now_s)
        self._tokens.note(allowances.tokens, sent.number, now_s)

    async def _opened(self, arrived_s: float) -> None:
        """Wait until the next request may be sent.

        After the server has failed for too long, a request fails at once if it has seen another one fail.
        """
        while True:
            opens_at_s = self.opens_at_s(_now_s())
            since_s = _now_s()
            if opens_at_s <= since_s:
                return
            # A probe in flight may succeed; a failure of the same answer's other requests would
            # cancel it.
            has_seen_failure = not self._in_flight and arrived_s <= self._failed_at_s
            if has_seen_failure and self.has_given_up():
                raise self.failure
            self._changed.clear()
            is_timed = opens_at_s < math.inf
            with suppress(TimeoutError):
                async with asyncio.timeout_at(opens_at_s if is_timed else None):
                    await self._changed.wait()
            if is_timed or self._window < math.inf:
                self.slowdown.waited_s += _now_s() - since_s

    def opens_at_s(self, now_s: float) -> float:
        """Return when the next request may be sent; infinity if another must end first."""
        if self._probe_at_s is not None:
            return self._probe_at_s
        if self._in_flight >= math.floor(min(self._slow_start, max(self._window, 1.0))):
            return math.inf
        number = self._number + 1
        requests_at_s = self._requests.opens_at_s(number, 1, now_s, self.share)
        tokens_at_s = self._tokens.opens_at_s(number, self._tokens_each, now_s, self.share)
        return max(self._next_at_s, requests_at_s, tokens_at_s)

    def _next(self, now_s: float) -> Sent:
        self._number += 1
        sent = Sent(self._number, now_s, self._in_flight)
        self._in_flight += 1
        interval_s = _PACED_SHARE * self.latency_s / self._window
        self._next_at_s = max(self._next_at_s, now_s - _CATCH_UP_S) + interval_s
        self._sample.sent += 1
        if self._probe_at_s is not None:
            # A probe without a reply does not hold back the next one.
            self._probe_at_s = now_s + self._probe_interval_s()
        return sent


def _now_s() -> float:
    return asyncio.get_running_loop().time()


def _smoothed(mean: float, value: float) -> float:
    if not mean:
        return value
    return mean + 0.1 * (value - mean)
