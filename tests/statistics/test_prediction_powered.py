"""PPI++ against figures of a published implementation."""

import pytest

from mind2web2.statistics.paired import UNKNOWN, Estimate, Labelled, ppi_mean

EXACT = [0.09, 0.24, 0.8, 0.58, 0.09, 0.43, 0.48, 0.16, 0.73, 0.11, 0.39, 0.52]
PREDICTED = [0.03, 0.11, 0.59, 0.5, 0.19, 0.38, 0.67, 0.12, 0.73, 0.42, 0.5, 0.42]
WEIGHTS = [1.94, 0.75, 1.32, 1.0, 1.43, 0.59, 0.56, 1.69, 1.7, 1.33, 2.04, 0.61]
UNLABELLED = [
    *(0.89, 0.59, 0.47, 0.77, 0.03, 0.71, 0.37, 0.09, 0.66, 0.93, 0.21, 0.63, 0.3, 0.74, 0.72),
    *(0.22, 0.83, 0.66, 0.68, 0.82, 0.43, 0.76, 0.88, 0.1, 0.85, 0.39, 0.48, 0.15, 0.7, 0.29),
]


def test_mean_and_interval_are_those_of_a_published_implementation():
    """ppi-python 0.2.3: ppi_mean_pointestimate and ppi_mean_ci(alpha=0.05)."""
    found, power = ppi_mean([Labelled(*item) for item in zip(EXACT, PREDICTED, strict=True)], UNLABELLED)
    assert found.value == pytest.approx(0.45146703)
    assert (found.low, found.high) == pytest.approx((0.34651798, 0.55641608))
    assert 0 < power < 1


def test_weighted_mean_is_that_of_a_published_implementation():
    """ppi-python 0.2.3, ppi_mean_pointestimate with w; its interval is not centred, ours is."""
    items = [Labelled(*item) for item in zip(EXACT, PREDICTED, WEIGHTS, strict=True)]
    assert ppi_mean(items, UNLABELLED)[0].value == pytest.approx(0.47474254)


def test_useless_predictions_are_ignored():
    """Then the mean is that of the labels."""
    found, power = ppi_mean([Labelled(exact, 0.5) for exact in EXACT], [0.5] * 30)
    assert power == 0
    assert found.value == pytest.approx(sum(EXACT) / len(EXACT))


def test_items_of_one_task_depend_on_each_other():
    """Copies of a task's items add nothing: the interval is no narrower."""
    items = [Labelled(*item) for item in zip(EXACT, PREDICTED, strict=True)]
    tasks, others = list(range(12)), list(range(12, 42))
    once = ppi_mean(items, UNLABELLED, (tasks, others))[0]
    copied = ppi_mean(items * 3, UNLABELLED * 3, (tasks * 3, others * 3))[0]
    assert (copied.value, copied.low, copied.high) == pytest.approx(
        (once.value, once.low, once.high), abs=0.002
    )
    alone = ppi_mean(items, UNLABELLED)[0]
    assert once.low < alone.low < alone.high < once.high
    few = ppi_mean(items, UNLABELLED, ([number % 5 for number in tasks], others))[0]
    assert few == Estimate(pytest.approx(alone.value))


def test_one_label_says_nothing():
    """Of the variance."""
    assert ppi_mean([Labelled(1, 1)], [1, 0])[0] == UNKNOWN
