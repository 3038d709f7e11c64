"""Leaves that contradict each other."""

import pytest
from viewer.made_results import leaf

from mind2web2.results.opposite_verdicts import TwinVerdicts, opposite_verdicts
from mind2web2.rubric.written_tree import WrittenNode

LONG = "The Kettle Bridge is 340 m long."


@pytest.mark.parametrize(
    ("claim", "is_found", "is_same_claim"),
    [
        ("the Kettle Bridge is  340 m long", True, True),
        ("The length of the Kettle Bridge is 340 m.", True, False),
        ("The Harrow Bridge is 340 m long.", False, False),
        ("The Kettle Bridge is 350 m long.", False, False),
        ("The Kettle Bridge is not 340 m long.", False, False),
        ("The Kettle Bridge is less than 340 m long.", False, False),
    ],
)
def test_leaves_that_say_the_same_with_opposite_verdicts_are_found(claim, is_found, is_same_claim):
    leaves = [leaf("one", LONG), leaf("other", claim, passed=False)]
    pairs = opposite_verdicts(map(WrittenNode.model_validate, leaves))
    assert len(pairs) == is_found
    for pair in pairs:
        assert (pair.passed.leaf, pair.failed.leaf) == ("one", "other")
        assert pair.is_same_claim is is_same_claim


def test_verdicts_on_different_pages_do_not_contradict_each_other():
    leaves = [leaf("one", LONG), leaf("other", LONG, passed=False, url="https://other.example/")]
    assert opposite_verdicts(map(WrittenNode.model_validate, leaves)) == []


def test_answers_with_different_verdicts_on_the_same_claim_are_named():
    twins = TwinVerdicts()
    for answer, passed in (("answer_1", True), ("answer_2", False), ("answer_3", True)):
        twins.add("bridge", answer, [WrittenNode.model_validate(leaf("long", LONG, passed=passed))])
    assert twins.line() == (
        "1 claim about a page passed in one answer and failed in another "
        "(bridge/answer_1/long and bridge/answer_2/long)"
    )
