"""Two agents over the same tasks, and how sure their differences are."""

import random
from dataclasses import replace

import pytest

from mind2web2.analysis import comparison
from mind2web2.errors import UsageError
from mind2web2.results.scored_answer import NO_FACTS, ResultFacts, ScoredAnswer


def compared(first, second, task_ids=None):
    """Return what ``compare --json`` prints of two agents, with each metric's one pair."""
    found = comparison.ranking([first, second], task_ids, allow_unfair=True).model_dump(mode="json")
    pairs = {name: metric["differences"][0] for name, metric in found["metrics"].items()}
    return {**found, "metrics": pairs}


def agent(scores, run="answer_1.md", **fields):
    """Return answers to ``task_0``, ``task_1`` and so on with these scores; ``None`` has none."""
    return [
        ScoredAnswer(f"task_{number}", run, score, **fields) for number, score in enumerate(scores)
    ]


def hard_and_easy(tasks, gain=0.0, seed=1):
    """Return scores that differ much from task to task, each with a gain."""
    draws = random.Random(seed)
    return [
        min(1.0, draws.choice([0.0, 0.8]) + gain * draws.uniform(0.5, 1.5)) for _ in range(tasks)
    ]


def test_a_small_gain_at_every_task_is_clear():
    """The tasks' own differences, far larger than the gain, cancel out."""
    found = compared(("old", agent(hard_and_easy(60))), ("new", agent(hard_and_easy(60, 0.05))))
    score = found["metrics"]["avg_score"]
    assert score["difference"] == pytest.approx(score["second"] - score["first"], abs=2e-4)
    assert 0 < score["low"] < score["difference"] < score["high"] < 0.1
    assert score["clear"]
    assert not found["metrics"]["success_rate"]["clear"]


def test_a_gain_at_some_tasks_and_a_loss_at_others_is_not():
    """Nought is inside."""
    found = compared(
        ("old", agent(hard_and_easy(60, seed=1))),
        ("new", agent(hard_and_easy(60, seed=2))),
    )
    assert not found["metrics"]["avg_score"]["clear"]
    assert found["metrics"]["avg_score"]["low"] is not None


def test_turned_round_the_difference_changes_its_sign():
    old, new = ("old", agent(hard_and_easy(40))), ("new", agent(hard_and_easy(40, 0.1)))
    there, back = (compared(*pair)["metrics"]["avg_score"] for pair in ((old, new), (new, old)))
    assert back["difference"] == -there["difference"]
    assert (back["low"], back["high"]) == pytest.approx((-there["high"], -there["low"]), abs=1e-3)


def test_only_tasks_that_both_have_are_compared():
    """Skipping hard tasks gains nothing; omitted tasks are named."""
    found = compared(
        ("old", agent([1.0] * 6 + [0.0] * 6)),
        ("new", agent([1.0, *[0.5] * 5, *[None] * 6])),
    )
    score = found["metrics"]["avg_score"]
    assert (found["num_tasks"], score["first"], score["tasks"]) == (6, 1.0, 6)
    assert score["second"] == round(3.5 / 6, 4)
    assert found["warnings"] == [
        "tasks of old that others lack, left out: task_6, task_7, task_8, task_9, task_10, task_11",
    ]


def test_with_a_task_list_what_is_missing_counts_as_zero():
    task_ids = [f"task_{number}" for number in range(8)]
    found = compared(("old", agent([1.0] * 8)), ("new", agent([1.0] * 4 + [None] * 4)), task_ids)
    score = found["metrics"]["avg_score"]
    assert (score["first"], score["second"], score["tasks"]) == (1.0, 0.5, 8)
    # McNemar's test of four losses and no gain.
    assert (score["p_value"], score["clear"]) == (0.0625, False)


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        pytest.param([0.0] * 8, [0.5] * 8, "the difference is the same at every task", id="alike"),
        pytest.param([0.0, 0.5], [0.5, 0.5], "too few tasks: 2, 6 are needed", id="two tasks"),
    ],
)
def test_without_spread_there_is_no_interval(first, second, reason):
    """The test still tells whether the difference is more than chance."""
    score = compared(("old", agent(first)), ("new", agent(second)))["metrics"]["avg_score"]
    assert (score["low"], score["reason"], score["clear"]) == (
        None,
        reason,
        len(first) == 8,
    )


