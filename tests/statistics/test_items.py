"""Item analysis of tables of verdicts, against figures worked out by hand."""

import pytest

from mind2web2.statistics.items import rest_correlation


@pytest.mark.parametrize(
    ("item", "rest", "expected"),
    [
        ([True, True, False, False], [1.0, 0.8, 0.2, 0.0], 0.970143),  # numpy.corrcoef
        ([True, False, None, True], [0.0, 1.0, 0.5, 0.0], -1.0),
        ([True, True, True], [0.1, 0.2, 0.3], None),
        ([True, False, True], [0.5, 0.5, 0.5], None),
        ([True, False, None], [0.5, 0.1, 0.5], None),
    ],
)
def test_the_correlation_with_the_rest(item, rest, expected):
    found = rest_correlation(item, rest)
    assert found == (expected if expected is None else pytest.approx(expected, abs=1e-6))
