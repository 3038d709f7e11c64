"""A leaf whose verdict is under way: every look is refused by name, and afterwards all is as before."""

import copy
import pickle

import pytest
from pydantic_core import to_jsonable_python

from mind2web2.rubric.evidence import Evidence
from mind2web2.rubric.node import VerificationNode
from mind2web2.scheduling.pending import await_verdict, take_verdict


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
    """Return a root, its leaf that awaits a verdict, the watch and what ends the wait."""
    leaf = node("leaf")
    root, watch = node("root", children=[node("first"), leaf]), Watch()
    fields = await_verdict(leaf, watch)
    return root, leaf, watch, fields


@pytest.mark.parametrize(
    ("look", "refused"),
    [
        (lambda leaf: leaf.score, "'score' of node 'leaf'"),
        (lambda leaf: leaf.status, "'status' of node 'leaf'"),
        (lambda leaf: leaf.evidence, "'evidence' of node 'leaf'"),
        (lambda leaf: leaf.verdict, "the verdict on node 'leaf'"),
        (vars, "the fields of node 'leaf'"),
        (dict, "the fields of node 'leaf'"),
        (repr, "a representation of node 'leaf'"),
        (str, "a representation of node 'leaf'"),
        (copy.copy, "a copy of node 'leaf'"),
        (copy.deepcopy, "a copy of node 'leaf'"),
        (pickle.dumps, "a pickle of node 'leaf'"),
        (lambda leaf: leaf.model_dump(), "a dump of node 'leaf'"),
        (lambda leaf: leaf.model_dump_json(), "a dump of node 'leaf'"),
        (lambda leaf: leaf.compute_score(), "the score of node 'leaf'"),
        (lambda leaf: leaf.aggregated_score, "the score of node 'leaf'"),
        (lambda leaf: leaf.add_node(node("below")), "a child of node 'leaf'"),
        (lambda leaf: leaf.decide(1.0, "passed"), "'score' of node 'leaf'"),
        (lambda leaf: setattr(leaf, "status", "failed"), "'status' of node 'leaf'"),
        (lambda leaf: setattr(leaf, "critical", True), "the fields of node 'leaf'"),
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
        (pickle.dumps, "a pickle of node 'root'"),
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
    """It was right when it was read, and is not any more while a verdict is under way."""
    leaf = node("leaf")
    root = node("root", children=[leaf])
    assert root.aggregated_score == 0.0
    await_verdict(leaf, Watch())
    with pytest.raises(RefusedError, match="the score of node 'root'"):
        _ = root.aggregated_score


def test_serialisation_from_outside_and_comparison_are_refused_or_plain():
    """Pydantic's own ways look for the fields; equality asks for identity alone."""
    root, leaf, *_ = awaited()
    with pytest.raises(RefusedError):
        to_jsonable_python(leaf)
    assert leaf == leaf  # noqa: PLR0124
    assert leaf != root.children[0]
    with pytest.raises(TypeError, match="unhashable"):
        hash(leaf)


def test_what_does_not_depend_on_it_can_be_used():
    """Names, places and other leaves are read and changed, and the watch is told of changes."""
    root, leaf, watch, _ = awaited()
    assert (leaf.id, leaf.desc, leaf.claim, leaf.critical) == ("leaf", "about leaf", "about leaf", False)
    assert (leaf.parent, leaf.position, root.find("leaf")) == (root, 1, leaf)
    assert leaf.awaits_verdict
    assert not root.awaits_verdict
    root.children[0].desc = "another"
    assert watch.changes == 0
    root.children[0].decide(1.0, "passed")
    assert watch.changes == 2
    root.add_node(node("third"))
    assert watch.changes == 3
    root.children[0].critical = True
    assert watch.changes == 4


def test_its_class_looks_like_any_nodes():
    """Type and name are no hint, and the class itself has no verdict either."""
    _, leaf, _, _ = awaited()
    assert isinstance(leaf, VerificationNode)
    assert (type(leaf).__name__, type(leaf).__qualname__) == ("VerificationNode", "VerificationNode")
    with pytest.raises(AttributeError, match="score"):
        _ = type(leaf).score


def test_afterwards_it_is_a_leaf_like_any_other():
    """The former fields are back, what was decided counts, and nobody watches."""
    root, leaf, _, fields = awaited()
    take_verdict(leaf, fields)
    assert type(leaf) is VerificationNode
    assert (leaf.score, leaf.status, leaf.evidence) == (0.0, "initialized", None)
    evidence = Evidence(decided_by="script", reason="because")
    leaf.decide(1.0, "passed", evidence)
    root.children[0].decide(1.0, "passed")
    assert (root.aggregated_score, leaf.verdict, leaf.evidence) == (1.0, (1.0, "passed"), evidence)
    assert not leaf.awaits_verdict


def test_who_holds_the_former_fields_sees_what_stood_there():
    """Neither the wait nor the verdict changes a mapping taken before."""
    leaf = node("leaf")
    before = vars(leaf)
    fields = await_verdict(leaf, Watch())
    assert fields is before
    assert (before["score"], before["status"], before["evidence"]) == (0.0, "initialized", None)
    take_verdict(leaf, fields)
    leaf.decide(0.0, "failed")
    assert before["status"] == "initialized"


def test_a_tree_is_watched_until_its_last_verdict_is_there():
    """Of two leaves the first to be decided frees itself, the second the tree."""
    leaves = [node("a"), node("b")]
    root, watch = node("root", children=leaves), Watch()
    fields = [await_verdict(leaf, watch) for leaf in leaves]
    take_verdict(leaves[0], fields[0])
    leaves[0].decide(1.0, "passed")
    assert (leaves[0].status, watch.changes) == ("passed", 2)
    with pytest.raises(RefusedError):
        root.compute_score()
    take_verdict(leaves[1], fields[1])
    assert (root.compute_score(), watch.changes) == (0.5, 2)
    assert copy.deepcopy(root).aggregated_score == 0.5


def test_a_leaf_without_anyone_who_watches_is_an_attribute_error():
    """What is refused after the end of the attempt is said to be missing."""
    _, leaf, _, _ = awaited()
    leaf._tree.watch = None
    with pytest.raises(AttributeError) as told:
        repr(leaf)
    assert str(told.value) == "a representation of node 'leaf' is not there"
