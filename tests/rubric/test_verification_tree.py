"""The rubric tree: shared vectors, the rules of scoring.md, links, current scores."""

import copy
import json
import pickle

import pytest
from hypothesis import given
from pydantic import BaseModel
from pydantic_core import to_jsonable_python
from rubrics import EDITS, Shadow, apply_edit, built_by_hand, outcomes, vectors

from mind2web2.rubric.node import FIELDS, AggregationStrategy, VerificationNode
from mind2web2.rubric.verdicts import Evidence


def node(node_id, **fields):
    """Return a node whose description does not matter."""
    return VerificationNode(id=node_id, desc=f"about {node_id}", **fields)


def passed(node_id, **fields):
    """Return a leaf that has passed."""
    return node(node_id, score=1.0, status="passed", **fields)


def failed(node_id, **fields):
    """Return a leaf that has failed."""
    return node(node_id, score=0.0, status="failed", **fields)


def test_vectors():
    """Trees have the expected score and statuses, also after writing them twice."""
    for vector in vectors("tree.json"):
        root, name = built_by_hand(vector["input"]), vector["name"]
        before = outcomes(root)
        expected_score = pytest.approx(vector["expected_score"], abs=1e-6)
        assert root.compute_score() == expected_score, name
        assert outcomes(root) == before, name
        assert root.aggregated_score == expected_score, name
        assert outcomes(root) == vector["expected"], name
        assert root.compute_score(mutate=True) == expected_score, name
        assert root.compute_score(mutate=True) == expected_score, name
        assert outcomes(root) == vector["expected"], name


def test_fields_have_the_published_defaults():
    """A node is an undecided, non-critical, parallel leaf unless said otherwise."""
    fresh = VerificationNode(id="x", desc="about x")
    assert (fresh.critical, fresh.score, fresh.status, list(fresh.children)) == (
        False,
        0.0,
        "initialized",
        [],
    )
    assert fresh.strategy is AggregationStrategy.PARALLEL
    assert fresh.claim == fresh.desc == "about x"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("score", value) for value in (1.1, -0.1, float("nan"), None, "much")),
        ("status", "ok"),
        ("status", None),
        ("strategy", "neither"),
        ("critical", None),
        ("critical", "no"),
        ("desc", None),
        ("evidence", "because"),
    ],
)
def test_impossible_fields_are_refused(name, value):
    """A score outside [0, 1] and an unknown status are errors, at once and later."""
    with pytest.raises(ValueError, match=r"\S"):
        VerificationNode(**{"id": "x", "desc": "about x", name: value})
    fresh = node("x")
    before = dict(fresh)
    with pytest.raises(ValueError, match=r"\S"):
        setattr(fresh, name, value)
    assert dict(fresh) == before


def test_an_error_names_node_field_and_value():
    with pytest.raises(ValueError, match=r"^node 'x': score must be a number from 0 to 1, not 2$"):
        node("x", score=2)
    with pytest.raises(
        ValueError, match=r"^node 'x': status must be one of initialized, .*, not 'ok'$"
    ):
        node("x").decide(1.0, "ok")
    with pytest.raises(ValueError, match=r"^node 'x': critical must be True or False, not 'no'$"):
        node("x", critical="no")
    with pytest.raises(ValueError, match=r"^a node's id must be a string, not 5$"):
        VerificationNode(id=5, desc="")


def test_numbers_stand_for_scores_and_flags():
    """Whatever Python takes for the same number is written as the field's own type."""
    fresh = node("x", score=True, critical=1)
    assert (repr(fresh.score), fresh.critical) == ("1.0", True)
    fresh.score = "0.5"
    assert fresh.score == 0.5


SHOWN = (
    "id='leaf' desc='about leaf' critical=False score=1.0 status='passed' "
    "strategy=<AggregationStrategy.PARALLEL: 'parallel'> children=[] "
    "evidence=Evidence(decided_by='script', "
)


