"""A few kills and rounds of several processes over the same folders.

``make faults`` has many more.
"""

import pytest
from faults import crashes, processes

TASKS = ("museum_saturday",)
ANSWERS = 3 * len(TASKS)


@pytest.fixture(scope="module")
def example(commands):
    """Return a task of the example, to be evaluated by processes, and its undisturbed results."""
    with crashes.evaluating(commands, TASKS) as run:
        yield run, run.undisturbed()


def test_a_killed_evaluation_started_again_ends_as_an_undisturbed_one(example):
    """Every result and summary is the same.

    No stored judgment is asked again, and nothing is in the way.
    """
    figures = crashes.killed_evaluations(*example, moments=2, seed=11)
    assert figures.is_clean, figures
    assert (figures.answers, figures.without_result) == (2 * ANSWERS, 0)


def test_two_evaluations_of_one_agent_share_the_work(example):
    """No answer is judged twice and no question paid for twice.

    This holds also where one of the evaluations is killed.
    """
    figures = processes.evaluated_twice(*example, rounds=2, seed=3)
    assert figures.is_clean, figures
    assert (figures.answers, figures.without_result) == (2 * ANSWERS, 0)


@pytest.mark.long
def test_a_killed_caching_run_started_again_ends_as_an_undisturbed_one(commands):
    """Every page that the index lists is whole, and no stored page is captured again."""
    figures = crashes.cachings(1, seed=9, pages=4, opened=commands)
    assert figures.is_clean, figures


@pytest.mark.long
def test_an_evaluation_beside_a_caching_run(commands):
    """Each page is there once and whole, and is still what was judged."""
    figures = processes.beside_caching(1, seed=1, opened=commands)
    assert figures.is_clean, figures
    assert figures.answers == 1
