"""One pace for all requests to a model, so that what its server allows is used and never fought.

Three things hold a request back, each known from replies to earlier ones:

- *A pause*: after a refusal (429) nobody asks before the time that the server names.
- *A window*: so many requests are under way at most. It opens as TCP's does: by one with each reply until
  the first refusal; a refusal halves it, or brings it down to what was let in; then it opens by one with each
  round of replies.
- *Budgets*: what the headers say is left, less what was sent since the request that brought them. Nobody
  asks beyond that before the limit resets.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from mind2web2.llm_client.allowance import Allowance, Allowances

# So many go out before the server has said anything: enough for an answer's claims all at once.
FIRST_WINDOW = 64
# Limits by the day reset in hours: then rather ask, and be told by a refusal.
_LONGEST_BUDGET_WAIT_S = 120.0
# What a limit that seems to reset at once is looked at again after.
_SHORTEST_PERIOD_S = 1.0
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


class Pacer:
    """Lets requests to one model go when their time has come; first come, first served.

    A turn that was given counts against window and budgets until it is given back.

    Args:
        slowdown: counts along.
        first_pause_s: after a refusal without a wish of the server's own; doubles with each one in a row.
        longest_pause_s: ceiling of these.
        longest_wish_s: a server that asks for more is not waited for: the request fails then and says why.
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
        self._threshold = math.inf
        self._paused_until_s = -math.inf
        self._refused_in_a_row = 0
        # A refusal of a request sent before the last change of the window tells nothing new.
        self._window_since = 0
        self._let_in_since = 0

    @property
    def given(self) -> int:
        """Return how many turns have been given and not yet given back."""
        return self._given

    @property
    def window(self) -> int:
        """Return how many requests may be under way at once."""
        return int(self._window)

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
        self._let_in_since += 1
        self._refused_in_a_row = 0
        if tokens:
            self._tokens_each += (tokens - self._tokens_each) * (_TOKENS_FOLLOW if self._tokens_each else 1)
        self._note(turn, allowances)
        # A window that requests do not nearly fill says nothing about what would be let in.
        if self._waiting and self._under_way >= self._window / 2:
            self._window += 1 if self._window < self._threshold else 1 / self._window

    def refused(self, turn: int, allowances: Allowances, retry_after_s: float | None) -> None:
        """Slow everybody down: this request came too fast."""
        self.slowdown.refusals += 1
        self._note(turn, allowances)
        if turn > self._window_since:
            self._window_since, self._let_in_since = self._granted, 0
            self._refused_in_a_row += 1
            self._window = self._threshold = max(1.0, self._under_way / 2)
        else:
            others = self._under_way - 1
            self._window = self._threshold = max(1.0, min(self._window, others + self._let_in_since))
        self._pause(retry_after_s)

    def _note(self, turn: int, allowances: Allowances) -> None:
        now_s = asyncio.get_running_loop().time()
        if allowances.requests is not None:
            self._requests.note(allowances.requests, turn, now_s)
        if allowances.tokens is not None:
            self._tokens.note(allowances.tokens, turn, now_s)

    def _pause(self, wish_s: float | None) -> None:
        own_s = self._first_pause_s * 2 ** min(self._refused_in_a_row - 1, 10)
        pause_s = min(own_s, self._longest_pause_s) if wish_s is None else wish_s
        if pause_s < self._longest_wish_s:
            until_s = asyncio.get_running_loop().time() + pause_s
            self._paused_until_s = max(self._paused_until_s, until_s)

    def _opens_at_s(self, now_s: float) -> float:
        """Return when the next request may go; never by itself where it waits for another to end."""
        if self._given >= self.window:
            return math.inf
        if now_s < self._paused_until_s:
            return self._paused_until_s
        return max(
            self._requests.opens_at_s(self._granted + 1, 1, now_s),
            self._tokens.opens_at_s(self._granted + 1, self._tokens_each, now_s),
        )

    def _next_turn(self) -> int:
        self._granted += 1
        self._given += 1
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
        self._count_wait(is_held=bool(self._waiting) and min(opens_at_s, self._threshold) < math.inf)
        if self._waiting and opens_at_s < math.inf:
            self._timer = loop.call_at(opens_at_s, self._wake)

    def _count_wait(self, *, is_held: bool) -> None:
        now_s = asyncio.get_running_loop().time()
        if self._held_since_s is not None:
            self.slowdown.waited_s += now_s - self._held_since_s
        self._held_since_s = now_s if is_held else None
