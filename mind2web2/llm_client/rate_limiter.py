"""The rate limiter for all requests to one model.

- A refused request (429) waits as long as ``Retry-After`` says. By itself it slows no other request
  down.
- When the share of refusals rises above its usual level, a limit is reached. If the server refused
  only above some number in flight, that number is the limit; otherwise the rate decreases below
  what was accepted. The limit is held, then doubles repeatedly until it is reached again.
- When most requests fail, all requests wait for ``Retry-After``. Then single requests probe the
  server, and after the first reply the number in flight doubles with each round of replies (slow
  start).
- Rate limit headers are budgets: no request is sent beyond the remaining requests or tokens until
  they reset.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from mind2web2.llm_client.allowances import Allowance, Allowances
from mind2web2.llm_client.chat import Slowdown
from mind2web2.llm_client.failures import RequestFailedError
from mind2web2.llm_client.transport import Completion

log = logging.getLogger(__name__)

FIRST_WINDOW = 32
# The share of refusals is that of the latest requests: at least so many, and those of so many
# seconds.
_LATEST_REQUESTS = 20
_LATEST_S = 2.0
# How far it must exceed the usual share while no limit is known, and later.
_FIRST_EXCESS = 0.15
_EXCESS = 0.05
_LEAST_REFUSALS = 2
# From this share on, most requests are refused.
_CLOSED_SHARE = 0.5
# The usual share is a mean over so many requests, and at most this.
_USUAL_REQUESTS = 200
_MAX_USUAL_REFUSAL_SHARE = 0.1
_LEAST_UNREACHABLE = 3
# More than the votes on one claim that are asked at once: one text may break a server over and
# over.
_LEAST_BROKEN = 4
_DECREASE = 0.9
_CLOSED_DECREASE = 0.7
# A limit is held for so many requests, within these bounds, and then doubles three times in the
# same time.
_HOLD_REQUESTS = 240
_LEAST_HOLD_S = 20.0
_MAX_HOLD_S = 60.0
_DOUBLINGS = 3
_MAX_DOUBLINGS = 20
_PROBE_INTERVALS_S = (1.0, 2.0, 4.0, 5.0)
# Daily limits reset in hours: a request is sent earlier, and the refusal names the time.
_LONGEST_BUDGET_WAIT_S = 120.0
# A late event loop may send the requests of so many seconds at once.
_CATCH_UP_S = 0.02


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
        # The learned limits, and since when they hold.
        self._rate = math.inf
        self._window = math.inf
        self._held_since_s = -math.inf
        self._next_at_s = -math.inf
        self._slow_start = FIRST_WINDOW
        self.latency_s = 0.0
        # The requests since the last change of a limit; requests up to that number say nothing
        # about it.
        self._latest: deque[Sent] = deque()
        self._changed_number = 0
        self._usual_share = 0.0
        # While all requests wait: the time of the next probe, whether the server refused this
        # machine itself, and the number of probes.
        self._probe_at_s: float | None = None
        self._is_refused = False
        self._probes = 0
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
            await self._wait_until_open(arrived_s)
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
        self._usual_share -= self._usual_share / _USUAL_REQUESTS
        self.latency_s = _smooth(self.latency_s, now_s - sent.at_s)
        tokens = completion.usage.input_tokens + completion.usage.output_tokens
        self._tokens_each = _smooth(self._tokens_each, tokens or self._tokens_each)
        self._note_budgets(sent, completion.allowances, now_s)
        if self._probe_at_s is not None and sent.number > self._changed_number:
            self._reopen(now_s)

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
            sent.is_refused = True
            self.slowdown.refusals += 1
        else:
            self._unreachable += 1
        if sent.number <= self._changed_number:
            return
        is_unreachable = self._unreachable >= _LEAST_UNREACHABLE
        if (
            self._probe_at_s is not None
            or is_unreachable
            or (failure.is_too_fast and self._learn_from_refusals(now_s))
        ):
            self._close(failure, now_s)

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

    @property
    def refused_for_s(self) -> float:
        """Return for how many seconds the server, having refused this machine, wants no request."""
        if self._probe_at_s is None or not self._is_refused:
            return 0.0
        return max(0.0, self._probe_at_s - _now_s())

    def pause(self, seconds: float) -> None:
        """Send nothing for so long, then a probe: the server refused another machine."""
        if self._probe_at_s is None:
            self._changed_number = self._number
            self._slow_start = 1
        self._probe_at_s = max(self._probe_at_s or 0.0, _now_s() + seconds)

    def has_given_up(self, wait_s: float = 0.0) -> bool:
        """Tell whether the server will have failed for too long after this wait."""
        if self._failing_since_s is None:
            return False
        is_down = self.failure.is_unreachable or not self.failure.is_too_fast
        patience_s = self._outage_wait_s if is_down else self._patience_s
        failing_s = _now_s() + wait_s - self._failing_since_s
        return failing_s >= patience_s

    def _learn_from_refusals(self, now_s: float) -> bool:
        """Decrease a limit that was reached.

        Return whether most of the latest requests were refused.
        """
        if self._usual_share < _MAX_USUAL_REFUSAL_SHARE:
            self._usual_share += 1 / _USUAL_REQUESTS
        # How many others were in flight when a request was refused or accepted.
        refused: list[int] = []
        accepted: list[int] = []
        for sent in self._latest:
            (refused if sent.is_refused else accepted).append(sent.others)
        refused.sort()
        is_limited = min(self._rate, self._window) < math.inf
        excess = _EXCESS if is_limited else _FIRST_EXCESS
        allowed_share = self._usual_share + excess
        if len(refused) < _LEAST_REFUSALS + allowed_share * len(self._latest):
            return False
        growth = self._growth(now_s)
        rate = self._rate * growth
        window = self._window * growth
        lowest = refused[len(refused) // 10]
        median = refused[len(refused) // 2]
        lower = sum(others < median for others in accepted)
        refused_share = len(refused) / len(self._latest)
        if 1 < lowest < window and lower >= 0.9 * len(accepted) > 0:
            self._limit(rate, lowest, now_s)
        elif refused_share >= _CLOSED_SHARE or rate == math.inf:
            return True
        else:
            decreased = rate * (1 - refused_share) * _DECREASE
            self._limit(decreased, window, now_s)
        return False

    def _limit(self, rate: float, window: float, now_s: float) -> None:
        self._rate = rate
        self._window = window
        self._held_since_s = now_s
        self._next_at_s = now_s + 1 / rate
        log.info("rate limit reached rate=%.2f/s in_flight=%.0f", rate, window)
        self._start_over()

    def _start_over(self) -> None:
        """Forget the latest requests; refusals that were due to a limit are not usual ones."""
        refused = sum(sent.is_refused for sent in self._latest)
        self._usual_share = max(0.0, self._usual_share - refused / _USUAL_REQUESTS)
        self._latest.clear()
        self._changed_number = self._number

    def _close(self, failure: RequestFailedError, now_s: float) -> None:
        """Let all requests wait for the next probe."""
        wait_s = failure.retry_after_s
        if wait_s is None or wait_s >= self._patience_s:
            wait_s = self._probe_interval_s()
        if self._probe_at_s is None:
            self._changed_number = self._number
            self._slow_start = 1
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
        self._is_refused = True
        self._probe_at_s = max(self._probe_at_s or 0.0, now_s + wait_s)

    def _reopen(self, now_s: float) -> None:
        """Send requests again, slower if they were refused."""
        self._probe_at_s = None
        self._probes = 0
        self._is_refused = False
        log.info("%s accepts requests again", self._name)
        accepted = sum(not sent.is_refused for sent in self._latest)
        growth = self._growth(now_s)
        rate = self._rate * growth * _CLOSED_DECREASE
        since_s = now_s
        if rate == math.inf and accepted:
            # A guess from what was accepted before, which may grow at once.
            seconds = self._latest[-1].at_s - self._latest[0].at_s
            rate = accepted / max(seconds, 1.0)
            since_s -= _hold_s(rate)
        if self.failure.is_too_fast and rate < math.inf:
            self._limit(rate, self._window * growth, since_s)
        self._start_over()

    def _probe_interval_s(self) -> float:
        last = len(_PROBE_INTERVALS_S) - 1
        return _PROBE_INTERVALS_S[min(self._probes, last)]

    def _growth(self, now_s: float) -> float:
        """Return the factor by which the limits have grown since they were learned."""
        if self._held_since_s == -math.inf:
            return 1.0
        periods = (now_s - self._held_since_s) / _hold_s(self._rate)
        doublings = max(0.0, periods - 1) * _DOUBLINGS
        return math.exp2(min(doublings, _MAX_DOUBLINGS))

    def _note_budgets(self, sent: Sent, allowances: Allowances, now_s: float) -> None:
        self._requests.note(allowances.requests, sent.number, now_s)
        self._tokens.note(allowances.tokens, sent.number, now_s)

    async def _wait_until_open(self, arrived_s: float) -> None:
        """Wait until the next request may be sent.

        After the server has failed for too long, a request fails at once if it has seen another one
        fail.
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
            if is_timed or self._held_since_s > -math.inf:
                self.slowdown.waited_s += _now_s() - since_s

    def opens_at_s(self, now_s: float) -> float:
        """Return when the next request may be sent; infinity if another must end first."""
        if self._probe_at_s is not None:
            return self._probe_at_s
        window = min(self._slow_start, self._window * self._growth(now_s))
        if self._in_flight >= max(1.0, window):
            return math.inf
        number = self._number + 1
        requests_at_s = self._requests.opens_at_s(number, 1, now_s, self.share)
        tokens_at_s = self._tokens.opens_at_s(number, self._tokens_each, now_s, self.share)
        return max(self._next_at_s, requests_at_s, tokens_at_s)

    def _next(self, now_s: float) -> Sent:
        self._number += 1
        sent = Sent(self._number, now_s, self._in_flight)
        self._in_flight += 1
        # As in TCP pacing, a window is not sent in one burst.
        by_rate_s = 1 / self._rate
        by_window_s = self.latency_s / self._window / 2
        interval_s = max(by_rate_s, by_window_s) / self._growth(now_s)
        earliest_s = max(self._next_at_s, now_s - _CATCH_UP_S)
        self._next_at_s = earliest_s + interval_s
        if self._probe_at_s is not None:
            # A probe without a reply does not hold back the next one.
            self._probe_at_s = now_s + self._probe_interval_s()
            return sent
        self._latest.append(sent)
        while len(self._latest) > _LATEST_REQUESTS:
            is_recent = self._latest[0].at_s >= now_s - _LATEST_S
            if is_recent:
                break
            self._latest.popleft()
        return sent


def _now_s() -> float:
    return asyncio.get_running_loop().time()


def _hold_s(rate: float) -> float:
    seconds = _HOLD_REQUESTS / rate
    return max(_LEAST_HOLD_S, min(seconds, _MAX_HOLD_S))


def _smooth(mean: float, value: float) -> float:
    if not mean:
        return value
    return mean + 0.1 * (value - mean)
