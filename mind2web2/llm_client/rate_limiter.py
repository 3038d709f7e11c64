"""Rate limiter for all requests to one model.

- A refusal (429) by itself concerns only the refused request, which waits as long as ``Retry-After`` says.
- When the share of refusals rises well above its usual level, the limit is reached. If requests were refused
  only above some number in flight, that number becomes the limit; otherwise the rate of accepted requests
  does. The limit is kept for a while, then grows faster and faster until it is reached again (as in CUBIC).
- When most requests fail, the server is closed: no request is sent until ``Retry-After`` has passed. Then
  single requests probe the server until one succeeds, or until the patience is exhausted.
- Rate limit headers are budgets: no request is sent beyond the remaining requests or tokens until they reset.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from mind2web2.llm_client.chat import Completion
from mind2web2.llm_client.failures import Allowance, Allowances, RequestFailedError

log = logging.getLogger(__name__)

# Until a limit is known, so many requests are in flight at first, and one more with each reply.
FIRST_WINDOW = 64
# The evidence: the latest requests, at least so many and at least those of so many seconds.
_EVIDENCE_REQUESTS, _EVIDENCE_S = 20, 1.0
_LEAST_REFUSALS, _BURST_REQUESTS = 3, 10
# The limit is reached when the share of refusals exceeds the usual share by this: for the first time, later.
_FIRST_LIMIT_SHARE, _LIMIT_SHARE, _MOST_USUAL_SHARE = 0.12, 0.05, 0.1
_CLOSED_SHARE = 0.5
# A server that closes twice within this time accepts what it accepted between, over this time.
_RECENTLY_CLOSED_S = 90.0
_USUAL_REQUESTS = 200
# A learned rate leaves some room.
_DECREASE = 0.96
# A burst is counted as if it took so long.
_SHORTEST_S = 0.3
# After two periods without a new limit, it grows by exp(t²) with t in periods.
_PERIOD_S, _PERIOD_REQUESTS, _MOST_GROWTH = 10.0, 100, 4.0
_PROBE_INTERVALS_S = (1.0, 2.0, 4.0, 5.0)
# Daily limits reset in hours: a request is sent earlier, and the refusal names the time.
_LONGEST_BUDGET_WAIT_S = 120.0
# Requests that the event loop is late with are caught up on for so long.
_CATCH_UP_S = 0.02


@dataclass(slots=True)
class Slowdown:
    """How much rate limits have slowed a run down.

    Args:
        refusals: replies with status 429.
        waited_s: time in which the limiter held requests back.
    """

    refusals: int = 0
    waited_s: float = 0.0

    def in_words(self) -> str:
        """Return the numbers in words, empty if there was no slowdown."""
        refused = f"{self.refusals} refused (429)" if self.refusals else ""
        held = f"requests held back for {self.waited_s:.0f} s" if self.waited_s >= 1 else ""
        return f"rate limit: {', '.join(filter(None, (refused, held)))}" if refused or held else ""


@dataclass(slots=True, eq=False)
class Sent:
    """A request that the limiter let pass: its number and how many others were in flight."""

    number: int
    at_s: float
    others: int
    is_refused: bool = False


class _Budget:
    """The remaining requests or tokens of one limit, by the newest reply."""

    def __init__(self) -> None:
        self._number = 0
        self._latest = Allowance(math.inf, None, math.inf)
        self._resets_at_s = math.inf

    def note(self, allowance: Allowance | None, number: int, now_s: float) -> None:
        if allowance is not None and number >= self._number:
            self._number, self._latest = number, allowance
            self._resets_at_s = now_s + min(allowance.reset_s, _LONGEST_BUDGET_WAIT_S)

    def opens_at_s(self, next_number: int, cost: float, now_s: float) -> float:
        if (next_number - self._number) * cost <= self._latest.remaining:
            return now_s
        if now_s >= self._resets_at_s:
            # At least one request: the server says if it is larger than the whole budget.
            left = max(self._latest.limit or 0.0, cost)
            self.note(Allowance(left, left, max(self._latest.reset_s, 1.0)), next_number - 1, now_s)
            return now_s
        return self._resets_at_s


class RateLimiter:
    """Lets requests to one model pass in order of arrival.

    Args:
        slowdown: updated by this limiter.
        patience_s: how long a server may refuse all requests before they fail.
        outage_wait_s: how long a server may be unreachable before requests fail.
    """

    def __init__(
        self, slowdown: Slowdown | None = None, patience_s: float = 900.0, outage_wait_s: float = 120.0
    ) -> None:
        self.slowdown = slowdown or Slowdown()
        self._patience_s, self._outage_wait_s = patience_s, outage_wait_s
        self._waiting: deque[asyncio.Future[Sent]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._held_since_s: float | None = None
        self._number = self._in_flight = 0
        self._requests, self._tokens, self._tokens_each = _Budget(), _Budget(), 0.0
        # The learned limits, since when, and from which requests.
        self._rate, self._window = math.inf, float(FIRST_WINDOW)
        self._limited_at_s = -math.inf
        self._evidence: list[Sent] = []
        self._before = math.inf, math.inf
        self._recent: deque[Sent] = deque()
        self._usual_share = 0.0
        self._next_at_s = -math.inf
        # While closed: the time of the next probe, the number of probes, and the last request before.
        self._probe_at_s: float | None = None
        self._probes = self._last_before = 0
        self._closed_at_s, self._refused_since = -math.inf, 0
        self._failing_since_s: float | None = None
        self._failure = RequestFailedError("")
        self._unreachable_in_a_row = 0
        self.succeeded_at_s = -math.inf

    @asynccontextmanager
    async def passing(self) -> AsyncIterator[Sent]:
        """Wait until a request may be sent; it is in flight during the ``with`` block.

        Raises:
            RequestFailedError: the last failure, if the server has failed for too long.
        """
        sent = await self._passed()
        try:
            yield sent
        finally:
            self._in_flight -= 1
            self._wake()

    def succeeded(self, sent: Sent, completion: Completion) -> None:
        """Learn from a reply."""
        now_s = self.succeeded_at_s = asyncio.get_running_loop().time()
        self._failing_since_s, self._unreachable_in_a_row = None, 0
        self._usual_share -= self._usual_share / _USUAL_REQUESTS
        self._window += self._limited_at_s == -math.inf
        tokens = completion.usage.input_tokens + completion.usage.output_tokens
        self._tokens_each += (tokens - self._tokens_each) * (0.1 if self._tokens_each else 1) * bool(tokens)
        self._note_budgets(sent, completion.allowances, now_s)
        if self._probe_at_s is not None and sent.number > self._last_before:
            self._probe_at_s, self._probes = None, 0
            log.info("the judge accepts requests again")

    def failed(self, sent: Sent, failure: RequestFailedError) -> None:
        """Learn from a failure; only refusals and an unreachable server matter."""
        if not (failure.is_too_fast or failure.is_unreachable):
            return
        now_s = asyncio.get_running_loop().time()
        if self._failing_since_s is None:
            self._failing_since_s = now_s
        self._failure = failure
        self._note_budgets(sent, failure.allowances, now_s)
        if failure.is_too_fast:
            self.slowdown.refusals += 1
            sent.is_refused = True
            self._refused_since += sent.number > self._last_before
        if self._probe_at_s is not None:
            if sent.number > self._last_before:
                self._close(failure, now_s)
        elif failure.is_unreachable:
            self._unreachable_in_a_row += 1
            if self._unreachable_in_a_row >= _LEAST_REFUSALS:
                self._close(failure, now_s)
        else:
            self._refused(sent, failure, now_s)

    def has_given_up(self, wait_s: float = 0.0) -> bool:
        """Tell whether the server will have failed for too long after this wait."""
        if self._failing_since_s is None:
            return False
        patience_s = self._outage_wait_s if self._failure.is_unreachable else self._patience_s
        return asyncio.get_running_loop().time() + wait_s - self._failing_since_s >= patience_s

    def _refused(self, sent: Sent, failure: RequestFailedError, now_s: float) -> None:
        self._usual_share += (self._usual_share < _MOST_USUAL_SHARE) / _USUAL_REQUESTS
        if self._evidence and sent.number <= self._evidence[-1].number:
            evidence = self._evidence  # late news about requests that the limit was learned from
        else:
            evidence = list(self._recent)
        refused = [request for request in evidence if request.is_refused]
        if sent.number <= self._last_before or len(refused) < _LEAST_REFUSALS:
            return
        is_late = evidence is self._evidence
        is_closed = len(refused) >= _LEAST_REFUSALS + _CLOSED_SHARE * len(evidence)
        is_first = self._limited_at_s == -math.inf
        # The first limit is a guess from a burst; later ones are measured.
        is_burst = is_first and len(evidence) >= _BURST_REQUESTS
        is_measured = is_late or is_burst or now_s - refused[0].at_s >= _SHORTEST_S
        share = self._usual_share + (_FIRST_LIMIT_SHARE if is_first else _LIMIT_SHARE)
        is_reached = is_measured and len(refused) >= _LEAST_REFUSALS + share * len(evidence)
        is_window = False
        if is_late or is_closed or is_reached:
            is_window = self._limit(evidence, refused, now_s, is_late=is_late, is_measured=is_measured)
        if is_closed and not is_window:
            self._close(failure, now_s)

    def _limit(
        self, evidence: list[Sent], refused: list[Sent], now_s: float, *, is_late: bool, is_measured: bool
    ) -> bool:
        """Set the limit to what was accepted, and tell whether it is one of requests in flight."""
        accepted = [request for request in evidence if not request.is_refused]
        growth = self._growth(now_s)
        rate, window = self._before if is_late else (self._rate * growth, self._window * growth)
        others = sorted(request.others for request in refused)
        fewer = sum(request.others < others[len(others) // 2] for request in accepted)
        is_window = 1 < others[len(others) // 10] < window and fewer >= 0.9 * len(accepted) > 0
        if not accepted or not (is_window or is_measured):
            return False
        self._before = rate, window
        if is_window:
            window = others[len(others) // 10]
        else:
            since_s = refused[0].at_s
            if evidence[-1].at_s - since_s >= _SHORTEST_S:
                # Earlier requests may have used up a burst that the server allows.
                accepted = [request for request in accepted if request.at_s > since_s]
                seconds = evidence[-1].at_s - since_s
            else:
                seconds = max(evidence[-1].at_s - evidence[0].at_s, 1.0)
            rate = min(rate, _DECREASE * max(len(accepted), 1) / seconds)
        self._rate, self._window = rate, window
        if not is_late:
            self._limited_at_s = now_s
            self._usual_share = max(0.0, self._usual_share - len(refused) / _USUAL_REQUESTS)
            self._evidence = evidence
            self._recent.clear()
            log.info("rate limit reached rate=%.2f/s in_flight=%.0f refused=%d", rate, window, len(refused))
        return is_window

    def _close(self, failure: RequestFailedError, now_s: float) -> None:
        interval_s = _PROBE_INTERVALS_S[min(self._probes, len(_PROBE_INTERVALS_S) - 1)]
        wait_s = failure.retry_after_s
        if wait_s is None or wait_s >= self._patience_s:
            wait_s = interval_s
        if self._probe_at_s is None:
            if failure.is_too_fast and now_s - self._closed_at_s < _RECENTLY_CLOSED_S:
                accepted = self._number - self._last_before - self._refused_since
                rate = max(accepted, 1) / (now_s - self._closed_at_s)
                self._rate = rate if self._rate == math.inf else max(min(rate, self._rate), self._rate / 2)
                self._limited_at_s = now_s
            self._last_before, self._closed_at_s, self._refused_since = self._number, now_s, 0
            self._recent.clear()
            if failure.is_too_fast:
                log.warning("Rate limit (%s): all requests wait %.0f s", failure.kind, wait_s)
            else:
                log.warning("Judge unavailable, all requests wait: %s", failure)
        self._probes += 1
        self._probe_at_s = max(self._probe_at_s or 0.0, now_s + wait_s)

    def _growth(self, now_s: float) -> float:
        if self._limited_at_s == -math.inf:
            return 1.0
        period_s = max(_PERIOD_S, _PERIOD_REQUESTS / self._rate)
        return math.exp(min(max(0.0, (now_s - self._limited_at_s) / period_s - 2), _MOST_GROWTH) ** 2)

    def _note_budgets(self, sent: Sent, allowances: Allowances, now_s: float) -> None:
        self._requests.note(allowances.requests, sent.number, now_s)
        self._tokens.note(allowances.tokens, sent.number, now_s)

    def _opens_at_s(self, now_s: float) -> float:
        """Return when the next request may be sent; infinity if another has to end first."""
        if self._probe_at_s is not None:
            return self._probe_at_s
        if self._in_flight >= max(1.0, self._window * self._growth(now_s)):
            return math.inf
        return max(
            self._next_at_s,
            self._requests.opens_at_s(self._number + 1, 1, now_s),
            self._tokens.opens_at_s(self._number + 1, self._tokens_each, now_s),
        )

    async def _passed(self) -> Sent:
        loop = asyncio.get_running_loop()
        if not self._waiting and self._opens_at_s(loop.time()) <= loop.time():
            return self._next(loop.time())
        waiting: asyncio.Future[Sent] = loop.create_future()
        self._waiting.append(waiting)
        self._wake()
        try:
            return await waiting
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled() and waiting.exception() is None:
                self._in_flight -= 1
            self._wake()
            raise

    def _next(self, now_s: float) -> Sent:
        self._number += 1
        sent = Sent(self._number, now_s, self._in_flight)
        self._in_flight += 1
        rate = self._rate * self._growth(now_s)
        self._next_at_s = max(self._next_at_s, now_s - _CATCH_UP_S) + 1 / rate
        if self._probe_at_s is None:
            self._recent.append(sent)
            while len(self._recent) > _EVIDENCE_REQUESTS and self._recent[0].at_s < now_s - _EVIDENCE_S:
                self._recent.popleft()
        else:
            self._probe_at_s = now_s + _PROBE_INTERVALS_S[min(self._probes, len(_PROBE_INTERVALS_S) - 1)]
        return sent

    def _wake(self) -> None:
        """Let requests pass whose time has come, and set a timer for the next one."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        loop = asyncio.get_running_loop()
        now_s, opens_at_s = loop.time(), -math.inf
        while self._waiting and (
            self._waiting[0].done() or (opens_at_s := self._opens_at_s(now_s)) <= now_s or self.has_given_up()
        ):
            waiting = self._waiting.popleft()
            if waiting.done():
                continue
            if opens_at_s <= now_s:
                waiting.set_result(self._next(now_s))
            else:
                waiting.set_exception(self._failure)
        if self._held_since_s is not None:
            self.slowdown.waited_s += now_s - self._held_since_s
        is_limited = opens_at_s < math.inf or self._limited_at_s > -math.inf
        self._held_since_s = now_s if self._waiting and is_limited else None
        if self._waiting and opens_at_s < math.inf:
            self._timer = loop.call_at(opens_at_s, self._wake)
