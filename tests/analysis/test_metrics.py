"""An agent's metrics: hand-computed cases, and properties that hold for any answers."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind2web2.analysis.comparison import ranking
from mind2web2.analysis.metrics import agent_metrics as metrics_of
from mind2web2.results.scored_answer import ScoredAnswer
from mind2web2.statistics.uncertainty import METHOD


def agent_metrics(*given):
    """Return an agent's metrics as its ``summary.json`` has them."""
    return metrics_of(*given).as_json()


def answers(table, **fields):
    """Return answers from ``{task: scores of answer_1, answer_2 ...}``.

    ``"-"`` leaves an answer out.
    """
    return [
        ScoredAnswer(task, f"answer_{k}.md", score, **fields)
        for task, scores in table.items()
        for k, score in enumerate(scores, start=1)
        if score != "-"
    ]


NOTHING_DOUBTFUL = {
    "page_not_had": 0,
    "suspect_page": 0,
    "declined": 0,
    "flagged": 0,
    "error": 0,
}
NOTHING_QUOTED = {"found": 0, "approximate": 0, "not_found": 0}
NOTHING_JUDGED = {
    "claims": 0,
    "reservations": NOTHING_DOUBTFUL,
    "voted": 0,
    "split": 0,
    "quotes": NOTHING_QUOTED,
}
THREE_TASKS = {"a": [1.0, 0.5], "b": [0.0, 1.0], "c": [0.25, 0.0]}


def listed(*scores_and_words):
    """Return a task's answers as the agent's summary lists them."""
    return {
        "answers": [
            {
                "answer_name": f"answer_{number}.md",
                "score": score,
                "success": score == 1.0,
                "word_count": words,
            }
            for number, (score, words) in enumerate(scores_and_words, start=1)
        ]
    }


def test_a_score_of_almost_1_is_a_success():
    almost = answers({"a": [1 - 1e-7, 0.5], "b": [0.999, 0.0]})
    found = agent_metrics("bot", almost)
    assert (found["success_rate"], found["pass_at_2"]) == (0.25, 0.5)
    assert found["tasks"]["a"]["pass"]


def test_the_published_summary():
    """By hand, runs score 1.25/3 and 1.5/3; one of three tasks passes in each, two in any."""
    word_counts = iter([100, 200, 300, 401, 500, 600])
    scored = [
        ScoredAnswer(
            answer.task_id,
            answer.answer_name,
            answer.score,
            next(word_counts),
            10.0,
            "o4-mini",
        )
        for answer in answers(THREE_TASKS)
    ]
    assert agent_metrics("bot", scored) == {
        "agent_name": "bot",
        "num_tasks": 3,
        "num_runs": 2,
        "avg_score": 0.458333,
        "avg_score_std": 0.0417,
        "success_rate": 0.3333,
        "success_rate_std": 0.0,
        "pass_at_2": 0.6667,
        "avg_answer_word_count": 350.2,
        "avg_answer_word_count_std": 50.2,
        "avg_time_seconds": 10.0,
        "per_run": {
            "answer_1.md": {
                "num_tasks": 3,
                "avg_score": 0.416667,
                "success_rate": 0.3333,
                "avg_word_count": 300.0,
            },
            "answer_2.md": {
                "num_tasks": 3,
                "avg_score": 0.5,
                "success_rate": 0.3333,
                "avg_word_count": 400.3,
            },
        },
        "tasks": {
            "a": {
                **listed((1.0, 100), (0.5, 200)),
                "best_score": 1.0,
                "avg_score": 0.75,
                "pass": True,
            },
            "b": {
                **listed((0.0, 300), (1.0, 401)),
                "best_score": 1.0,
                "avg_score": 0.5,
                "pass": True,
            },
            "c": {
                **listed((0.25, 500), (0.0, 600)),
                "best_score": 0.25,
                "avg_score": 0.125,
                "pass": False,
            },
        },
        "judge_models": {"o4-mini": 6},
        "missing": [],
        "missing_counted_as_zero": False,
        "warnings": [],
        "intervals": {
            "level": 0.95,
            "method": METHOD,
            "resamples": 10_000,
            "seed": 0,
            "metrics": {
                name: {
                    "low": None,
                    "high": None,
                    "exact": False,
                    "tasks": 3,
                    "reason": "too few tasks: 3, 6 are needed",
                }
                for name in (
                    "avg_score",
                    "success_rate",
                    "pass_at_2",
                    "avg_answer_word_count",
                    "avg_time_seconds",
                )
            },
        },
        "verdicts": {
            **NOTHING_JUDGED,
            "tasks": {"a": NOTHING_JUDGED, "b": NOTHING_JUDGED, "c": NOTHING_JUDGED},
            "extractions": NOTHING_DOUBTFUL,
            "in_doubt": [],
            "flagged_answers": [],
            "treeless": [],
            "off_tree": [],
            "unexplained": [f"{task}/answer_{run}.md" for task in "abc" for run in (1, 2)],
        },
        "over_tasks": None,
        "these_tasks": None,
        "missing_bounds": None,
        "variation": {
            "between_tasks": 0.0,
            "between_runs": 0.21875,
            "between_judgments": None,
        },
    }