def test_a_node_shows_all_its_fields():
    leaf = passed("leaf", evidence=Evidence(decided_by="script", reason="because"))
    root = node("root", children=[leaf])
    assert str(leaf).startswith(SHOWN)
    assert repr(leaf).startswith(
        "VerificationNode(id='leaf', desc='about leaf', critical=False, score=1.0, "
    )
    assert repr(leaf) in repr(root)
    assert dict(root) == vars(root) == {name: getattr(root, name) for name in FIELDS}
    plain = root.model_dump(mode="json")
    assert (plain["strategy"], plain["children"][0]["evidence"]["reason"]) == (
        "parallel",
        "because",
    )
    assert json.loads(root.model_dump_json()) == to_jsonable_python(root) == plain
    assert root.model_dump(include={"id", "score"}) == {"id": "root", "score": 0.0}
    assert root.dict()["children"] == [leaf.model_dump()]

    class Item(BaseModel):
        """A script's own."""

        node: VerificationNode

    assert Item(node=root).model_dump(mode="json") == {"node": plain}
    with pytest.raises(ValueError, match="VerificationNode"):
        Item(node="root")


def test_nodes_are_equal_to_themselves_only():
    """A set of them would have another order in each run."""
    leaf = node("leaf")
    assert leaf == leaf  # noqa: PLR0124
    assert leaf != node("leaf")
    with pytest.raises(TypeError, match="unhashable"):
        hash(leaf)


@pytest.mark.parametrize(
    ("name", "value"), [("parallel", "PARALLEL"), ("sequential", "SEQUENTIAL")]
)
def test_strategies_are_given_by_name_or_member(name, value):
    """Scripts write the enum's member; data says its value."""
    assert node("x", strategy=name).strategy is AggregationStrategy[value]
    assert AggregationStrategy[value] == name


def test_a_node_cannot_be_its_own_child():
    top, middle, bottom = node("top"), node("middle"), node("bottom")
    top.add_node(middle)
    middle.add_node(bottom)
    for above in (bottom, middle, top):
        with pytest.raises(ValueError, match=above.id):
            bottom.add_node(above)
    assert not bottom.children


def test_a_critical_node_takes_critical_children_only():
    """The error names both nodes, and nothing is added."""
    parent = node("gate", critical=True)
    with pytest.raises(ValueError, match=r"'extra'.*'gate'"):
        parent.add_node(node("extra"))
    assert not parent.children
    parent.add_node(node("must", critical=True))
    assert [child.id for child in parent.children] == ["must"]
    with pytest.raises(ValueError, match=r"'extra'.*'gate'"):
        node("gate", critical=True, children=[node("extra")])


def test_the_critical_flag_cannot_be_changed_against_the_rule():
    child = node("child", critical=True)
    gate = node("gate", critical=True, children=[child])
    with pytest.raises(ValueError, match=r"'child'.*'gate'"):
        child.critical = False
    loose = node("loose", children=[node("free")])
    with pytest.raises(ValueError, match=r"'free'.*'loose'"):
        loose.critical = True
    assert (child.critical, gate.critical, loose.critical) == (True, True, False)


def test_half_a_verdict_changes_half_of_it():
    """Setting the status of a leaf shown as skipped keeps its score."""
    late = passed("late")
    first = node("first")
    root = node("root", strategy="sequential", children=[first, late])
    root.compute_score(mutate=True)
    late.status = "passed"
    first.decide(1.0, "passed")
    assert (root.aggregated_score, late.score) == (1.0, 1.0)


def test_a_subtree_scored_before_it_was_added_is_scored_again():
    leaf = node("leaf")
    branch = node("branch", children=[leaf])
    assert branch.aggregated_score == 0.0
    leaf.decide(1.0, "passed")
    root = node("root")
    root.add_node(branch)
    assert (branch.aggregated_score, root.aggregated_score) == (1.0, 1.0)


def test_a_child_has_one_parent():
    """A node that hangs elsewhere is refused; adding it to its own parent again changes nothing."""
    first, second, child = node("first"), node("second"), node("child")
    first.add_node(child)
    with pytest.raises(ValueError, match=r"'child'.*'first'.*'second'"):
        second.add_node(child)
    first.add_node(child)
    assert list(first.children) == [child]
    assert child.parent is first


