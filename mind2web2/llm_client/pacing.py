"""One pace for all requests to a model, so that what its server allows is used and never fought.

Four things hold a request back, each known from replies to earlier ones:

- *A pause*: after a refusal (429) nobody asks before the time that the server names; where refusals go on,
  the pause doubles each time, whatever the server names.
- *A window*: until the first refusal so many requests are under way at most. It opens as TCP's does: by one
  with each reply.
- *A rate*: from the first refusal on, requests go one by one, evenly spaced. The rate is what was let in
  lately; each refusal lowers it, and time without one raises it, slowly at first and then ever faster.
- *Budgets*: what the headers say is left, less what was sent since the request that brought them. Nobody
  asks beyond that before the limit resets.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from mind2web2.llm_client.allowance import Allowance, Allowances

log = logging.getLogger(__name__)

# So many go out before the server has said anything: enough for an answer's claims all at once.
FIRST_WINDOW = 64
# Limits by the day reset in hours: then rather ask, and be told by a refusal.
_LONGEST_BUDGET_WAIT_S = 120.0
# What a limit that seems to reset at once is looked at again after.
_SHORTEST_PERIOD_S = 1.0
# What a rate is measured over.
_LATELY_S = 60.0
# A refusal while little was asked says little about the rate: then requests go at this many a second first.
_LEAST_GUESS = 1.0
_LOWERED_TO = 0.85
_LONGEST_SPACE_S = 60.0
# After half of this time without a refusal a rate is where it was, after twice the time fifty times as high.
_RECOVERY_S = 90.0
_MOST_CALM = 6.0
# How fast the idea of a usual request's tokens follows the requests.
_TOKENS_FOLLOW = 0.1


@dataclass(slots=True)
class Slowdown:
    """How much rate limits have slowed a run down.

    Args:
        refusals: requests that were refused for coming too fast.
        waited_s: time in which requests that could have been sent were held back.
    """

    refusals: int = 0
    waited_s: float = 0.0

    def in_words(self) -> str:
        """Return what slowed the run, empty where nothing did."""
        if not self.refusals and self.waited_s < 1:
            return ""
        times = "once" if self.refusals == 1 else f"{self.refusals} times"
        return f"rate limited: refused {times}, {self.waited_s:.0f} s waited"


class _Budget:
    """What is left of one limit, as far as the newest request that has an answer tells."""

    def __init__(self) -> None:
        self._told_by = 0
        self._left = math.inf
        self._limit: float | None = None
        self._resets_at_s = math.inf
        self._period_s = _LONGEST_BUDGET_WAIT_S

    def note(self, allowance: Allowance, number: int, now_s: float) -> None:
        """Take over what a reply says, given the number of its request."""
        if number < self._told_by:
            return
        self._told_by = number
        self._left, self._limit = allowance.remaining, allowance.limit
        self._period_s = min(allowance.reset_s, _LONGEST_BUDGET_WAIT_S)
        self._resets_at_s = now_s + self._period_s

    def opens_at_s(self, next_number: int, cost: float, now_s: float) -> float:
        """Return when the next request may go, where each costs so much; now where it may at once."""
        if (next_number - self._told_by) * cost <= self._left:
            return now_s
        if now_s < self._resets_at_s:
            return self._resets_at_s
        # One request is let through even where it costs more than there ever is: the server will say so.
        self._left = cost if self._limit is None else max(self._limit, cost)
        self._told_by = next_number - 1
        self._resets_at_s = now_s + max(self._period_s, _SHORTEST_PERIOD_S)
        return now_s


class _Rate:
    """How many requests a second are let in, as far as refusals tell; without bound before the first."""

    def __init__(self) -> None:
        self._lowest = math.inf
        self._since_s = 0.0
        self._last_s = -math.inf
        # Requests that were let in, each fading with time, and since when they are counted.
        self._let_in = 0.0
        self._counted_s: float | None = None
        self._first_s = 0.0

    @property
    def is_known(self) -> bool:
        """Tell whether anything was refused yet."""
        return self._lowest < math.inf

    def opens_at_s(self, now_s: float) -> float:
        """Return when the next request may go."""
        if not self.is_known:
            return now_s
        return self._last_s + 1 / self._now(max(now_s, self._since_s))

    def sent(self, now_s: float) -> None:
        """Count a request as let in, until it turns out to be refused."""
        self._fade(now_s)
        self._let_in += 1
        self._last_s = now_s

    def refused(self) -> None:
        """Take back that a request was let in."""
        self._let_in = max(0.0, self._let_in - 1)

    def lower(self, now_s: float, until_s: float) -> None:
        """Go slower from ``until_s`` on: too many were sent until now."""
        self._fade(now_s)
        counted_s = _LATELY_S * -math.expm1(-(now_s - self._first_s) / _LATELY_S)
        lately = max(self._let_in / counted_s if counted_s else 0.0, _LEAST_GUESS)
        lowered = min(_LOWERED_TO * self._now(now_s), lately)
        self._lowest = max(lowered, 1 / _LONGEST_SPACE_S)
        self._since_s = until_s

    def put_off(self, until_s: float) -> None:
        """Count the time without a refusal from later on."""
        self._since_s = max(self._since_s, until_s)

    def _now(self, now_s: float) -> float:
        calm = min(max(0.0, now_s - self._since_s) / _RECOVERY_S, _MOST_CALM)
        return self._lowest * math.exp(calm**2)

    def _fade(self, now_s: float) -> None:
        if self._counted_s is None:
            self._counted_s = self._first_s = now_s
        self._let_in *= math.exp((self._counted_s - now_s) / _LATELY_S)
        self._counted_s = now_s


class Pacer:
    """Lets requests to one model go when their time has come; first come, first served.

    A turn that was given counts against window and budgets until it is given back.

    Args:
        slowdown: counts along.
        first_pause_s: after a refusal without a wish of the server's own; doubles with each one in a row.
        longest_pause_s: ceiling of these.
        longest_wish_s: a server that asks for more, or lets nobody in for so long, is not waited for: the
            request fails then and says why.
    """

    def __init__(
        self,
        slowdown: Slowdown | None = None,
        first_pause_s: float = 2.0,
        longest_pause_s: float = 60.0,
        longest_wish_s: float = 900.0,
    ) -> None:
        self.slowdown = slowdown or Slowdown()
        self._first_pause_s, self._longest_pause_s = first_pause_s, longest_pause_s
        self._longest_wish_s = longest_wish_s
        self._waiting: deque[asyncio.Future[int]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._held_since_s: float | None = None
        self._granted = 0
        # Of these turns, numbered from 1: not yet given back, and with a request that has been sent.
        self._given = 0
        self._under_way = 0
        self._tokens_each = 0.0
        self._requests, self._tokens = _Budget(), _Budget()
        self._window = float(FIRST_WINDOW)
        self._rate = _Rate()
        self._paused_until_s = -math.inf
        self._refused_in_a_row = 0
        # A refusal of a request sent before the last pause tells nothing new.
        self._paused_since = 0
        self._let_in_s = -math.inf
        self._refused_since_s = math.inf

    @property
    def given(self) -> int:
        """Return how many turns have been given and not yet given back."""
        return self._given

    @property
    def let_in_s(self) -> float:
        """Return when the server last let a request in, as the loop counts time."""
        return self._let_in_s

    def turn_at_once(self) -> int | None:
        """Return a turn, to be used within ``given_back``, where one more request may go and nobody waits."""
        now_s = asyncio.get_running_loop().time()
        return None if self._waiting or self._opens_at_s(now_s) > now_s else self._next_turn()

    async def turn(self) -> int:
        """Wait until one more request may go and return its turn, to be used within ``given_back``."""
        waiting: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        self._wake()
        try:
            return await waiting
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled():
                self._given -= 1
            elif waiting in self._waiting:
                self._waiting.remove(waiting)
            self._wake()
            raise

    @contextmanager
    def given_back(self) -> Iterator[None]:
        """Give a turn back when the ``with`` block ends, whatever became of it."""
        try:
            yield
        finally:
            self._given -= 1
            self._wake()

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Count a request as under way while the ``with`` block runs."""
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1

    def answered(self, turn: int, allowances: Allowances, tokens: int) -> None:
        """Take in that a request was let in, what it cost and what the server says is left."""
        self._let_in_s, self._refused_since_s = asyncio.get_running_loop().time(), math.inf
        if turn > self._paused_since:
            self._refused_in_a_row = 0
        if tokens:
            self._tokens_each += (tokens - self._tokens_each) * (_TOKENS_FOLLOW if self._tokens_each else 1)
        self._note(turn, allowances)
        # A window that requests do not nearly fill says nothing about what would be let in.
        if self._waiting and self._under_way >= self._window / 2:
            self._window += 1

    def refused(self, turn: int, allowances: Allowances, retry_after_s: float | None) -> None:
        """Slow everybody down: this request came too fast."""
        self.slowdown.refusals += 1
        self._note(turn, allowances)
        self._rate.refused()
        is_news = turn > self._paused_since
        if is_news:
            self._paused_since = self._granted
            self._refused_in_a_row += 1
        pause_s = self._pause(retry_after_s)
        now_s = asyncio.get_running_loop().time()
        self._refused_since_s = min(self._refused_since_s, now_s)
        if is_news or not self._rate.is_known:
            self._rate.lower(now_s, max(now_s, self._paused_until_s))
        else:
            self._rate.put_off(self._paused_until_s)
        if is_news and pause_s < self._longest_wish_s:
            log.warning(
                "judge refuses requests for coming too fast, all wait seconds=%.1f in_a_row=%d",
                max(0.0, self._paused_until_s - now_s),
                self._refused_in_a_row,
            )
        elif is_news:
            log.warning(
                "judge refuses requests for coming too fast, and asks for a longer wait than there is time "
                "for: such requests fail seconds=%.0f longest=%.0f",
                pause_s,
                self._longest_wish_s,
            )

    def _note(self, turn: int, allowances: Allowances) -> None:
        now_s = asyncio.get_running_loop().time()
        if allowances.requests is not None:
            self._requests.note(allowances.requests, turn, now_s)
        if allowances.tokens is not None:
            self._tokens.note(allowances.tokens, turn, now_s)

    def _pause(self, wish_s: float | None) -> float:
        """Let all wait, unless that would take too long, and return how many seconds that is."""
        own_s: float = min(
            self._first_pause_s * 2 ** min(self._refused_in_a_row - 1, 10), self._longest_pause_s
        )
        if wish_s is None:
            pause_s = own_s
        else:
            pause_s = wish_s if self._refused_in_a_row < 2 else max(wish_s, own_s)
        if pause_s < self._longest_wish_s:
            until_s = asyncio.get_running_loop().time() + pause_s
            self._paused_until_s = max(self._paused_until_s, until_s)
        return pause_s

    def _opens_at_s(self, now_s: float) -> float:
        """Return when the next request may go; never by itself where it waits for another to end."""
        if not self._rate.is_known and self._given >= self._window:
            return math.inf
        if now_s - self._refused_since_s >= self._longest_wish_s:
            return now_s  # nobody is let in any more: let each request find out, and fail
        if now_s < self._paused_until_s:
            return self._paused_until_s
        return max(
            self._rate.opens_at_s(now_s),
            self._requests.opens_at_s(self._granted + 1, 1, now_s),
            self._tokens.opens_at_s(self._granted + 1, self._tokens_each, now_s),
        )

    def _next_turn(self) -> int:
        self._granted += 1
        self._given += 1
        self._rate.sent(asyncio.get_running_loop().time())
        return self._granted

    def _wake(self) -> None:
        """Let go whose time has come, and come back when the next one's has."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._waiting:
            self._count_wait(is_held=False)
            return
        loop = asyncio.get_running_loop()
        opens_at_s = now_s = loop.time()
        while self._waiting and (opens_at_s := self._opens_at_s(now_s)) <= now_s:
            waiting = self._waiting.popleft()
            # One that was cancelled is still to take note of it.
            if not waiting.done():
                waiting.set_result(self._next_turn())
        # Before any refusal a full window is only opening.
        self._count_wait(is_held=bool(self._waiting) and (self._rate.is_known or opens_at_s < math.inf))
        if self._waiting and opens_at_s < math.inf:
            self._timer = loop.call_at(opens_at_s, self._wake)

    def _count_wait(self, *, is_held: bool) -> None:
        now_s = asyncio.get_running_loop().time()
        if self._held_since_s is not None:
            self.slowdown.waited_s += now_s - self._held_since_s
        self._held_since_s = now_s if is_held else None