def test_an_answer_without_a_result_is_listed_not_counted():
    table = answers({"a": [1.0], "b": [0.5]})
    table[1] = ScoredAnswer("b", "answer_1.md", None, reason="the judge was out of reach")
    metrics = agent_metrics("bot", table)
    assert (metrics["avg_score"], metrics["num_tasks"], metrics["pass_at_1"]) == (
        1.0,
        1,
        1.0,
    )
    assert metrics["missing"] == [
        {
            "task_id": "b",
            "answer_name": "answer_1.md",
            "reason": "the judge was out of reach",
        }
    ]
    assert metrics["warnings"] == ["answers without a score: 1, not counted in the averages"]


def test_means_of_tasks_are_those_of_compare():
    """The summary keeps the means over runs as published, also where runs lack tasks."""
    incomplete = answers({"a": [1.0, "-"], "b": [0.0, 0.0], "c": [0.0, 0.0]})
    metrics = agent_metrics("bot", incomplete)
    assert metrics["avg_score"] == pytest.approx(1 / 6, abs=1e-6)
    by_task = metrics["over_tasks"]
    assert (by_task["avg_score"], by_task["success_rate"]) == (0.3333, 0.3333)
    compared = ranking([("bot", incomplete), ("same", incomplete)])
    assert compared.metrics["avg_score"].values["bot"] == by_task["avg_score"]
    assert agent_metrics("bot", answers(THREE_TASKS))["over_tasks"] is None


def test_missing_scores_are_bounded():
    metrics = agent_metrics(
        "bot", answers({"easy": [1.0, 1.0], "hard": [0.0, None], "lost": [None, None]})
    )
    assert metrics["missing_bounds"] == {
        "avg_score": [0.3333, 0.8333],
        "success_rate": [0.3333, 0.8333],
    }
    assert agent_metrics("bot", answers(THREE_TASKS))["missing_bounds"] is None


def test_runs_without_any_score_are_bounded_too():
    """Runs without any score were left out once, so that the score seemed to be certain."""
    metrics = agent_metrics("bot", answers({"lake": [0.0, None, None, None]}))
    assert metrics["missing_bounds"]["avg_score"] == [0.0, 0.75]


def test_other_answers_to_these_tasks_vary_less_than_other_tasks():
    scores = {f"task_{n}": [n / 10, n / 10 + 0.1] for n in range(9)}
    found = agent_metrics("bot", answers(scores))
    these, large = found["these_tasks"], found["intervals"]["metrics"]["avg_score"]
    assert large["low"] < these["low"] < found["avg_score"] < these["high"] < large["high"]
    assert these["high"] - these["low"] == pytest.approx(
        2 * 2.262 * (0.005 / 2 / 9) ** 0.5, abs=0.001
    )


def test_with_a_task_list_what_is_missing_counts_as_zero():
    """An answer without a result, an absent answer and a task without any are all named."""
    table = answers({"a": [1.0, 1.0], "b": [None, 0.5], "c": [1.0]})
    metrics = agent_metrics("bot", table, ["a", "b", "c", "d"])
    assert (metrics["num_tasks"], metrics["num_runs"]) == (4, 2)
    assert [run["avg_score"] for run in metrics["per_run"].values()] == [0.5, 0.375]
    assert (metrics["avg_score"], metrics["avg_score_std"]) == (0.4375, 0.0625)
    assert (metrics["success_rate"], metrics["success_rate_std"]) == (0.375, 0.125)
    assert metrics["pass_at_2"] == 0.5
    assert metrics["tasks"]["c"]["avg_score"] == 0.5
    assert [(gone["task_id"], gone["answer_name"]) for gone in metrics["missing"]] == [
        ("b", "answer_1.md"),
        ("c", "answer_2.md"),
        ("d", "answer_1.md"),
        ("d", "answer_2.md"),
    ]
    assert metrics["missing_counted_as_zero"]
    assert metrics["warnings"] == [
        "answers without a score: 1, counted as 0",
        "missing answers: 1 (c answer_2), counted as 0",
        "tasks without any answer: 1 (d), counted as 0",
        "pass@2 rests on fewer than 2 answers at: b 1, c 1, d 0",
    ]


