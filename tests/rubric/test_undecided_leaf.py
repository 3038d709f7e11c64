"""A leaf without a verdict yet, and what depends on it."""

from rubrics import blocking_leaf

from mind2web2.rubric.node import VerificationNode
from mind2web2.rubric.verdicts import Undecided


def node(node_id, **fields):
    """Return a node whose description does not matter."""
    return VerificationNode(id=node_id, desc=f"about {node_id}", **fields)


def undecided():
    """Return a root and its undecided leaf."""
    leaf = node("leaf")
    root = node("root", children=[node("first"), leaf])
    leaf.leave_undecided(Undecided())
    return root, leaf


def test_others_wait_for_it():
    root, leaf = undecided()
    root.add_node(after := node("after"))
    leaf.critical = True
    assert blocking_leaf(after) is leaf
    assert blocking_leaf(node("claim"), [root]) is leaf


def test_a_verdict_makes_it_a_leaf_like_any_other():
    root, leaf = undecided()
    leaf.decide(1.0, "passed")
    assert (leaf.undecided, blocking_leaf(node("claim"), [root])) == (None, None)
    assert leaf.status == "passed"