@pytest.mark.parametrize("stranger", [None, "child", {"id": "child", "desc": "child"}])
def test_only_nodes_are_children(stranger):
    """Anything else is a TypeError that names its type."""
    with pytest.raises(TypeError, match=type(stranger).__name__):
        node("parent").add_node(stranger)


def test_children_can_be_appended_like_a_list():
    parent = node("parent")
    parent.children.append(passed("a"))
    parent.children.extend([passed("b"), failed("c")])
    parent.children += [failed("d")]
    assert [child.id for child in parent.children] == ["a", "b", "c", "d"]
    assert all(child.parent is parent for child in parent.children)
    assert parent.find("d") is parent.children[3]
    assert parent.aggregated_score == 0.5


@pytest.mark.parametrize(
    "change",
    [
        lambda children: children.pop(),
        lambda children: children.clear(),
        lambda children: children.remove(children[0]),
        lambda children: children.insert(0, node("x")),
        lambda children: children.reverse(),
        lambda children: children.sort(key=id),
        lambda children: children.__setitem__(0, node("x")),
        lambda children: children.__delitem__(0),
        lambda children: children.__imul__(2),
    ],
)
def test_children_are_never_taken_away(change):
    """Links of the tree would dangle, so the list refuses, and stays as it is."""
    parent = node("parent", children=[passed("a"), failed("b")])
    with pytest.raises(TypeError, match="parent"):
        change(parent.children)
    assert [child.id for child in parent.children] == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("children", [], TypeError),
        ("id", "other", AttributeError),
        ("weight", 1, AttributeError),
    ],
)
def test_what_the_tree_is_linked_by_cannot_be_replaced(name, value, error):
    """Ids and lists of children are for good, and there are no fields of a script's own."""
    fresh = node("x")
    with pytest.raises(error, match=rf"'(x|{name})'"):
        setattr(fresh, name, value)


def test_nodes_are_found_from_anywhere_in_the_tree():
    """A subtree built by hand is known to the whole tree once it is added."""
    root, branch = node("root"), node("branch", children=[passed("leaf")])
    assert root.find("leaf") is None
    root.add_node(branch)
    assert root.find("leaf") is branch.children[0]
    assert branch.children[0].find("root") is root
    assert root.node_ids() == ["branch", "leaf", "root"]
    assert [each.id for each in root.walk()] == ["root", "branch", "leaf"]


def test_of_equal_ids_the_first_is_found():
    """Nodes built by hand may repeat an id; both count in the score."""
    root = node("root", children=[passed("x"), failed("x")])
    assert root.find("x") is root.children[0]
    assert root.aggregated_score == 0.5


def test_an_early_score_does_not_freeze_the_tree():
    """Older tools kept the root's 0.0 although the leaf passed later."""
    leaf = node("leaf")
    root = node("root", children=[leaf])
    assert root.aggregated_score == 0.0
    leaf.score, leaf.status = 1.0, "passed"
    assert root.aggregated_score == 1.0
    assert root.status == "passed"


def test_an_early_score_does_not_spoil_what_comes_later_in_a_sequence():
    """A leaf shown as skipped keeps its verdict for when the leaf before it passes."""
    first, second = node("first"), passed("second")
    root = node("root", strategy="sequential", children=[first, second])
    assert root.aggregated_score == 0.0
    assert (second.score, second.status) == (0.0, "skipped")
    first.decide(1.0, "passed")
    assert root.aggregated_score == 1.0
    assert (second.score, second.status) == (1.0, "passed")


def test_only_the_child_behind_the_shortfall_is_written_not_its_subtree():
    """A skipped group keeps what was found out below it."""
    group = node("group", children=[passed("below")])
    root = node("root", strategy="sequential", children=[failed("first"), group])
    root.compute_score(mutate=True)
    assert (group.score, group.status) == (0.0, "skipped")
    assert (group.children[0].score, group.children[0].status) == (1.0, "passed")


def test_a_subtree_can_be_scored_on_its_own():
    """A branch's score does not depend on where it hangs, nor does reading it change the root's."""
    branch = node("branch", children=[passed("a"), failed("b")])
    root = node("root", strategy="sequential", children=[failed("first"), branch])
    assert (root.aggregated_score, branch.aggregated_score) == (0.0, 0.5)
    assert root.compute_score(mutate=True) == 0.0
    assert branch.status == "skipped"


