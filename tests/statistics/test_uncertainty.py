"""Intervals of mean scores, against published figures."""

import random
from math import log
from statistics import fmean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind2web2.statistics.uncertainty import (
    MIN_TASKS,
    bootstrap_intervals,
    student_quantile,
    sums_of,
)

SHARE = (0.0, 1.0)


def interval(values, limits=SHARE, **settings):
    """Return the interval of the mean of one value a task."""
    return of_rows([(value, 1) for value in values], limits, **settings)


def of_rows(rows, limits=SHARE, **settings):
    """Return the interval of the mean of rows of a sum and a count."""
    [found] = bootstrap_intervals(rows, [(lambda sums: sums[0] / sums[1], limits)], **settings)
    return found


def passes(share):
    """Return a maker of tasks that are passed so often."""
    return lambda draws: float(draws.random() < share)


def three_runs(draws):
    """Return the mean of three runs of a task, which is easy for all of them or hard."""
    ease = draws.betavariate(0.5, 1.5)
    return fmean(float(draws.random() < ease) for _ in range(3))


def mixed(draws):
    """Return a score as rubrics give them: often 0, at times 1, else in between."""
    kind = draws.random()
    return 0.0 if kind < 0.4 else 1.0 if kind < 0.6 else draws.random()


@pytest.mark.parametrize(
    ("task", "mean", "tasks"),
    [
        pytest.param(passes(0.05), 0.05, 20, id="rare successes, few tasks"),
        pytest.param(passes(0.02), 0.02, 130, id="rare successes"),
        pytest.param(passes(0.4), 0.4, 40, id="successes"),
        pytest.param(three_runs, 0.25, 30, id="runs of a task alike"),
        pytest.param(mixed, 0.4, 12, id="scores, few tasks"),
        pytest.param(mixed, 0.4, 60, id="scores"),
    ],
)
def test_an_interval_holds_the_truth_as_often_as_it_says(task, mean, tasks):
    """Coverage over 200 samples of a known distribution is 95% within chance."""
    draws = random.Random(7)
    samples = [[task(draws) for _ in range(tasks)] for _ in range(200)]
    found = [interval(values, resamples=300) for values in samples]
    held = fmean(one.low <= mean <= one.high for one in found)
    assert held >= 0.92


def test_an_interval_is_no_wider_than_it_has_to_be():
    draws = random.Random(3)
    values = [mixed(draws) for _ in range(400)]
    found = interval(values)
    half = 1.966 * stdev(values) / len(values) ** 0.5
    assert (found.low, found.high) == pytest.approx(
        (fmean(values) - half, fmean(values) + half), abs=0.003
    )


def test_it_leans_towards_the_longer_tail():
    """The interval of two successes in a hundred is not symmetric."""
    found = interval([1.0] * 2 + [0.0] * 98)
    assert found.high - 0.02 > 0.02 - found.low > 0


def test_with_few_tasks_an_interval_is_students():
    """Resamples of few tasks spread too little, by sqrt((n - 1) / n).

    The values have a normal's tails.
    """
    values = [5 + sign * size for sign in (-1, 1) for size in (3.0, 0.7, 0.7, 0.7)]
    found = interval(values, None, resamples=50_000)
    half = 2.3646 * stdev(values) / len(values) ** 0.5
    assert (found.high - found.low) / 2 == pytest.approx(half, rel=0.03)


def test_an_interval_of_lopsided_values_reaches_further_to_their_long_side():
    """Second-order theory (Hall 1988) gives g (2 z^2 + 1) / 6 sqrt(n) for a skewness of g."""
    values = [-log(1 - (number + 0.5) / 20) for number in range(20)]
    found = interval(values, None, resamples=20_000)
    above, below = found.high - fmean(values), fmean(values) - found.low
    assert 1.5 < above / below < 2.2


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.0] * 130, (0.0, 0.0280)),
        ([1.0] * 130, (0.9720, 1.0)),
        ([0.0] * 6, (0.0, 0.4593)),
    ],
)
def test_all_or_none_is_no_certainty(values, expected):
    """The exact limits of Clopper and Pearson, where resampling would claim to know for sure."""
    found = interval(values)
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-4)
    assert found.is_exact


@pytest.mark.parametrize(
    ("values", "limits"),
    [
        pytest.param([0.5] * 50, SHARE, id="alike, between the limits"),
        pytest.param([0.1 + 0.2] * 50, SHARE, id="alike but for rounding"),
        pytest.param([300.0] * 50, None, id="alike, without limits"),
        pytest.param([0.0] * 50, None, id="nought, without limits"),
        pytest.param([0.0, 1.0] * 2 + [0.0], SHARE, id="five tasks"),
        pytest.param([0.5], SHARE, id="one task"),
        pytest.param([], SHARE, id="no task"),
    ],
)
def test_where_resampling_says_nothing_there_is_no_interval(values, limits):
    assert interval(values, limits) is None


def test_the_same_seed_gives_the_same_interval():
    draws = random.Random(5)
    values = [mixed(draws) for _ in range(60)]
    assert interval(values, seed=1) == interval(values, seed=1)
    again = interval(values, seed=2)
    assert again != interval(values, seed=1)
    assert again.low == pytest.approx(interval(values, seed=1).low, abs=0.01)


def test_these_numbers_stay():
    """An interval that was published is found again by any later version."""
    values = [number % 7 / 6 for number in range(40)]
    found = interval(values)
    assert (found.low, found.high) == pytest.approx((0.375, 0.5875))


@pytest.mark.parametrize(
    ("degrees", "expected"),
    [(5, 2.5706), (6, 2.4469), (9, 2.2622), (29, 2.0452), (129, 1.9785)],
)
def test_students_quantiles(degrees, expected):
    assert student_quantile(0.975, degrees) == pytest.approx(expected, abs=5e-4)
    assert student_quantile(0.025, degrees) == pytest.approx(-expected, abs=5e-4)


def test_ratios_are_resampled_whole():
    """A statistic of several sums: tasks with many values weigh more, and come with all of them."""
    rows = [
        (3.0, 3),
        (0.0, 1),
        (0.0, 2),
        (3.0, 3),
        (1.0, 1),
        (0.0, 2),
        (2.0, 4),
        (1.0, 2),
    ]
    found = of_rows(rows)
    assert sums_of(rows) == [10.0, 18]
    assert 0 < found.low < 10 / 18 < found.high < 1


@given(
    st.lists(
        st.integers(0, 6).map(lambda sixths: sixths / 6),
        min_size=MIN_TASKS,
        max_size=20,
    )
)
def test_an_interval_surrounds_its_metric(values):
    found = interval(values, resamples=200)
    mean = fmean(values)
    if found is None:
        assert len(set(values)) == 1
        return
    assert 0 <= found.low <= mean + 1e-9
    assert mean - 1e-9 <= found.high <= 1
