"""How children make up their parent: the three rules and the statuses, on plain values."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mind2web2.rubric.node import VerificationNode
from mind2web2.rubric.verdicts import Outcome, aggregate, end_sequence, gate_then_average

PASSED, FAILED = Outcome(1.0, "passed"), Outcome(0.0, "failed")
SKIPPED, OPEN = Outcome(0.0, "skipped"), Outcome(0.0, "initialized")
HALF = Outcome(0.5, "partial")
OUTCOMES = st.lists(st.sampled_from([PASSED, FAILED, SKIPPED, OPEN, HALF]), min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("children", "expected"),
    [
        ([PASSED, PASSED], [PASSED, PASSED]),
        ([PASSED, FAILED, PASSED, HALF], [PASSED, FAILED, SKIPPED, SKIPPED]),
        ([HALF, PASSED], [HALF, SKIPPED]),
        ([OPEN, PASSED, FAILED], [OPEN, SKIPPED, SKIPPED]),
        ([PASSED, FAILED], [PASSED, FAILED]),
        ([], []),
    ],
)
def test_the_first_shortfall_ends_a_sequence(children, expected):
    """The child that falls short keeps its outcome; all behind it are skipped."""
    assert end_sequence(children) == expected


@pytest.mark.parametrize(
    ("children", "critical", "expected"),
    [
        ([PASSED, FAILED], "nn", Outcome(0.5, "partial")),
        ([PASSED, HALF], "nn", Outcome(0.75, "partial")),
        ([PASSED, PASSED], "nn", PASSED),
        ([PASSED, PASSED], "cc", PASSED),
        ([PASSED], "c", PASSED),
        ([PASSED, FAILED], "cn", FAILED),
        ([PASSED, SKIPPED], "cn", SKIPPED),
        ([FAILED, PASSED], "cn", FAILED),
        ([HALF, PASSED], "cn", SKIPPED),
        ([OPEN, PASSED], "cn", SKIPPED),
        ([PASSED, HALF, FAILED, PASSED], "cnnc", Outcome(0.25, "partial")),
        ([SKIPPED, FAILED], "nn", FAILED),
        ([OPEN, OPEN], "nn", SKIPPED),
        ([SKIPPED, SKIPPED], "nn", SKIPPED),
    ],
)
def test_critical_children_gate_and_the_others_are_averaged(children, critical, expected):
    """Critical children never enter the average; any of them below 1.0 closes the gate."""
    assert gate_then_average(children, [letter == "c" for letter in critical]) == expected


@given(OUTCOMES, st.data())
@settings(deadline=None)
def test_a_better_child_never_lowers_the_score(children, data):
    """Raising one child to passed raises the parent's score or leaves it, under both strategies."""
    critical = data.draw(st.lists(st.booleans(), min_size=len(children), max_size=len(children)))
    place = data.draw(st.integers(0, len(children) - 1))
    better = [*children[:place], PASSED, *children[place + 1 :]]
    for ordered in (list, end_sequence):
        before = gate_then_average(ordered(children), critical).score
        assert before <= gate_then_average(ordered(better), critical).score


def test_a_critical_child_behind_the_shortfall_closes_the_gate():
    """The gate looks at scores after the sequence was ended (scoring.md)."""
    leaves = [(0.5, "partial", False), (1.0, "passed", True)]
    children = [
        VerificationNode(id=f"n{place}", desc="", score=score, status=status, critical=critical)
        for place, (score, status, critical) in enumerate(leaves)
    ]
    root = VerificationNode(id="root", desc="", strategy="sequential", children=children)
    assert aggregate(root)[id(root)] == SKIPPED
    root.strategy = "parallel"
    assert aggregate(root)[id(root)] == Outcome(0.5, "partial")


@pytest.mark.parametrize("critical", [[], [False], [True], [False] * 3])
def test_every_child_is_critical_or_not(critical):
    """A flag too few or too many is an error, never a score of some of the children."""
    with pytest.raises(ValueError, match="argument 2"):
        gate_then_average([PASSED, FAILED], critical)


def test_aggregating_writes_nothing():
    """Outcomes are handed back by node; the nodes stay as they are."""
    leaf = VerificationNode(id="leaf", desc="", score=1.0, status="passed")
    root = VerificationNode(id="root", desc="", children=[leaf])
    assert aggregate(root) == {id(root): PASSED, id(leaf): PASSED}
    assert (root.score, root.status) == (0.0, "initialized")


@pytest.mark.parametrize(
    ("outcome", "blocks"), [(FAILED, True), (SKIPPED, True), (PASSED, False), (OPEN, False)]
)
def test_failed_and_skipped_leaves_block(outcome, blocks):
    """What is not decided yet does not (eval-scripts.md)."""
    assert outcome.blocks is blocks
