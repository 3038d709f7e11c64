"""The intervals of an agent's metrics: tasks are drawn with all their answers."""

import random

import pytest

from mind2web2.analysis.metrics import agent_metrics
from mind2web2.analysis.sampled_metrics import metric_intervals, sample_metrics
from mind2web2.analysis.score_matrix import score_grid
from mind2web2.results.scored_answer import ScoredAnswer
from mind2web2.statistics.uncertainty import bootstrap_intervals

NAMES = [
    "avg_score",
    "success_rate",
    "pass_at_3",
    "avg_answer_word_count",
    "avg_time_seconds",
]


def scored(task, run, score, words=100, time_s=None):
    """Return an answer to task ``task_<n>``."""
    return ScoredAnswer(f"task_{task}", f"answer_{run}.md", score, words, time_s)


def agent(tasks=12, runs=(1, 2, 3), seed=1):
    """Return answers with scores by chance."""
    draws = random.Random(seed)
    return [
        scored(
            task,
            run,
            draws.choice([0.0, 0.5, 1.0]),
            draws.randint(100, 900),
            draws.uniform(60, 600),
        )
        for task in range(tasks)
        for run in runs
    ]


def intervals(answers, task_ids=None):
    """Return the intervals of these answers' metrics."""
    return metric_intervals(score_grid(answers, task_ids))


def test_every_metric_has_its_interval():
    summary = agent_metrics("bot", agent()).as_json()
    found = summary["intervals"]["metrics"]
    assert list(found) == NAMES
    for name in NAMES:
        assert found[name]["low"] < summary[name] < found[name]["high"]
        assert (found[name]["tasks"], found[name]["reason"]) == (12, None)


def test_the_same_run_again_is_no_new_knowledge():
    """Answers of a task stay together: three equal ones tell as much as one."""
    once = agent(runs=(1,))
    thrice = [scored(answer.task_id[5:], run, answer.score) for answer in once for run in (1, 2, 3)]
    assert intervals(thrice)["avg_score"] == intervals(once)["avg_score"]
    assert intervals(thrice)["pass_at_3"].interval == intervals(once)["pass_at_1"].interval


@pytest.mark.parametrize("drop", [[], [0], [0, 5, 19, 33]], ids=["complete", "one gap", "gaps"])
@pytest.mark.parametrize("has_list", [False, True])
def test_what_is_resampled_is_what_is_published(drop, has_list):
    answers = [answer for number, answer in enumerate(agent()) if number not in drop]
    task_ids = [f"task_{number}" for number in range(14)] if has_list else None
    summary = agent_metrics("bot", answers, task_ids).as_json()
    for name, metric in sample_metrics(score_grid(answers, task_ids)).items():
        value = metric.over(list(metric.values)).value
        assert value == pytest.approx(summary[name], abs=0.06 if metric.digits == 1 else 6e-5)


def test_a_run_that_was_not_drawn_does_not_count():
    """The other runs' mean stands for all."""
    answers = [*agent(runs=(1,)), scored(0, 2, 1.0)]
    metric = sample_metrics(score_grid(answers))["avg_score"]
    statistic = metric.over(list(metric.values)).statistic
    assert statistic([3.0, 6, 0.0, 0]) == 0.5
    assert statistic([3.0, 6, 1.0, 1]) == 0.75


def test_gaps_widen_the_interval():
    """Half the answers of a run tell less."""
    answers = agent(tasks=40, runs=(1, 2))
    gaps = [answer for number, answer in enumerate(answers) if number % 4 != 3]
    whole, part = (intervals(given)["avg_score"].interval for given in (answers, gaps))
    assert part.high - part.low > whole.high - whole.low


@pytest.mark.parametrize(
    ("tasks", "reason"),
    [
        (0, "no value is known"),
        (1, "too few tasks: 1, 6 are needed"),
        (5, "too few tasks: 5, 6 are needed"),
        (6, None),
    ],
)
def test_few_tasks_have_no_interval(tasks, reason):
    found = intervals([scored(task, 1, task % 2) for task in range(tasks)])
    name = "pass_at_1" if tasks else "pass_at_0"
    assert (found[name].reason, found[name].interval is None) == (
        reason,
        reason is not None,
    )
    assert found["avg_time_seconds"].reason == "no value is known"


def test_metrics_of_few_known_values_have_none():
    """Each by the tasks that it has values of."""
    answers = [
        scored(task, 1, task % 2, time_s=float(task) if task < 4 else None) for task in range(9)
    ]
    found = intervals(answers)
    assert found["avg_score"].tasks == 9
    assert (found["avg_time_seconds"].tasks, found["avg_time_seconds"].interval) == (
        4,
        None,
    )


def test_equal_tasks_have_no_interval_but_limits_are_exact():
    """Nothing passed is not nothing to come.

    Half a point everywhere says nothing of other tasks.
    """
    found = intervals([scored(task, 1, 0.5) for task in range(20)])
    assert (found["avg_score"].interval, found["avg_score"].reason) == (
        None,
        "all tasks have the same value",
    )
    assert found["success_rate"].interval.low == 0
    assert found["success_rate"].interval.high == pytest.approx(0.1684, abs=1e-4)
    assert found["avg_answer_word_count"].interval is None


def test_a_task_list_brings_its_zeros():
    """Tasks without an answer are drawn like others."""
    task_ids = [f"task_{number}" for number in range(24)]
    found = intervals(agent(), task_ids)
    assert found["avg_score"].tasks == found["pass_at_3"].tasks == 24
    assert found["avg_score"].interval.high < intervals(agent())["avg_score"].interval.high
    assert found["avg_answer_word_count"].tasks == 12


def test_the_interval_of_one_run_is_the_plain_bootstrap():
    answers = agent(runs=(1,))
    rows = [(answer.score, 1) for answer in answers]
    [expected] = bootstrap_intervals(rows, [(lambda sums: sums[0] / sums[1], (0.0, 1.0))])
    assert intervals(answers)["avg_score"].interval == expected