def test_no_difference_at_any_task_has_an_exact_interval():
    score = compared(("old", agent([0.5] * 30)), ("new", agent([0.5] * 30)))["metrics"]["avg_score"]
    bound = round(1 - 0.025 ** (1 / 30), 4)
    assert (score["low"], score["high"], score["exact"], score["clear"]) == (
        -bound,
        bound,
        True,
        False,
    )


@pytest.mark.parametrize("gained", [3, 4, 5, 6])
def test_test_interval_and_what_is_clear_agree(gained):
    """Five of thirty tasks gained: p is .03125, and the interval is above 0.

    With four it holds 0.
    """
    new = [0.0] * (30 - gained) + [1.0] * gained
    score = compared(("old", agent([0.0] * 30)), ("new", agent(new)))["metrics"]["avg_score"]
    assert score["clear"] is (score["p_value"] < 0.05) is (score["low"] > 0) is (gained > 4)


def test_several_agents_are_corrected_for_being_several():
    """A difference that is clear alone may be one of the 21 of seven agents by chance."""
    better = ("better", agent([0.0] * 25 + [1.0] * 5))
    base = ("base", agent([0.0] * 30))
    assert compared(base, better)["metrics"]["avg_score"]["clear"]
    others = [(f"agent_{n}", agent([0.0] * 29 + [1.0])) for n in range(5)]
    ranked = comparison.ranking([base, better, *others])
    found = ranked.metrics["avg_score"].differences[0]
    assert (found.p_holm, found.clear) == (pytest.approx(0.03125 * 21), False)


def test_agents_without_a_common_task_cannot_be_compared():
    agents = (("old", agent([0.5])), ("new", agent([None])))
    with pytest.raises(UsageError, match="no task has scores of old and new; evaluate them on"):
        compared(*agents)
    assert compared(*agents, ["task_0"])["metrics"]["avg_score"]["second"] == 0.0


def test_all_against_none_is_clear():
    score = compared(("old", agent([0.0] * 8)), ("new", agent([1.0] * 8)))["metrics"]["avg_score"]
    assert (score["low"], score["high"]) == (pytest.approx(0.2612, abs=1e-4), 1.0)
    assert score["clear"]


def test_unequal_chances_are_pointed_out():
    thrice = [answer for run in (1, 2, 3) for answer in agent([1.0] * 8, f"answer_{run}.md")]
    found = compared(("old", agent([0.0] * 8)), ("new", thrice))
    assert found["warnings"] == [
        "the agents have different numbers of runs, so that pass@k compares unequal chances, and "
        "rare successes count for the agent with more runs: old 1, new 3",
    ]


def test_agents_of_different_judges_are_pointed_out():
    """Each agent has one judge here, but not the same."""
    found = compared(
        (
            "old",
            agent([0.0] * 8, judge_model="o4-mini", facts=ResultFacts(judge="o4-mini")),
        ),
        (
            "new",
            agent([1.0] * 8, judge_model="gpt-5", facts=ResultFacts(judge="gpt-5")),
        ),
    )
    assert found["warnings"] == [
        "scores of different judge models are compared: gpt-5 (8 answers), o4-mini (8 answers); "
        "judge all answers with one model",
    ]


def test_the_summary_is_rounded_as_published():
    """Four digits, and whether the difference is clear."""
    found = compared(("old", agent(hard_and_easy(30))), ("new", agent(hard_and_easy(30, 0.1))))
    assert (found["num_tasks"], found["level"]) == (30, 0.95)
    score = found["metrics"]["avg_score"]
    assert score["difference"] == pytest.approx(score["second"] - score["first"], abs=2e-4)
    assert score["low"] == round(score["low"], 4)


def test_an_answer_that_was_never_judged_has_no_other_judge():
    """A run in which the agent failed counts as 0, and says nothing about judges."""
    facts = replace(NO_FACTS, judge="judge-1")
    judged = agent(hard_and_easy(8), facts=facts)
    failed = [*judged[:-1], ScoredAnswer("task_7", "answer_1.md", 0.0, reason="empty")]
    assert compared(("old", judged), ("new", failed))["warnings"] == []
