"""A leaf whose verdict is pending: every look waits for it, and afterwards all is as before."""

import copy
import pickle

import pytest
from pydantic_core import to_jsonable_python

from mind2web2.rubric.node import VerificationNode
from mind2web2.rubric.verdicts import Evidence


class Watch:
    """Counts the waits; a wait decides the leaf."""

    def __init__(self, leaf=None):
        self.waits = 0
        self.leaf = leaf

    def settle_now(self):
        """Let the verdict be there."""
        self.waits += 1
        self.leaf.take_verdict(1.0, "passed")


def node(node_id, **fields):
    """Return a node whose description does not matter."""
    return VerificationNode(id=node_id, desc=f"about {node_id}", **fields)


def awaited():
    """Return a root, its leaf with a pending verdict, and the watch."""
    leaf = node("leaf")
    root, watch = node("root", children=[node("first"), leaf]), Watch(leaf)
    leaf.mark_pending(watch)
    return root, leaf, watch


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
        lambda leaf: leaf.model_dump(),
        lambda leaf: leaf.dict(),
        lambda leaf: leaf.model_dump_json(),
        lambda leaf: leaf.compute_score(),
        lambda leaf: leaf.aggregated_score,
        lambda leaf: leaf.add_node(node("below")),
        lambda leaf: setattr(leaf, "score", 1.0),
        lambda leaf: leaf.decide(1.0, "passed"),
        lambda leaf: setattr(leaf, "status", "failed"),
        lambda leaf: setattr(leaf, "evidence", None),
    ],
)
def test_what_is_not_there_yet_is_waited_for(look):
    """Before it is read or written, copied or shown, whatever the way."""
    _, leaf, watch = awaited()
    look(leaf)
    assert (watch.waits, leaf.is_pending) == (1, False)


@pytest.mark.parametrize(
    "look",
    [
        lambda root: root.compute_score(),
        lambda root: root.aggregated_score,
        copy.copy,
        copy.deepcopy,
        pickle.dumps,
        dict,
        lambda root: root.model_dump(),
        lambda root: root.model_dump_json(),
        lambda root: node("top").add_node(root),
    ],
)
def test_what_depends_on_it_anywhere_in_the_tree_is_waited_for(look):
    """A score read too early would be wrong, and so would be a copy; a subtree does not move."""
    root, leaf, watch = awaited()
    look(root)
    assert (watch.waits, leaf.is_pending) == (1, False)


def test_a_remembered_score_is_waited_for_as_well():
    """It was right when it was read, and no longer is while a verdict is pending."""
    leaf = node("leaf")
    root = node("root", children=[leaf])
    assert root.aggregated_score == 0.0
    leaf.mark_pending(Watch(leaf))
    assert root.aggregated_score == 1.0


def test_serialisation_from_outside_waits_and_comparison_is_plain():
    """Pydantic's own ways look for the fields; equality asks for identity alone."""
    root, leaf, _ = awaited()
    assert leaf == leaf  # noqa: PLR0124
    assert leaf != root.children[0]
    with pytest.raises(TypeError, match="unhashable"):
        hash(leaf)
    assert to_jsonable_python(leaf)["status"] == "passed"


def test_what_does_not_depend_on_it_can_be_used():
    """Names, places and other leaves are read and changed."""
    root, leaf, watch = awaited()
    assert (leaf.id, leaf.desc, leaf.claim, leaf.critical) == (
        "leaf",
        "about leaf",
        "about leaf",
        False,
    )
    assert (leaf.parent, leaf.position, root.find("leaf")) == (root, 1, leaf)
    assert leaf.is_pending
    assert not root.is_pending
    root.children[0].desc = leaf.desc = "another"
    root.children[0].decide(1.0, "passed")
    root.add_node(node("third"))
    root.children[0].critical = leaf.critical = True
    leaf.strategy = "sequential"
    assert (leaf.critical, leaf.strategy, leaf.claim) == (True, "sequential", "another")
    assert watch.waits == 0


def test_afterwards_it_is_a_leaf_like_any_other():
    """The former fields are back, what is decided then counts, and nothing is watched."""
    root, leaf, _ = awaited()
    leaf.clear_pending()
    assert (leaf.score, leaf.status, leaf.evidence) == (0.0, "initialized", None)
    evidence = Evidence(decided_by="script", reason="because")
    leaf.decide(1.0, "passed", evidence)
    root.children[0].decide(1.0, "passed")
    assert (root.aggregated_score, leaf.verdict, leaf.evidence) == (
        1.0,
        (1.0, "passed"),
        evidence,
    )
    assert not leaf.is_pending


def test_who_holds_the_former_fields_sees_what_stood_there():
    """Neither the wait nor the verdict changes a mapping taken before."""
    leaf = node("leaf")
    before = vars(leaf)
    leaf.mark_pending(Watch())
    assert (before["score"], before["status"], before["evidence"]) == (
        0.0,
        "initialized",
        None,
    )
    leaf.take_verdict(0.0, "failed")
    assert before["status"] == "initialized"


def test_a_tree_is_watched_until_its_last_verdict_is_there():
    leaves = [node("a"), node("b")]
    root, watch = node("root", children=leaves), Watch(leaves[1])
    for leaf in leaves:
        leaf.mark_pending(watch)
    leaves[0].take_verdict(0.0, "failed")
    assert (leaves[0].status, watch.waits) == ("failed", 0)
    assert (root.compute_score(), watch.waits) == (0.5, 1)
    leaves[1].clear_pending()  # a second time changes nothing
    assert copy.deepcopy(root).aggregated_score == 0.5
    assert watch.waits == 1


def test_pending_leaves_are_found_from_above():
    """On every level up to the root, in order, until the last of a branch is decided."""
    leaves = [node(name) for name in "abc"]
    low = node("low", children=leaves)
    middle, other = node("middle", children=[low]), node("other")
    root = node("root", children=[node("first"), middle, other])
    for leaf in (leaves[2], other, leaves[0]):
        leaf.mark_pending(Watch())
    assert [sorted(each._pending_children) for each in (root, middle, low)] == [
        [1, 2],
        [0],
        [0, 2],
    ]
    assert [leaf.is_pending for leaf in leaves] == [True, False, True]
    leaves[2].clear_pending()
    assert [sorted(each._pending_children) for each in (root, middle, low)] == [
        [1, 2],
        [0],
        [0],
    ]
    leaves[0].take_verdict(1.0, "passed")
    assert [sorted(each._pending_children) for each in (root, middle, low)] == [
        [2],
        [],
        [],
    ]
    leaves[1].mark_pending(Watch())
    assert [sorted(each._pending_children) for each in (root, middle, low)] == [
        [1, 2],
        [0],
        [1],
    ]
    leaves[1].clear_pending()
    other.clear_pending()
    assert root._pending_children == set()
    assert not any(each.is_pending for each in root.walk())
