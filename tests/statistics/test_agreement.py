"""How far two raters agree, against figures worked out by hand."""

import pytest

from mind2web2.statistics.agreement import (
    Cells,
    coefficient,
    figures_of,
    share_by_task,
)
from mind2web2.statistics.paired import UNKNOWN, cohen_kappa, gwet_ac1
from mind2web2.statistics.uncertainty import MIN_TASKS


def cells(both_pass, first_only, second_only, both_fail):
    """Return a task with so many leaves of each kind."""
    counted = Cells()
    for pair, count in {
        (True, 1): both_pass,
        (True, 0): first_only,
        (False, 1): second_only,
        (False, 0): both_fail,
    }.items():
        for _ in range(count):
            counted.add(*pair)
    return counted


def test_a_leaf_may_be_passed_by_a_share_of_the_second_side():
    counted = Cells()
    counted.add(True, 0.75)
    counted.add(False, 0.25)
    assert counted.counts == [0.75, 0.25, 0.25, 0.75]


def test_figures_of_tasks_that_are_all_alike():
    """20 leaves each: 9 pass by either side, 18 have the same verdict."""
    found = figures_of({f"task_{number}": cells(8, 1, 1, 10) for number in range(10)})
    assert found.agreement.value == pytest.approx(0.9)
    # Chance agrees in .45² + .55² = .505, and by Gwet in 2 · .45 · .55 = .495.
    kappa, ac1 = 0.395 / 0.495, 0.405 / 0.505
    assert (found.kappa.value, found.ac1.value) == pytest.approx((kappa, ac1))
    assert found.wrong_passes.value == pytest.approx(1 / 9)
    assert found.wrong_failures.value == pytest.approx(1 / 11)


def test_coefficients_vary_with_the_tasks():
    tasks = [cells(8, 1, 1, 10), cells(9, 0, 0, 11), cells(6, 3, 2, 9)] * 3
    found = figures_of({str(number): own for number, own in enumerate(tasks)})
    for each in (found.kappa, found.ac1):
        assert each.low < each.value < each.high
        assert 0.1 < each.high - each.low < 0.5


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        # No task differs: as many items as tasks, 10 · (1.96 / 2.262)² = 7.507 of them.
        ([(9.0, 10.0)] * 10, (0.9, 0.543692, 0.985503)),
        # 2/3 · 1/3 / (3.333 · 6/5 / 12²) = 8 items. The variance is that of 2.941 tasks by
        # Satterthwaite, so that it has √(5 · 2.941) = 3.835 degrees of freedom, and 8 · (1.96 /
        # 2.824)² = 3.853.
        (
            [(1, 2), (2, 2), (0, 2), (2, 2), (1, 2), (2, 2), (0, 0)],
            (2 / 3, 0.240234, 0.926742),
        ),
    ],
)
def test_a_share_has_wilsons_interval_for_the_tasks(rows, expected):
    found = share_by_task(rows)
    assert (found.value, found.low, found.high) == pytest.approx(expected, abs=1e-5)


def test_few_tasks_have_no_interval_and_none_have_no_share():
    few = share_by_task([(1, 2)] * (MIN_TASKS - 1))
    assert (few.value, few.low, few.high) == (0.5, None, None)
    assert share_by_task([(1, 2)] * MIN_TASKS).low is not None
    assert share_by_task([(0, 0)]) == UNKNOWN
    assert set(vars_of(figures_of({}))) == {UNKNOWN}


def vars_of(figures):
    """Return all figures."""
    return [getattr(figures, name) for name in figures.__slots__]


@pytest.mark.parametrize("measure", [cohen_kappa, gwet_ac1])
@pytest.mark.parametrize(("sums", "expected"), [([7, 0, 0, 0], 1.0), ([0, 0, 0, 7], 1.0)])
def test_raters_with_one_verdict_for_all_agree(measure, sums, expected):
    """Beyond chance nothing is known; without a disagreement it counts as full agreement."""
    assert coefficient(measure)(sums) == expected
