"""The rate limiter for all requests to one model.

- A refused request (429) waits as long as ``Retry-After`` says. By itself it slows no other request down.
- When the share of refusals rises above its usual level, a limit is reached. If the server refused only above
  some number in flight, that number is the limit; otherwise the rate decreases below what was accepted.
  The limit is held, then doubles repeatedly until it is reached again.
- When most requests fail, all requests wait for ``Retry-After``. Then single requests probe the server, and
  after the first reply the number in flight doubles with each round of replies (slow start).
- Rate limit headers are budgets: no request is sent beyond the remaining requests or tokens until they reset.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from mind2web2.llm_client.chat import Slowdown
from mind2web2.llm_client.failures import Allowance, Allowances, RequestFailedError
from mind2web2.llm_client.transport import Completion

log = logging.getLogger(__name__)

FIRST_WINDOW = 32
# The share of refusals is that of the latest requests: at least so many, and those of so many seconds.
_LATEST_REQUESTS, _LATEST_S = 20, 2.0
# How far it must exceed the usual share while no limit is known, and later; from there on most are refused.
_FIRST_EXCESS, _EXCESS, _LEAST_REFUSALS, _CLOSED_SHARE = 0.15, 0.05, 2, 0.5
_USUAL_REQUESTS, _MOST_USUAL_SHARE = 200, 0.1
_LEAST_UNREACHABLE = 3
# More than the votes on one claim that are asked at once: one text may break a server over and over.
_LEAST_BROKEN = 4
_DECREASE, _CLOSED_DECREASE = 0.9, 0.7
# A limit is held for so many requests, within these bounds, and then doubles three times in the same time.
_HOLD_REQUESTS, _LEAST_HOLD_S, _MOST_HOLD_S, _DOUBLINGS = 240, 20.0, 60.0, 3
_MOST_DOUBLINGS = 20
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
            self._number, self._latest = number, allowance
            self._resets_at_s = now_s + min(allowance.reset_s, _LONGEST_BUDGET_WAIT_S)

    def opens_at_s(
        self, next_number: int, cost: float, now_s: float, share: float
    ) -> float:
        if (next_number - self._number) * cost <= self._latest.remaining * share:
            return now_s
        if now_s >= self._resets_at_s:
            # At least one request: the server says if it is larger than the whole budget.
            left = max(self._latest.limit or 0.0, cost)
            self.note(
                Allowance(left, left, max(self._latest.reset_s, 1.0)),
                next_number - 1,
                now_s,
            )
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
        self._name, self._effect = name, effect
        self._patience_s, self._outage_wait_s = patience_s, outage_wait_s
        self._turn, self._changed = asyncio.Lock(), asyncio.Event()
        self._number = self._in_flight = 0
        self._requests, self._tokens, self._tokens_each = _Budget(), _Budget(), 0.0
        # The learned limits, and since when they hold.
        self._rate = self._window = math.inf
        self._held_since_s = self._next_at_s = -math.inf
        self._slow_start, self.latency_s = FIRST_WINDOW, 0.0
        # The requests since the last change of a limit; requests up to that number say nothing about it.
        self._latest: deque[Sent] = deque()
        self._changed_number, self._usual_share = 0, 0.0
        # While all requests wait: the time of the next probe, whether the server refused this machine itself,
        # and the number of probes.
        self._probe_at_s: float | None = None
        self._is_refused = False
        self._probes = self._unreachable = 0
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
        arrived_s = asyncio.get_running_loop().time()
        async with self._turn:
            await self._opened(arrived_s)
            sent = self._next(asyncio.get_running_loop().time())
        try:
            yield sent
        finally:
            self._in_flight -= 1
            self._changed.set()

    def succeeded(self, sent: Sent, completion: Completion) -> None:
        """Learn from a reply."""
        now_s = self.succeeded_at_s = asyncio.get_running_loop().time()
        self._failing_since_s, self._unreachable = None, 0
        self._broken.clear()
        self._slow_start += 1
        self._usual_share -= self._usual_share / _USUAL_REQUESTS
        self.latency_s = _smoothed(self.latency_s, now_s - sent.at_s)
        tokens = completion.usage.input_tokens + completion.usage.output_tokens
        self._tokens_each = _smoothed(self._tokens_each, tokens or self._tokens_each)
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
        now_s = self._failed_at_s = asyncio.get_running_loop().time()
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
        is_closed = (
            self._probe_at_s is not None or self._unreachable >= _LEAST_UNREACHABLE
        )
        if is_closed or (failure.is_too_fast and self._learn_from_refusals(now_s)):
            self._close(failure, now_s)

    @property
    def _is_broken(self) -> bool:
        """Tell whether so many questions failed that the fault is not in one of them."""
        return len(self._broken) >= _LEAST_BROKEN

    def is_outage(self, failure: RequestFailedError, since_s: float) -> bool:
        """Tell whether a failure is the server's own, which has replied to nothing since then."""
        is_down = failure.is_unreachable or (
            failure.is_server_error and self._is_broken
        )
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
        return max(0.0, self._probe_at_s - asyncio.get_running_loop().time())

    def pause(self, seconds: float) -> None:
        """Send nothing for so long, then a probe: the server refused another machine."""
        if self._probe_at_s is None:
            self._changed_number, self._slow_start = self._number, 1
        self._probe_at_s = max(
            self._probe_at_s or 0.0, asyncio.get_running_loop().time() + seconds
        )

    def has_given_up(self, wait_s: float = 0.0) -> bool:
        """Tell whether the server will have failed for too long after this wait."""
        if self._failing_since_s is None:
            return False
        is_down = self.failure.is_unreachable or not self.failure.is_too_fast
        patience_s = self._outage_wait_s if is_down else self._patience_s
        return (
            asyncio.get_running_loop().time() + wait_s - self._failing_since_s
            >= patience_s
        )

    def _learn_from_refusals(self, now_s: float) -> bool:
        """Decrease a limit that was reached; return whether most of the latest requests were refused."""
        self._usual_share += (self._usual_share < _MOST_USUAL_SHARE) / _USUAL_REQUESTS
        refused = sorted(sent.others for sent in self._latest if sent.is_refused)
        accepted = [sent.others for sent in self._latest if not sent.is_refused]
        is_limited = min(self._rate, self._window) < math.inf
        allowed_share = self._usual_share + (_EXCESS if is_limited else _FIRST_EXCESS)
        if len(refused) < _LEAST_REFUSALS + allowed_share * len(self._latest):
            return False
        growth, refused_share = self._growth(now_s), len(refused) / len(self._latest)
        rate, window = self._rate * growth, self._window * growth
        lowest, median = refused[len(refused) // 10], refused[len(refused) // 2]
        lower = sum(others < median for others in accepted)
        if 1 < lowest < window and lower >= 0.9 * len(accepted) > 0:
            self._limit(self._rate * growth, lowest, now_s)
        elif refused_share >= _CLOSED_SHARE or rate == math.inf:
            return True
        else:
            self._limit(rate * (1 - refused_share) * _DECREASE, window, now_s)
        return False

    def _limit(self, rate: float, window: float, now_s: float) -> None:
        self._rate, self._window, self._held_since_s = rate, window, now_s
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
            self._changed_number, self._slow_start = self._number, 1
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
        self._probe_at_s, self._probes, self._is_refused = None, 0, False
        log.info("%s accepts requests again", self._name)
        accepted, growth = (
            sum(not sent.is_refused for sent in self._latest),
            self._growth(now_s),
        )
        rate, since_s = self._rate * growth * _CLOSED_DECREASE, now_s
        if rate == math.inf and accepted:
            # A guess from what was accepted before, which may grow at once.
            rate = accepted / max(self._latest[-1].at_s - self._latest[0].at_s, 1.0)
            since_s -= _hold_s(rate)
        if self.failure.is_too_fast and rate < math.inf:
            self._limit(rate, self._window * growth, since_s)
        self._start_over()

    def _probe_interval_s(self) -> float:
        return _PROBE_INTERVALS_S[min(self._probes, len(_PROBE_INTERVALS_S) - 1)]

    def _growth(self, now_s: float) -> float:
        """Return the factor by which the limits have grown since they were learned."""
        if self._held_since_s == -math.inf:
            return 1.0
        periods = (now_s - self._held_since_s) / _hold_s(self._rate)
        return math.exp2(min(max(0.0, periods - 1) * _DOUBLINGS, _MOST_DOUBLINGS))

    def _note_budgets(self, sent: Sent, allowances: Allowances, now_s: float) -> None:
        self._requests.note(allowances.requests, sent.number, now_s)
        self._tokens.note(allowances.tokens, sent.number, now_s)

    async def _opened(self, arrived_s: float) -> None:
        """Wait until the next request may be sent.

        After the server has failed for too long, a request fails at once if it has seen another one fail.
        """
        loop = asyncio.get_running_loop()
        while (opens_at_s := self.opens_at_s(loop.time())) > (since_s := loop.time()):
            # A probe in flight may succeed; a failure of the same answer's other requests would cancel it.
            if (
                self.has_given_up()
                and not self._in_flight
                and arrived_s <= self._failed_at_s
            ):
                raise self.failure
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(
                    opens_at_s if opens_at_s < math.inf else None
                ):
                    await self._changed.wait()
            if opens_at_s < math.inf or self._held_since_s > -math.inf:
                self.slowdown.waited_s += loop.time() - since_s

    def opens_at_s(self, now_s: float) -> float:
        """Return when the next request may be sent; infinity if another must end first."""
        if self._probe_at_s is not None:
            return self._probe_at_s
        if self._in_flight >= max(
            1.0, min(self._slow_start, self._window * self._growth(now_s))
        ):
            return math.inf
        return max(
            self._next_at_s,
            self._requests.opens_at_s(self._number + 1, 1, now_s, self.share),
            self._tokens.opens_at_s(
                self._number + 1, self._tokens_each, now_s, self.share
            ),
        )

    def _next(self, now_s: float) -> Sent:
        self._number += 1
        sent = Sent(self._number, now_s, self._in_flight)
        self._in_flight += 1
        # As in TCP pacing, a window is not sent in one burst.
        interval_s = max(
            1 / self._rate, self.latency_s / self._window / 2
        ) / self._growth(now_s)
        self._next_at_s = max(self._next_at_s, now_s - _CATCH_UP_S) + interval_s
        if self._probe_at_s is not None:
            # A probe without a reply does not hold back the next one.
            self._probe_at_s = now_s + self._probe_interval_s()
            return sent
        self._latest.append(sent)
        while (
            len(self._latest) > _LATEST_REQUESTS
            and self._latest[0].at_s < now_s - _LATEST_S
        ):
            self._latest.popleft()
        return sent


def _hold_s(rate: float) -> float:
    return max(_LEAST_HOLD_S, min(_HOLD_REQUESTS / rate, _MOST_HOLD_S))


def _smoothed(mean: float, value: float) -> float:
    return mean + 0.1 * (value - mean) if mean else value