def test_a_score_that_is_set_is_believed():
    """A leaf may carry any score in [0, 1] (scoring.md, rule 1)."""
    root = node("root", children=[node("half", score=0.5, status="partial"), passed("whole")])
    assert root.aggregated_score == 0.75
    root.children[0].score = 1.0
    assert root.aggregated_score == 1.0


def test_decide_writes_score_status_and_evidence():
    """A verdict comes with what led to it."""
    leaf, evidence = node("leaf"), Evidence(decided_by="script", reason="because")
    leaf.decide(1.0, "passed", evidence)
    assert (leaf.score, leaf.status, leaf.evidence) == (1.0, "passed", evidence)


@given(EDITS)
def test_scores_are_right_after_any_change(edits):
    """Additions, verdicts, flags and early reads in any order leave nothing stale."""
    root = Shadow(VerificationNode(id="root", desc="root"))
    for number, edit in enumerate(edits):
        apply_edit(root, number, edit)
        expected = root.expected_score()
        assert root.real.compute_score() == pytest.approx(expected)
        assert root.real.aggregated_score == pytest.approx(expected)


@given(EDITS)
def test_written_scores_and_statuses_agree(edits):
    root = Shadow(VerificationNode(id="root", desc="root"))
    for number, edit in enumerate(edits):
        apply_edit(root, number, edit)
    root.real.compute_score(mutate=True)
    ranges = {"passed": lambda s: s == 1, "partial": lambda s: 0 < s < 1}
    for each in root.real.walk():
        if each.children:
            assert ranges.get(each.status, lambda s: s == 0)(each.score), outcomes(each)
            assert each.status != "initialized"


def test_ten_thousand_leaves_are_ordinary():
    root = node("root")
    groups = [node(f"g{number}") for number in range(100)]
    root.children.extend(groups)
    for number in range(10_000):
        groups[number % 100].add_node(node(f"n{number}"))
    for number in range(0, 10_000, 2):
        root.find(f"n{number}").decide(1.0, "passed")
    assert root.aggregated_score == 0.5
    assert len(root.node_ids()) == 10_101


def test_a_chain_of_five_thousand_does_not_exhaust_the_stack():
    """Scoring, finding and writing follow links instead of recursing."""
    root = lowest = node("root")
    for number in range(5000):
        child = node(f"n{number}", strategy="sequential")
        lowest.add_node(child)
        lowest = child
    lowest.decide(1.0, "passed")
    assert root.aggregated_score == 1.0
    assert root.find("n4999") is lowest
    lowest.decide(0.0, "failed")
    assert (root.aggregated_score, root.status) == (0.0, "failed")


def test_a_chain_can_be_built_from_the_bottom():
    """A tree of nodes made by hand hangs together whatever the order it was put together in."""
    lowest = top = passed("leaf")
    for number in range(300):
        top = node(f"n{number}", children=[top])
    assert top.find("leaf") is lowest
    assert lowest.find("n299") is top
    assert top.aggregated_score == 1.0


def test_a_copy_is_a_tree_of_its_own():
    """A deep copy keeps scores and structure and shares no node with the original."""
    root = node("root", children=[passed("a"), failed("b")])
    twin = copy.deepcopy(root)
    twin.children[1].decide(1.0, "passed")
    assert (root.aggregated_score, twin.aggregated_score) == (0.5, 1.0)
    assert twin.find("a") is twin.children[0] is not root.children[0]
    assert twin.children[0].parent is twin


def test_a_copy_keeps_what_was_decided_and_what_is_shown():
    """A leaf shown as skipped is shown so in the copy, and keeps its verdict there."""
    evidence = Evidence(decided_by="script", reason="because")
    late = passed("late", evidence=evidence)
    root = node("root", strategy="sequential", children=[failed("first", critical=True), late])
    root.compute_score(mutate=True)
    twin = copy.deepcopy(root)
    first, copied = twin.children
    assert [outcomes(each) for each in twin.walk()] == [outcomes(each) for each in root.walk()]
    assert (first.critical, first.verdict, first.has_blocking_leaf) == (
        True,
        (0.0, "failed"),
        True,
    )
    assert (copied.verdict, copied.evidence, copied.desc) == (
        (1.0, "passed"),
        evidence,
        "about late",
    )
    assert (twin.strategy, twin.desc) == (AggregationStrategy.SEQUENTIAL, "about root")
    first.decide(1.0, "passed")
    assert (twin.aggregated_score, root.aggregated_score) == (1.0, 0.0)