def test_runs_of_different_tasks_are_pointed_out():
    metrics = agent_metrics("bot", answers({"a": [1.0, 0.0, 0.5], "b": [0.0, "-", "-"]}))
    assert [(run["num_tasks"], run["avg_score"]) for run in metrics["per_run"].values()] == [
        (2, 0.5),
        (1, 0.0),
        (1, 0.5),
    ]
    assert metrics["avg_score"] == 0.333333
    assert [(gone["task_id"], gone["answer_name"]) for gone in metrics["missing"]] == [
        ("b", "answer_2.md"),
        ("b", "answer_3.md"),
    ]
    assert metrics["warnings"] == [
        "missing answers: 2 (b answer_2, b answer_3), not counted in the averages",
        "pass@3 rests on fewer than 3 answers at: b 1",
    ]


def test_a_stray_answer_counts_as_a_run():
    table = {f"t{number}": [1.0] for number in range(1, 21)}
    table["t1"] = [1.0, *"-" * 9, 0.5]
    for task_ids in (None, list(table)):
        metrics = agent_metrics("bot", answers(table), task_ids)
        assert (metrics["num_runs"], len(metrics["missing"])) == (2, 19)
        assert metrics["warnings"][0].startswith("missing answers: 19 (t2 answer_11, ")


def test_a_run_without_any_score_is_no_attempt():
    """Pass@k claims no more attempts than were judged.

    With a task list the run counts, as zeros.
    """
    table = answers({"a": [1.0, None], "b": [0.0, None]})
    assert "pass_at_1" in agent_metrics("bot", table)
    counted = agent_metrics("bot", table, ["a", "b"])
    assert (counted["pass_at_2"], counted["avg_score"]) == (0.5, 0.25)


def test_nothing_known_is_not_zero():
    unknown = agent_metrics("bot", answers({"a": [None]}))
    assert (unknown["num_tasks"], unknown["num_runs"]) == (0, 0)
    assert [
        unknown[key] for key in ("avg_score", "avg_score_std", "success_rate", "pass_at_0")
    ] == [None] * 4
    assert [gone["task_id"] for gone in unknown["missing"]] == ["a"]
    nothing = agent_metrics("bot", [], ["a", "b"])
    assert [
        nothing[key] for key in ("avg_score", "avg_score_std", "success_rate", "pass_at_0")
    ] == [0.0] * 4
    assert nothing["tasks"]["a"] == {
        "answers": [],
        "best_score": 0.0,
        "avg_score": 0.0,
        "pass": False,
    }


def test_tasks_outside_the_list_are_left_out_and_named():
    """Tasks outside the list enter no number, words and times included."""
    table = [
        ScoredAnswer("a", "answer_1.md", 0.0, 10),
        ScoredAnswer("x", "answer_2.md", 1.0, 99, 5.0),
    ]
    metrics = agent_metrics("bot", table, ["a"])
    assert (metrics["num_runs"], metrics["avg_score"], metrics["avg_time_seconds"]) == (
        1,
        0.0,
        None,
    )
    assert metrics["avg_answer_word_count"] == 10
    assert metrics["warnings"] == ["tasks that were not asked for, left out: x"]


def test_scores_of_different_judges_are_not_averaged_silently():
    """An unnamed judge is another one, too."""
    mixed = [
        *answers({"a": [1.0]}, judge_model="o4-mini"),
        *answers({"b": [1.0]}, judge_model="gpt-5"),
    ]
    [warning] = agent_metrics("bot", mixed)["warnings"]
    assert "different judge models are averaged: gpt-5 (1 answer), o4-mini (1 answer)" in warning
    half_known = [*answers({"a": [1.0]}, judge_model="o4-mini"), *answers({"b": [1.0]})]
    assert "unknown (1 answer)" in agent_metrics("bot", half_known)["warnings"][0]


