"""Trees of result files, and the scores that follow from their leaves."""

import json

import pytest
from rubrics import vectors

from mind2web2 import VerificationNode
from mind2web2.results.result_file import ResultFile
from mind2web2.rubric.tree_writing import tree_as_dict
from mind2web2.rubric.verdicts import Outcome, aggregate

LEAF = {
    "id": "a",
    "desc": "",
    "critical": False,
    "score": 1.0,
    "status": "passed",
    "strategy": "parallel",
}


def read(tree):
    """Return the tree of a result with this one."""
    return ResultFile.of({"eval_breakdown": [{"verification_tree": tree}]}).sound_tree


def described(tree):
    """Return a tree of the vectors as results have it."""
    return {
        **tree,
        "desc": "",
        "children": [described(child) for child in tree["children"]],
    }


def test_scores_follow_from_the_leaves():
    """The conformance cases give their scores, whatever the inner nodes claim to be."""
    for case in vectors("tree.json"):
        root = read(described(case["input"]))
        outcomes = aggregate(root)
        assert outcomes[id(root)].score == pytest.approx(case["expected_score"], abs=1e-6), case[
            "name"
        ]
        expected = [
            (node["id"], pytest.approx(node["score"], abs=1e-6), node["status"])
            for node in _nodes(case["expected"])
        ]
        assert expected == [(node.id, *outcomes[id(node)]) for node in root.walk()], case["name"]


def _nodes(tree):
    yield tree
    for child in tree["children"]:
        yield from _nodes(child)


def test_a_written_tree_is_what_was_scored():
    root = VerificationNode(id="root", desc="", strategy="sequential")
    for name, score, status in (
        ("a", 1.0, "passed"),
        ("b", 0.0, "failed"),
        ("c", 1.0, "passed"),
    ):
        root.add_node(VerificationNode(id=name, desc="", score=score, status=status))
    root.compute_score(mutate=True)
    found = read(json.loads(json.dumps(tree_as_dict(root))))
    verdicts = [Outcome(1.0, "passed"), Outcome(0.0, "failed"), Outcome(1.0, "passed")]
    assert [node.verdict for node in found.children] == verdicts
    assert aggregate(found)[id(found)] == Outcome(root.score, root.status)


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        (0.25, 1.0),
        (0, 1.0),
        (1, None),
        (1 - 1e-12, None),
        (10**400, None),
        (float("nan"), None),
        ("1", None),
    ],
)
def test_a_score_is_compared_with_the_tree(score, expected):
    """Rounding aside; neither an invalid score nor a missing tree contradicts anything."""
    for tree, by_tree in ((LEAF, expected), ({"id": "a"}, None), (None, None)):
        result = ResultFile.of(
            {"final_score": score, "eval_breakdown": [{"verification_tree": tree}]}
        )
        assert result.other_score_by_tree == by_tree


def test_a_tree_of_any_depth_is_read():
    """Files have no limit that the tree itself does not have."""
    tree = {**LEAF, "children": []}
    for _ in range(20_000):
        tree = {**LEAF, "children": [tree]}
    root = read(tree)
    assert aggregate(root)[id(root)] == Outcome(1.0, "passed")


@pytest.mark.parametrize(
    "tree",
    [
        None,
        [],
        {**LEAF, "score": "1"},
        {**LEAF, "score": 2},
        {**LEAF, "status": "fine"},
        {**LEAF, "strategy": "any"},
        {**LEAF, "critical": 0},
        {**LEAF, "id": 1},
        {**LEAF, "children": {}},
        {**LEAF, "children": [LEAF, 1]},
        {**LEAF, "superseded": 1},
    ],
)
def test_no_score_follows_from_a_malformed_tree(tree):
    assert read(tree) is None
    parts = [{"verification_tree": LEAF}, {"verification_tree": LEAF}]
    for breakdown in ([{"verification_tree": tree}], parts, [{}], [1], [], None):
        assert ResultFile.of({"eval_breakdown": breakdown}).score_by_tree is None