def test_a_shallow_copy_shares_the_children():
    """A copy is not part of the tree, and a verdict on it is its own.

    A pickled leaf is as before.
    """
    root = node("root", children=[passed("a")])
    twin = copy.copy(root)
    assert twin.children is root.children
    leaf = passed("leaf")
    for other in (copy.copy(leaf), pickle.loads(pickle.dumps(leaf))):
        other.decide(0.0, "failed")
        assert (leaf.status, leaf.verdict, other.id) == (
            "passed",
            (1.0, "passed"),
            "leaf",
        )


def test_additions_and_changes_never_cancel_out():
    """A score from before any change is not taken for the present one."""
    leaf = passed("leaf")
    root = node("root", children=[leaf])
    assert root.aggregated_score == 1.0
    for number in range(1, 5):
        root.add_node(failed(f"n{number}"))
        assert root.aggregated_score == 1 / (1 + number)
    root.add_node(failed("last"))
    leaf.score = 0.5
    assert root.aggregated_score == 0.5 / 6


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("strategy", "sequential", (0.0, "failed")),
        ("critical", True, (0.0, "failed")),
        ("score", 1.0, (1.0, "passed")),
    ],
)
def test_a_change_of_any_field_that_bears_on_scores_is_seen(field, value, expected):
    first = failed("first")
    root = node("root", children=[first, passed("second")])
    assert root.aggregated_score == 0.5
    setattr(root if field == "strategy" else first, field, value)
    assert (root.aggregated_score, root.status) == expected


def test_a_change_of_status_alone_is_seen():
    """The status tells a failed parent from a skipped one (scoring.md, rule 4)."""
    root = node("root", children=[failed("leaf")])
    assert (root.aggregated_score, root.status) == (0.0, "failed")
    root.children[0].status = "skipped"
    assert (root.aggregated_score, root.status) == (0.0, "skipped")


def test_a_score_is_computed_once():
    """Reading it again walks no tree, until something changes."""

    class Counting(VerificationNode):
        """A root that counts how often it is walked."""

        def walk(self):
            walks.append(self.id)
            return super().walk()

    walks = []
    leaf = passed("leaf")
    root = Counting(id="root", desc="about root", children=[leaf])
    walks.clear()
    assert (root.aggregated_score, root.aggregated_score) == (1.0, 1.0)
    first = len(walks)
    assert root.aggregated_score == 1.0
    assert len(walks) == first > 0
    leaf.score = 0.5
    assert root.aggregated_score == 0.5
    assert len(walks) == 2 * first


def test_nodes_can_be_copied_and_pickled_as_pydantic_models_can():
    """Two nodes of one tree are so afterwards as well; no depth is too much."""
    leaf = VerificationNode(id="leaf", desc="d", critical=True)
    root = VerificationNode(id="root", desc="d", children=[leaf])
    leaf.decide(1.0, "passed")
    loaded_root, loaded_leaf = pickle.loads(pickle.dumps((root, leaf)))
    assert (loaded_root.find("leaf"), loaded_root.compute_score()) == (loaded_leaf, 1.0)
    twin = leaf.model_copy(update={"critical": False, "status": "failed"})
    assert (twin.critical, twin.status, leaf.critical, leaf.status) == (
        False,
        "failed",
        True,
        "passed",
    )
    assert root.model_copy().children == [leaf]
    [own] = root.model_copy(deep=True).children
    assert (own is leaf, own.id) == (False, "leaf")
    assert leaf.model_fields_set == {"id", "desc", "critical", "score", "status"}
    deep = VerificationNode(id="end", desc="d")
    for level in range(1000):
        deep = VerificationNode(id=f"n{level}", desc="d", children=[deep])
    assert pickle.loads(pickle.dumps(deep)).find("end").parent.id == "n0"
