"""A leaf whose verdict is pending: every look is refused by name, and afterwards all is as before."""

import copy
import pickle

import pytest
from pydantic_core import PydanticSerializationError, to_jsonable_python

from mind2web2.rubric.node import VerificationNode
from mind2web2.rubric.verdicts import Evidence


class RefusedError(Exception):
    """What the watch raises."""


class Watch:
    """Notes changes of the tree and refuses all that it is told of."""

    def __init__(self):
        self.changes = 0

    def refuse(self, what):
        """Raise with what was wanted."""
        raise RefusedError(what)

    def note_change(self):
        """Count the change."""
        self.changes += 1


def node(node_id, **fields):
    """Return a node whose description does not matter."""
    return VerificationNode(id=node_id, desc=f"about {node_id}", **fields)


def awaited():
    """Return a root, its leaf with a pending verdict, and the watch."""
    leaf = node("leaf")
    root, watch = node("root", children=[node("first"), leaf]), Watch()
    leaf.mark_pending(watch)
    return root, leaf, watch


@pytest.mark.parametrize(
    ("look", "refused"),
    [
        (lambda leaf: leaf.score, "'score' of node 'leaf'"),
        (lambda leaf: leaf.status, "'status' of node 'leaf'"),
        (lambda leaf: leaf.evidence, "'evidence' of node 'leaf'"),
        (lambda leaf: leaf.verdict, "the verdict on node 'leaf'"),
        (lambda leaf: leaf.blocked_as, "'blocked_as' of node 'leaf'"),
        (vars, "the fields of node 'leaf'"),
        (dict, "the fields of node 'leaf'"),
        (repr, "a representation of node 'leaf'"),
        (str, "a representation of node 'leaf'"),
        (copy.copy, "a copy of node 'leaf'"),
        (copy.deepcopy, "a copy of node 'leaf'"),
        (pickle.dumps, "a copy of node 'leaf'"),
        (lambda leaf: leaf.model_dump(), "a dump of node 'leaf'"),
        (lambda leaf: leaf.dict(), "a dump of node 'leaf'"),
        (lambda leaf: leaf.model_dump_json(), "a dump of node 'leaf'"),
        (lambda leaf: leaf.compute_score(), "the score of node 'leaf'"),
        (lambda leaf: leaf.aggregated_score, "the score of node 'leaf'"),
        (lambda leaf: leaf.add_node(node("below")), "a child of node 'leaf'"),
        (lambda leaf: setattr(leaf, "score", 1.0), "'score' of node 'leaf'"),
        (lambda leaf: leaf.decide(1.0, "passed"), "'score' of node 'leaf'"),
        (lambda leaf: setattr(leaf, "status", "failed"), "'status' of node 'leaf'"),
        (lambda leaf: setattr(leaf, "evidence", None), "'evidence' of node 'leaf'"),
    ],
)
def test_what_is_not_there_yet_is_refused_by_name(look, refused):
    """Neither read nor written, copied or shown, whatever the way; the tree stays as it was."""
    root, leaf, *_ = awaited()
    with pytest.raises(RefusedError) as told:
        look(leaf)
    assert str(told.value) == refused
    assert (len(root.children), leaf.children) == (2, [])


@pytest.mark.parametrize(
    ("look", "refused"),
    [
        (lambda root: root.compute_score(), "the score of node 'root'"),
        (lambda root: root.aggregated_score, "the score of node 'root'"),
        (copy.copy, "a copy of node 'root'"),
        (copy.deepcopy, "a copy of node 'root'"),
        (pickle.dumps, "a copy of node 'root'"),
        (dict, "the fields of node 'root'"),
        (lambda root: root.model_dump(), "a dump of node 'root'"),
        (lambda root: root.model_dump_json(), "a dump of node 'root'"),
        (lambda root: node("top").add_node(root), "a new place for node 'root'"),
    ],
)
def test_what_depends_on_it_anywhere_in_the_tree_is_refused(look, refused):
    """A score read too early would be wrong, and so would be a copy; a subtree does not move."""
    root, *_ = awaited()
    with pytest.raises(RefusedError) as told:
        look(root)
    assert str(told.value) == refused
    assert root.parent is None


def test_a_remembered_score_is_refused_as_well():
    """It was right when it was read, and no longer is while a verdict is pending."""
    leaf = node("leaf")
    root = node("root", children=[leaf])
    assert root.aggregated_score == 0.0
    leaf.mark_pending(Watch())
    with pytest.raises(RefusedError, match="the score of node 'root'"):
        _ = root.aggregated_score


