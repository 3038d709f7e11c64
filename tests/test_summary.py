"""A rubric tree as plain data, and its statistics."""

import json

from hypothesis import given
from rubrics import EDITS, Shadow, apply_edit

from mind2web2.evidence import Evidence, PageCheck, Vote
from mind2web2.summary import tree_as_dict, tree_statistics
from mind2web2.verification_tree import VerificationNode


def node(node_id, **fields):
    """Return a node whose description does not matter."""
    return VerificationNode(id=node_id, desc=f"about {node_id}", **fields)


def test_a_lone_root_is_a_leaf():
    """One level, one node."""
    root = node("root")
    assert tree_statistics(root) == {"depth": 1, "total_nodes": 1, "leaf_nodes": 1}
    assert tree_as_dict(root) == {
        "id": "root",
        "desc": "about root",
        "critical": False,
        "score": 0.0,
        "status": "initialized",
        "strategy": "parallel",
        "children": [],
    }


def test_levels_are_counted_along_the_longest_branch():
    """Wherever that is."""
    deep = node("a", children=[node("b", children=[node("c")]), node("d")])
    root = node("root", children=[node("x"), deep, node("y")])
    assert tree_statistics(root) == {"depth": 4, "total_nodes": 7, "leaf_nodes": 4}


def test_evidence_is_written_without_what_goes_without_saying():
    """Empty fields are left out; what is there is plain data."""
    vote = Vote(trial=1, supported=False, reasoning="r")
    check = PageCheck(url="https://a.example", outcome="not_supported", votes=(vote,))
    leaf = node("leaf")
    leaf.decide(0.0, "failed", Evidence(decided_by="judge", claim="c", pages=(check,)))
    assert tree_as_dict(leaf)["evidence"] == {
        "decided_by": "judge",
        "claim": "c",
        "pages": [
            {
                "url": "https://a.example",
                "outcome": "not_supported",
                "votes": [{"trial": 1, "supported": False, "reasoning": "r"}],
            }
        ],
    }


def test_a_superseded_verdict_is_told():
    """A leaf behind the end of a sequence shows what it was before."""
    late = node("late", score=1.0, status="passed")
    root = node("root", strategy="sequential", children=[node("first", status="failed"), late])
    root.compute_score(mutate=True)
    first, shown = tree_as_dict(root)["children"]
    assert "superseded" not in first
    assert (shown["status"], shown["score"]) == ("skipped", 0.0)
    assert (shown["superseded"]["status"], shown["superseded"]["score"]) == ("passed", 1.0)


@given(EDITS)
def test_any_tree_is_written_whole(edits):
    """Every node with its fields, in order, as JSON can hold it; the statistics agree."""
    root = Shadow(VerificationNode(id="root", desc="root"))
    for number, edit in enumerate(edits):
        apply_edit(root, number, edit)
    root.real.compute_score(mutate=True)
    written = json.loads(json.dumps(tree_as_dict(root.real)))
    pairs = [(root, written)]
    for shadow, plain in pairs:
        for field in ("id", "desc", "critical", "score", "status", "strategy"):
            assert plain[field] == getattr(shadow.real, field)
        pairs += zip(shadow.children, plain["children"], strict=True)
    statistics = tree_statistics(root.real)
    assert (statistics["total_nodes"], statistics["leaf_nodes"]) == (len(pairs), len(root.leaves()))
