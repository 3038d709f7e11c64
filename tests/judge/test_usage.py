"""What a run has taken, by task and in all, with what was reused counted apart."""

from mind2web2.judge.protocol import RunUsage
from mind2web2.llm_client.chat import Usage

ONE = Usage(100, 60, 10, judgments=1, requests=2, cost_usd=0.5)


def test_tasks_add_up():
    """Asked and reused each for themselves."""
    usage = RunUsage()
    usage.of("lake").asked += ONE
    usage.of("lake").reused += ONE
    usage.of("hill").asked += ONE
    total = usage.total()
    assert total.asked == Usage(200, 120, 20, judgments=2, requests=4, cost_usd=1.0)
    assert total.reused == ONE


def test_one_unknown_price_makes_the_sum_unknown():
    """Not too low."""
    usage = RunUsage()
    usage.of("lake").asked += Usage(cost_usd=None)
    usage.of("hill").asked += ONE
    assert usage.total().asked.cost_usd is None
    assert usage.total().as_json()["asked"]["cost_usd"] is None
