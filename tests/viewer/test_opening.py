"""The sentence that opens a report."""

import pytest
from viewer.made_results import Results, leaf, result

from mind2web2.viewer.catalog import Catalog
from mind2web2.viewer.opening import opening_sentence


def agent(name, share, *, runs=3, interval=None):
    """Return an agent as the overview has it."""
    metrics = {
        "avg_score": share,
        "success_rate": share / 2,
        "num_tasks": 10 if runs else 0,
        "num_runs": runs,
    }
    return {
        "name": name,
        "metrics": metrics,
        "intervals": {"avg_score": interval} if interval else {},
    }


def compared(first, second, limits=(None, None), p_value=None):
    """Return the comparison of two agents with these shares.

    Limits are of the second minus the first.
    """
    pair = {
        "first": first,
        "second": second,
        "low": limits[0],
        "high": limits[1],
        "p_value": p_value,
    }
    return lambda *_: {
        "num_tasks": 10,
        "metrics": {"avg_score": {"differences": [pair]}},
    }


A, B = agent("a", 0.93), agent("b", 0.62)


@pytest.mark.parametrize(
    ("agents", "comparison", "expected"),
    [
        (
            [B, A],
            compared(0.93, 0.62, (-0.38, -0.25), 0.001),
            "a is better than b: 93% against 62% of the points, difference 31 points (25 to 38), "
            "10 tasks, p 0.001.",
        ),
        (
            [A, B, agent("c", 0.1)],
            compared(0.93, 0.90, (-0.1, 0.04), 0.4),
            "Of 3 agents, a and b are not told apart: 93% against 90% of the points, difference "
            "3 points (-4 to 10), 10 tasks, p 0.4.",
        ),
        (
            [A, B],
            compared(0.6, 0.7, (0.02, 0.18), 0.01),
            "b is better than a: 70% against 60% of the points, difference 10 points (2 to 18), "
            "10 tasks, p 0.01.",
        ),
        (
            [A, B],
            compared(0.9, 0.6),
            "a and b are not told apart: 90% against 60% of the points, difference 30 points, 10 "
            "tasks.",
        ),
        (
            [A, B],
            lambda *_: {"reason": "no shared task"},
            "a 93%, b 62% of the points; they cannot be compared: no shared task.",
        ),
        (
            [
                agent("a", 0.5, interval=[0.4, 0.6]),
                agent("empty", 0.0, runs=0),
            ],
            None,
            "a gets 50% of the points (95% interval 40% to 60%) and solves 25% of its runs "
            "completely: 10 tasks, 3 runs each.",
        ),
        ([], None, None),
    ],
)
def test_a_report_opens_in_words(agents, comparison, expected):
    """The two best agents, in the order of the tasks that they share.

    One alone with its interval.
    """
    assert opening_sentence(agents, comparison) == expected


def test_figures_are_those_of_metrics_where_a_run_lacks_a_task(tmp_path):
    """The means over tasks, in the columns as in the words above them."""
    made = Results(tmp_path)
    for task, run, passed in (("lake", 1, True), ("hill", 1, False), ("lake", 2, True)):
        leaves = [leaf("deep", "The lake is deep.", passed=passed)]
        made.add(result("bot", f"answer_{run}", leaves), task)
    made.summarise("bot")
    overview = Catalog(made.paths).overview()
    [bot] = overview["agents"]
    assert bot["metrics"]["avg_score"] == bot["metrics"]["success_rate"] == 0.5
    sentence = opening_sentence(overview["agents"], None)
    assert "bot gets 50% of the points and solves 50% of its runs" in sentence
