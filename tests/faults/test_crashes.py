"""A few moments of kill -9; ``make faults`` has many more of them."""

from faults import crashes


def test_a_killed_evaluation_started_again_ends_as_an_undisturbed_one():
    """Every result and summary is the same, no stored judgment is asked again, nothing is in the way."""
    figures = crashes.evaluations(4, seed=11)
    assert figures.is_clean, figures
    assert (figures.answers, figures.without_result) == (4 * 9, 0)


def test_a_killed_export_started_again_is_whole():
    """And until then the older file is there, or none."""
    figures = crashes.exports(3, seed=5)
    assert figures.is_clean, figures