def test_serialisation_from_outside_and_comparison_are_refused_or_plain():
    """Pydantic's own ways look for the fields; equality asks for identity alone."""
    root, leaf, *_ = awaited()
    with pytest.raises(PydanticSerializationError, match="a dump of node 'leaf'"):
        to_jsonable_python(leaf)
    assert leaf == leaf  # noqa: PLR0124
    assert leaf != root.children[0]
    with pytest.raises(TypeError, match="unhashable"):
        hash(leaf)


def test_what_does_not_depend_on_it_can_be_used():
    """Names, places and other leaves are read and changed, and the watch is told of changes."""
    root, leaf, watch = awaited()
    assert (leaf.id, leaf.desc, leaf.claim, leaf.critical) == ("leaf", "about leaf", "about leaf", False)
    assert (leaf.parent, leaf.position, root.find("leaf")) == (root, 1, leaf)
    assert leaf.is_pending
    assert not root.is_pending
    root.children[0].desc = "another"
    assert watch.changes == 0
    root.children[0].decide(1.0, "passed")
    assert watch.changes == 1
    root.add_node(node("third"))
    assert watch.changes == 2
    root.children[0].critical = leaf.critical = True
    assert watch.changes == 4
    leaf.strategy = "sequential"
    assert (watch.changes, leaf.critical, leaf.strategy) == (5, True, "sequential")
    leaf.desc = "another"
    assert (watch.changes, leaf.claim) == (5, "another")


def test_afterwards_it_is_a_leaf_like_any_other():
    """The former fields are back, what is decided then counts, and nothing is watched."""
    root, leaf, _ = awaited()
    leaf.clear_pending()
    assert (leaf.score, leaf.status, leaf.evidence) == (0.0, "initialized", None)
    evidence = Evidence(decided_by="script", reason="because")
    leaf.decide(1.0, "passed", evidence)
    root.children[0].decide(1.0, "passed")
    assert (root.aggregated_score, leaf.verdict, leaf.evidence) == (1.0, (1.0, "passed"), evidence)
    assert not leaf.is_pending


def test_who_holds_the_former_fields_sees_what_stood_there():
    """Neither the wait nor the verdict changes a mapping taken before."""
    leaf = node("leaf")
    before = vars(leaf)
    leaf.mark_pending(Watch())
    assert (before["score"], before["status"], before["evidence"]) == (0.0, "initialized", None)
    leaf.take_verdict(0.0, "failed")
    assert before["status"] == "initialized"


def test_a_tree_is_watched_until_its_last_verdict_is_there():
    """Of two leaves the first to be decided frees itself, the second the tree."""
    leaves = [node("a"), node("b")]
    root, watch = node("root", children=leaves), Watch()
    for leaf in leaves:
        leaf.mark_pending(watch)
    leaves[0].take_verdict(1.0, "passed")
    assert (leaves[0].status, watch.changes) == ("passed", 0)
    with pytest.raises(RefusedError):
        root.compute_score()
    leaves[1].clear_pending()
    leaves[1].clear_pending()  # a second time changes nothing
    assert (root.compute_score(), watch.changes) == (0.5, 0)
    assert copy.deepcopy(root).aggregated_score == 0.5


def test_pending_leaves_are_found_from_above():
    """On every level up to the root, in order, until the last of a branch is decided."""
    leaves = [node(name) for name in "abc"]
    low = node("low", children=leaves)
    middle, other = node("middle", children=[low]), node("other")
    root = node("root", children=[node("first"), middle, other])
    for leaf in (leaves[2], other, leaves[0]):
        leaf.mark_pending(Watch())
    assert [sorted(each._pending_children) for each in (root, middle, low)] == [[1, 2], [0], [0, 2]]
    assert [leaf.is_pending for leaf in leaves] == [True, False, True]
    leaves[2].clear_pending()
    assert [sorted(each._pending_children) for each in (root, middle, low)] == [[1, 2], [0], [0]]
    leaves[0].take_verdict(1.0, "passed")
    assert [sorted(each._pending_children) for each in (root, middle, low)] == [[2], [], []]
    leaves[1].mark_pending(Watch())
    assert [sorted(each._pending_children) for each in (root, middle, low)] == [[1, 2], [0], [1]]
    leaves[1].clear_pending()
    other.clear_pending()
    assert root._pending_children == set()
    assert not any(each.is_pending for each in root.walk())