def test_words_and_times_average_what_is_known():
    """An answer without a score has words; one of unknown length does not count as empty."""
    table = [
        ScoredAnswer("a", "answer_1.md", 1.0, 100, 60.0),
        ScoredAnswer("b", "answer_1.md", None, 200, 30.0),
        ScoredAnswer("c", "answer_1.md", 1.0, None, None),
    ]
    metrics = agent_metrics("bot", table)
    assert (metrics["avg_answer_word_count"], metrics["avg_answer_word_count_std"]) == (
        150,
        0,
    )
    assert metrics["avg_time_seconds"] == 45


def test_tasks_and_runs_are_listed_in_natural_order():
    """The tenth comes after the second."""
    table = [ScoredAnswer(f"t{task}", f"answer_{k}.md", 0.0) for task in (10, 2) for k in (10, 9)]
    metrics = agent_metrics("bot", table)
    assert (list(metrics["tasks"]), list(metrics["per_run"])) == (
        ["t2", "t10"],
        ["answer_9.md", "answer_10.md"],
    )


@pytest.mark.parametrize("score", [-0.1, 1.1, math.nan, math.inf, True, "1"])
def test_values_that_are_no_scores_are_refused(score):
    """A number outside 0 and 1 would spoil every average."""
    with pytest.raises(ValueError, match=r"a/answer_1\.md is not within 0 and 1"):
        ScoredAnswer("a", "answer_1.md", score)


def test_an_answer_given_twice_is_refused():
    """One of the two would vanish."""
    with pytest.raises(ValueError, match=r"a/answer_1\.md is given twice"):
        agent_metrics("bot", answers({"a": [1.0]}) * 2)


places = st.tuples(st.sampled_from("abcd"), st.integers(1, 4))
scored_answers = st.dictionaries(
    places, st.none() | st.just(1.0) | st.floats(0, 1), max_size=16
).map(
    lambda found: [
        ScoredAnswer(task, f"answer_{k}.md", score, k) for (task, k), score in found.items()
    ]
)
task_lists = st.none() | st.lists(st.sampled_from("abcde"), max_size=5)


@given(scored_answers, task_lists, st.randoms())
def test_the_order_of_answers_and_tasks_is_no_matter(table, task_ids, random):
    """Any order gives the same numbers to the last digit, and the same file."""
    expected = agent_metrics("bot", table, task_ids)
    random.shuffle(table)
    again = agent_metrics("bot", table, task_ids and task_ids[::-1])
    assert again == expected
    assert str(again) == str(expected)


@given(scored_answers, task_lists)
def test_averages_stay_within_their_bounds(table, task_ids):
    """Shares are from 0 to 1.

    A run passes at most as many tasks as all runs together, and no success beats its score.
    """
    metrics = agent_metrics("bot", table, task_ids)
    if metrics["avg_score"] is None:
        assert metrics["num_tasks"] == 0
        return
    assert 0 <= metrics["success_rate"] <= metrics["avg_score"] + 1e-4 <= 1 + 1e-4
    assert 0 <= metrics["avg_score_std"] <= 0.5
    if not (task_ids is None and metrics["warnings"]):
        assert metrics["success_rate"] <= metrics[f"pass_at_{metrics['num_runs']}"] + 1e-4


@given(scored_answers, st.lists(st.sampled_from("abcde"), min_size=1, unique=True))
def test_every_cell_is_scored_or_missing(table, task_ids):
    """With a task list, scored answers and missing ones make up tasks times runs."""
    metrics = agent_metrics("bot", table, task_ids)
    scored = sum(len(task["answers"]) for task in metrics["tasks"].values())
    runs = metrics["num_runs"] or 1
    assert scored + len(metrics["missing"]) == metrics["num_tasks"] * runs


@given(scored_answers)
def test_no_answer_vanishes(table):
    metrics = agent_metrics("bot", table)
    listed = {(gone["task_id"], gone["answer_name"]) for gone in metrics["missing"]}
    unscored = {(answer.task_id, answer.answer_name) for answer in table if answer.score is None}
    assert unscored <= listed
    assert sum(len(task["answers"]) for task in metrics["tasks"].values()) == len(table) - len(
        unscored
    )
