"""The permit of a judge request: its steps, and when the place is given back."""

import asyncio
from contextlib import nullcontext

import pytest

from mind2web2.errors import (
    BudgetReachedError,
    JudgeAccessError,
    JudgeError,
    JudgeUnavailableError,
)
from mind2web2.judge.budget import PaidPermit
from mind2web2.judge.permit import AnswerLimits, CircuitBreaker, Permit
from mind2web2.judge.protocol import FailureLatch


class Noting:
    """A limit that notes what is entered and how it ends."""

    def __init__(self):
        self.events = []

    async def __aenter__(self):
        self.events.append("place")

    async def __aexit__(self, kind, error, trace):
        self.events.append(kind)


class NotedBudget:
    """A budget that notes its calls."""

    def __init__(self, events, refusal=None):
        self._events, self._refusal = events, refusal

    def note_read(self, _permit):
        """Note nothing."""

    def note_sent(self, _permit):
        """Note nothing."""

    async def enter(self, _prompt_tokens):
        """Note it, and refuse if so asked."""
        self._events.append("reserve")
        if self._refusal is not None:
            raise self._refusal

    async def all_read(self):
        """Note it."""
        self._events.append("others are read")

    def leave(self, _prompt_tokens, **_):
        """Note how the request ended."""
        self._events.append("end")
        return 0.0


async def test_the_place_is_kept_until_the_reply_is_stored():
    """The budget learns at once that the request has ended.

    The next request gives the place back first.
    """
    places = Noting()
    permit = PaidPermit(
        AnswerLimits(places, lambda: None), CircuitBreaker(), NotedBudget(places.events), 10
    )
    for _ in range(2):
        async with permit:
            pass
    await permit.aclose()
    one = ["place", "reserve", "end", None]
    assert places.events == one * 2


async def test_waiting_requests_are_refused_after_a_failure():
    """The place is given back at once."""
    places, latch = asyncio.Semaphore(1), FailureLatch()
    permit = Permit(AnswerLimits(places, latch.check), CircuitBreaker())
    async with permit:
        latch.fail(JudgeError("outage"))
    with pytest.raises(JudgeError, match="outage"):
        async with permit:
            pytest.fail("admitted")
    assert not places.locked()


async def test_a_refused_request_leaves_the_limit_with_the_reason():
    """A limit may take an end without an error for a reply."""
    places, latch = Noting(), FailureLatch()
    permit = Permit(AnswerLimits(places, latch.check), CircuitBreaker())
    async with permit:
        latch.fail(JudgeError("outage"))
    with pytest.raises(JudgeError, match="outage"):
        async with permit:
            pytest.fail("admitted")
    assert places.events == ["place", None, "place", JudgeError]


async def test_a_request_that_the_budget_refuses_waits_without_a_place():
    places, breaker = Noting(), CircuitBreaker()
    budget = NotedBudget(places.events, BudgetReachedError("max_cost is reached"))
    with pytest.raises(BudgetReachedError):
        async with PaidPermit(AnswerLimits(places, lambda: None), breaker, budget, 10):
            pytest.fail("admitted")
    assert places.events == ["place", "reserve", BudgetReachedError, "others are read"]


async def test_an_outage_refuses_those_that_wait_for_a_place():
    """A request that comes later shows whether the server is back."""
    breaker = CircuitBreaker()

    class Places(Noting):
        async def __aenter__(self):
            for number in range(2):
                away = JudgeUnavailableError("away", is_outage=True)
                breaker.note_failure(away, ("lake", f"answer_{number}.md"))

    with pytest.raises(JudgeUnavailableError, match="away") as refused:
        async with Permit(AnswerLimits(Places(), lambda: None), breaker):
            pytest.fail("admitted")
    assert refused.value.is_outage
    async with Permit(AnswerLimits(nullcontext(), lambda: None), breaker):
        breaker.note_reply()
    assert breaker.outage is None


async def test_an_open_circuit_costs_no_dollars():
    """The breaker is asked before the budget."""
    breaker, events = CircuitBreaker(), []
    breaker.note_failure(JudgeAccessError("wrong key", is_for_all=True), ("lake", "answer_1.md"))
    with pytest.raises(JudgeAccessError, match="wrong key"):
        async with PaidPermit(
            AnswerLimits(nullcontext(), lambda: None), breaker, NotedBudget(events), 10
        ):
            pytest.fail("admitted")
    assert events == []
