"""Corrected means, compared with full enumeration of samples and by hand."""

import random
from statistics import fmean

import pytest

from mind2web2.statistics.correction import corrected_difference
from mind2web2.statistics.sampled_answers import (
    JudgedTwice,
    correct_by_answers,
    sampling_order,
)


def answers(exact):
    """Return 12 answers to 6 tasks of which some have exact scores, by number."""
    cheap = [0.1, 0.5, 0.3, 0.7, 0.9, 0.4, 0.2, 0.8, 0.6, 0.0, 1.0, 0.5]
    return [JudgedTwice(f"task_{n // 2}", value, exact.get(n)) for n, value in enumerate(cheap)]


def test_a_judge_that_errs_alike_everywhere_is_corrected_by_the_difference():
    whole = answers({})
    for drawn in ((0, 2, 4, 6, 8, 10), (1, 3, 5, 7, 9, 11), (0, 3, 4, 7, 9, 10)):
        found, weight = correct_by_answers(answers({n: whole[n].cheap * 0.5 for n in drawn}))
        assert weight == pytest.approx(0.5)
        assert found.estimate == pytest.approx(found.raw * 0.5)
    assert correct_by_answers(answers({n: one.cheap for n, one in enumerate(whole)}))[0].above == 0


@pytest.mark.parametrize(
    ("size", "exact_scores", "low", "high"),
    [
        # With 40 answers in all, 10 count as 10 / (1 - 10 / 40) = 13.3, and 20 as 40.
        (10, {}, 0.05 ** (1 / 13.333), 1.0),
        (20, {}, 0.05 ** (1 / 40), 1.0),
        # Wilson's interval of one in 20 with the weight of 40.
        (20, {3: 0.0}, 0.835, 1.0),
        (40, {3: 0.0}, 0.975, 0.975),
    ],
)
def test_scores_that_are_all_alike_leave_room_for_others(size, exact_scores, low, high):
    """The interval of a sample has a width, as other answers may be unlike it.

    That of all has none.
    """
    exact = dict.fromkeys(range(size), 1.0) | exact_scores
    found, _ = correct_by_answers([JudgedTwice(f"task_{n}", 1.0, exact.get(n)) for n in range(40)])
    assert found.these_tasks.low == pytest.approx(low, abs=0.001)
    assert found.these_tasks.high == pytest.approx(high)


def test_tasks_that_are_all_alike_leave_room_for_others_at_large():
    """The better judge scored every answer, so that nothing is open for these tasks."""
    found, _ = correct_by_answers([JudgedTwice(f"task_{n}", 1.0, 1.0) for n in range(40)])
    assert found.these_tasks.low == 1
    assert found.tasks_at_large.low == pytest.approx(0.05 ** (1 / 40))
    alike = corrected_difference(found, found).tasks_at_large
    assert -0.1 < alike.low < 0 < alike.high < 0.1


@pytest.mark.parametrize(("tasks", "size", "wrong"), [(40, 10, 0.1), (130, 26, 0.05)])
def test_intervals_of_rare_wrong_passes_hold(tasks, size, wrong):
    """The interval holds in 93 of 100 samples, also where most show no wrong pass or one."""
    held = 0
    for seed in range(100):
        chance = random.Random(seed)
        exact = [float(chance.random() >= wrong) for _ in range(tasks)]
        drawn = set(chance.sample(range(tasks), size))
        found, _ = correct_by_answers(
            [
                JudgedTwice(f"task_{n}", 1.0, score if n in drawn else None)
                for n, score in enumerate(exact)
            ]
        )
        held += found.these_tasks.low <= fmean(exact) <= found.these_tasks.high
    assert held >= 93


def test_scores_of_all_answers_by_the_better_judge_are_the_mean():
    exact = [0.3, 0.1, 0.9, 0.4, 0.6, 0.2, 0.8, 0.5, 0.5, 0.2, 0.7, 1.0]
    found, _ = correct_by_answers(answers(dict(enumerate(exact))))
    assert (found.estimate, found.below) == (pytest.approx(fmean(exact)), 0)


def test_a_judge_of_no_use_has_no_weight():
    """The mean is that of the sample."""
    found, weight = correct_by_answers(
        answers(dict.fromkeys((0, 4, 8), 0.2) | dict.fromkeys((3, 7, 11), 0.6))
    )
    assert weight < 0.6
    found, weight = correct_by_answers(answers({0: 0.9, 3: 0.3, 4: 0.1, 7: 0.2, 9: 0.8, 11: 0.4}))
    assert weight == 0
    assert found.estimate == pytest.approx(fmean((0.9, 0.3, 0.1, 0.2, 0.8, 0.4)))


def test_a_sample_takes_tasks_in_turn():
    """Each round has one answer of each task, the same for one seed."""
    names = [(f"task_{n % 5}", f"answer_{n // 5}") for n in range(15)]
    order = sampling_order(names, seed=1)
    assert sorted(order) == sorted(names)
    assert all(len({task for task, _ in order[start : start + 5]}) == 5 for start in (0, 5, 10))
    assert order == sampling_order(names[::-1], seed=1) != sampling_order(names, seed=2)


def test_more_answers_bring_the_interval_to_its_reach():
    """Half the reach takes about four times as many answers."""
    exact = dict(zip((0, 3, 4, 7, 9, 10), (0.3, 0.1, 0.9, 0.4, 0.6, 0.2), strict=True))
    found, _ = correct_by_answers(answers(exact))
    assert found.more_wanted(1.0) == 0
    assert 0 < found.more_wanted(0.01) <= 6
    assert found.to_halve == found.more_wanted(max(found.reach) / 2)
    large = [JudgedTwice(f"t{n}", 0.5, n % 2 if n < 40 else None) for n in range(4000)]
    assert 110 <= correct_by_answers(large)[0].to_halve <= 120


def test_differences_are_paired_by_task():
    """Two agents with the same judge's error: it cancels."""
    whole = answers({n: one.cheap / 2 for n, one in enumerate(answers({}))})
    first, _ = correct_by_answers(whole)
    found = corrected_difference(first, first)
    assert (
        found.value,
        found.these_tasks.low,
        found.these_tasks.high,
    ) == pytest.approx((0, 0, 0))
    other = correct_by_answers([JudgedTwice("other", 0.5, 0.5)])[0]
    with pytest.raises(ValueError, match="the tasks differ"):
        corrected_difference(first, other)
