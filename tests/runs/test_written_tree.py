"""Trees of result files, and the scores that follow from their leaves."""

import json

import pytest
from rubrics import vectors

from mind2web2 import VerificationNode
from mind2web2.rubric.aggregation import Outcome, aggregate
from mind2web2.rubric.summary import tree_as_dict
from mind2web2.runs.reader import (
    TreeShapeError,
    only_tree,
    other_score_by_tree,
    written_tree,
)

LEAF = {"id": "a", "desc": "", "critical": False, "score": 1.0, "status": "passed", "strategy": "parallel"}


def described(tree):
    """Return a tree of the vectors as results have it."""
    return {**tree, "desc": "", "children": [described(child) for child in tree["children"]]}


@pytest.mark.parametrize("case", vectors("tree.json"), ids=lambda case: case["name"])
def test_scores_follow_from_the_leaves(case):
    """As the conformance cases have it, whatever the inner nodes claim to be."""
    tree = described(case["input"])
    root = written_tree(tree)
    outcomes = aggregate(root)
    assert outcomes[id(root)].score == pytest.approx(case["expected_score"], abs=1e-6)
    expected = [(node["id"], node["score"], node["status"]) for node in _nodes(case["expected"])]
    found = [(node.id, *outcomes[id(node)]) for node in root.walk()]
    assert [(name, pytest.approx(score, abs=1e-6), status) for name, score, status in expected] == found


def _nodes(tree):
    yield tree
    for child in tree["children"]:
        yield from _nodes(child)


def test_a_written_tree_is_what_was_scored():
    """Also behind the end of a sequence, where the file keeps what was superseded."""
    root = VerificationNode(id="root", desc="", strategy="sequential")
    for name, score, status in (("a", 1.0, "passed"), ("b", 0.0, "failed"), ("c", 1.0, "passed")):
        root.add_node(VerificationNode(id=name, desc="", score=score, status=status))
    root.compute_score(mutate=True)
    read = written_tree(json.loads(json.dumps(tree_as_dict(root))))
    assert [node.verdict for node in read.children] == [
        Outcome(1.0, "passed"),
        Outcome(0.0, "failed"),
        Outcome(1.0, "passed"),
    ]
    assert [aggregate(read)[id(node)] for node in read.walk()] == [node.shown for node in read.walk()]


@pytest.mark.parametrize(
    ("score", "expected"),
    [(0.25, 1.0), (0, 1.0), (1, None), (1 - 1e-12, None), (10**400, None), (float("nan"), None), ("1", None)],
)
def test_a_score_is_held_against_the_tree(score, expected):
    """Rounding aside; what is no score contradicts nothing, nor does one without a readable tree."""
    for tree, by_tree in ((LEAF, expected), ({"id": "a"}, None), (None, None)):
        found = other_score_by_tree({"final_score": score, "eval_breakdown": [{"verification_tree": tree}]})
        assert found == by_tree


def test_a_tree_of_any_depth_is_read():
    """Files are no place for a limit that the tree itself does not have."""
    tree = {**LEAF, "children": []}
    for _ in range(20_000):
        tree = {**LEAF, "children": [tree]}
    root = written_tree(tree)
    assert aggregate(root)[id(root)] == Outcome(1.0, "passed")


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (None, "the root is no node"),
        ([], "the root is no node"),
        ({**LEAF, "score": "1"}, "the root 'a' is no node: score"),
        ({**LEAF, "status": "fine"}, "the root 'a' is no node: status"),
        ({**LEAF, "strategy": "any"}, "the root 'a' is no node: strategy"),
        ({**LEAF, "id": 1}, "the root is no node: id"),
        ({**LEAF, "children": {}}, "children of 'a' are no list"),
        ({**LEAF, "children": [LEAF, 1]}, "a child of 'a' is no node"),
        ({**LEAF, "evidence": {"decided_by": "me"}}, "the root 'a' is no node: decided_by"),
        ({**LEAF, "superseded": 1}, "the root 'a' is no node: superseded"),
    ],
)
def test_what_is_no_tree_is_said_to_be_none(tree, message):
    """With the place where it is not one."""
    with pytest.raises(TreeShapeError, match=message):
        written_tree(tree)


@pytest.mark.parametrize(
    ("parts", "tree"),
    [
        ([{"verification_tree": 1}], 1),
        ([{}], None),
        ([{"verification_tree": 1}, {"verification_tree": 2}], None),
        ([1], None),
        ([], None),
        (None, None),
    ],
)
def test_a_result_has_one_tree(parts, tree):
    """Of none or several no score follows."""
    assert only_tree({"eval_breakdown": parts}) == tree
