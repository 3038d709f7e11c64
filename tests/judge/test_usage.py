"""What a run has taken, by task and in all, with what was reused counted apart."""

import pytest

from mind2web2.judge.usage import RunUsage, Usage
from mind2web2.llm_client.chat import TokenUsage

TOKENS = TokenUsage(100, 60, 10)


def test_tasks_add_up():
    """Asked and reused each for themselves."""
    usage = RunUsage()
    usage.of("lake").asked.add(TOKENS, 2, 0.5)
    usage.of("lake").reused.add(TOKENS, 1, 0.25)
    usage.of("hill").asked.add(TOKENS, 1, 1.0)
    total = usage.total()
    assert total.asked == Usage(2, 3, TOKENS + TOKENS, 1.5)
    assert total.reused == Usage(1, 1, TOKENS, 0.25)


def test_one_unknown_price_makes_the_sum_unknown():
    """Not too low."""
    usage = RunUsage()
    usage.of("lake").asked.add(TOKENS, 1, None)
    usage.of("hill").asked.add(TOKENS, 1, 1.0)
    assert usage.total().asked.cost_usd is None
    assert usage.total().as_json()["asked"]["cost_usd"] is None


def test_nothing_asked_costs_nothing():
    """Also without any task."""
    assert RunUsage().total().asked.cost_usd == pytest.approx(0.0)
