"""A leaf without a verdict yet: who may look at it, and what depends on it."""

import copy
import pickle

import pytest
from pydantic_core import to_jsonable_python

from mind2web2.rubric.node import Undecided, VerificationNode, first_block


def node(node_id, **fields):
    """Return a node whose description does not matter."""
    return VerificationNode(id=node_id, desc=f"about {node_id}", **fields)


class Looks(list):
    """Notes each look at what may not be looked at."""

    def note(self):
        """Note a look."""
        self.append(1)


def undecided():
    """Return a root, its undecided leaf and the looks at it."""
    leaf, looks = node("leaf"), Looks()
    root = node("root", children=[node("first"), leaf])
    leaf.leave_undecided(Undecided(on_read=looks.note))
    return root, leaf, looks


@pytest.mark.parametrize(
    "look",
    [
        lambda leaf: leaf.score,
        lambda leaf: leaf.status,
        lambda leaf: leaf.evidence,
        lambda leaf: leaf.verdict,
        lambda leaf: leaf.blocked_as,
        vars,
        dict,
        repr,
        str,
        copy.copy,
        copy.deepcopy,
        pickle.dumps,
        to_jsonable_python,
        lambda leaf: leaf.model_dump(),
        lambda leaf: leaf.model_dump_json(),
        lambda leaf: leaf.compute_score(),
        lambda leaf: leaf.aggregated_score,
        lambda leaf: leaf.add_node(node("below")),
        lambda leaf: setattr(leaf, "score", 1.0),
        lambda leaf: setattr(leaf, "status", "failed"),
    ],
)
def test_every_look_at_the_leaf_is_noticed(look):
    _, leaf, looks = undecided()
    look(leaf)
    assert looks


@pytest.mark.parametrize(
    "look",
    [
        lambda root: root.compute_score(),
        lambda root: root.aggregated_score,
        lambda root: root.has_blocking_leaf,
        copy.copy,
        copy.deepcopy,
        pickle.dumps,
        dict,
        lambda root: root.model_dump(),
    ],
)
def test_looks_at_what_depends_on_the_leaf_are_noticed(look):
    root, _, looks = undecided()
    look(root)
    assert looks


def test_what_does_not_depend_on_the_leaf_may_be_used():
    root, leaf, looks = undecided()
    root.children[0].decide(1.0, "passed")
    root.add_node(node("third"))
    leaf.desc, leaf.critical = "another", True
    assert (leaf.id, leaf.claim, leaf.parent, leaf.position) == (
        "leaf",
        "another",
        root,
        1,
    )
    assert root.find("leaf") is leaf
    assert not looks


def test_a_tree_notices_looks_after_a_subtree_with_the_leaf_is_added():
    root, _, looks = undecided()
    top = node("top", children=[root])
    top.compute_score()
    assert looks


def test_others_wait_for_it():
    root, leaf, _ = undecided()
    root.add_node(after := node("after"))
    leaf.critical = True
    assert first_block(after, ()) is leaf
    assert first_block(None, [root]) is leaf


def test_a_verdict_makes_it_a_leaf_like_any_other():
    root, leaf, looks = undecided()
    leaf.decide(1.0, "passed")
    assert (leaf.undecided, first_block(None, [root])) == (None, None)
    assert leaf.status == "passed"
    assert not looks
