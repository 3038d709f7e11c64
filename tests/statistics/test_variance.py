"""The components of scores' variance, against published figures."""

import pytest

from mind2web2.statistics.variance import nested_variance

# Calcium in turnip greens: four plants, three leaves of each, two determinations of each leaf.
TURNIPS = [
    [[3.28, 3.09], [3.52, 3.48], [2.88, 2.80]],
    [[2.46, 2.44], [1.87, 1.92], [2.19, 2.19]],
    [[2.77, 2.66], [3.74, 3.44], [2.55, 2.55]],
    [[3.78, 3.87], [4.07, 4.12], [3.31, 3.31]],
]


def test_components_are_those_of_snedecor_and_cochran():
    """Statistical Methods, 6th edition (1967), table 10.16.1."""
    found = nested_variance(TURNIPS)
    components = (found.between_tasks, found.between_runs, found.between_judgments)
    assert components == pytest.approx((0.3652, 0.1611, 0.0067), abs=6e-5)
    once = (0.3652 + (0.1611 + 0.0067) / 3) / 4
    assert found.of_mean() == pytest.approx(once, abs=1e-4)
    assert found.judge_share() == pytest.approx(0.0067 / 12 / once, abs=1e-4)


@pytest.mark.parametrize(
    ("scores", "components"),
    [
        ([[[0.0], [1.0]], [[1.0], [0.0]]], (0.0, 0.5, None)),
        ([[[0.0]], [[1.0]]], (0.5, None, None)),
        ([[[0.0, 1.0]], [[1.0, 0.0]]], (0.0, None, 0.5)),
        ([[[0.0, 0.0], [1.0]], [[1.0, 1.0], [1.0]]], (0.0, 0.25, 0.0)),
    ],
)
def test_components_that_the_data_lacks_are_unknown(scores, components):
    """Single runs and single judgments show no variance of their own; gaps do not matter."""
    found = nested_variance(scores)
    assert (
        found.between_tasks,
        found.between_runs,
        found.between_judgments,
    ) == pytest.approx(components)
    assert nested_variance(scores[:1]) is None
