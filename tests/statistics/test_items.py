"""Item analysis of tables of verdicts, against figures worked out by hand."""

import pytest

from mind2web2.statistics.items import (
    counts_of,
    labels_of,
    rest_correlation,
    task_figures,
    twins,
)

VERDICTS = {
    "p": "passed",
    "f": "failed",
    "s": "skipped",
    "u": "undecided",
    "a": "absent",
}


def of(letters):
    """Return verdicts by their first letters."""
    return [VERDICTS[letter] for letter in letters]


@pytest.mark.parametrize(
    ("letters", "matters", "labels"),
    [
        ("ppf", [True, True, False], []),
        ("ppp", [True, False, False], ["always true"]),
        ("fsf", [False, True], ["always false"]),
        ("ssa", [], ["never reached"]),
        ("pf", [False, False], ["dead"]),
        ("ppu", [False, False], ["always true", "dead"]),
    ],
)
def test_a_leaf_that_tells_nothing_is_named(letters, matters, labels):
    """By its verdicts, and whether any of them decided a score."""
    assert labels_of(counts_of(of(letters)), matters) == labels


def test_counts_keep_verdicts_apart():
    """Skipped leaves were not reached, and those that a tree lacks are none of its."""
    counts = counts_of(of("ppfsua"))
    assert (
        counts.passed,
        counts.failed,
        counts.skipped,
        counts.undecided,
        counts.absent,
    ) == (2, 1, 1, 1, 1)
    assert counts.reached == 3


def test_twins_have_the_same_verdict_everywhere():
    """Leaves that never vary are alike by themselves."""
    table = {
        "a": of("pfp"),
        "b": of("pfp"),
        "c": of("ppf"),
        "d": of("ppp"),
        "e": of("ppp"),
        "f": of("pfs"),
    }
    assert twins(table) == [("a", "b")]


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


def test_figures_of_tasks():
    """Saturated tasks tell nothing; the others' parts of the variance between agents sum to 1."""
    figures = task_figures(
        {
            "easy": {"a": [1.0, 1.0], "b": [1.0, 1.0]},
            "hard": {"a": [0.0, 0.0], "b": [0.0, 0.0]},
            "telling": {"a": [1.0, 0.8], "b": [0.2, 0.0]},
            "noisy": {"a": [1.0, 0.0], "b": [0.5, 0.1]},
            "alone": {"a": [0.5]},
        }
    )
    assert [name for name, found in figures.items() if found.saturated] == [
        "easy",
        "hard",
    ]
    assert figures["telling"].discrimination == pytest.approx(0.8)
    # Sums of squares: 0.64 between, 0.04 within.
    assert figures["telling"].between_agents == pytest.approx(0.64 / 0.68)
    assert figures["easy"].between_agents is None
    assert (figures["alone"].discrimination, figures["alone"].variance_share) == (
        None,
        None,
    )
    shares = [found.variance_share or 0 for found in figures.values()]
    assert sum(shares) == pytest.approx(1)
    assert figures["telling"].variance_share == pytest.approx(0.64 / (0.64 + 0.04))
