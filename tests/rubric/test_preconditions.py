"""Which verifications are skipped: the shared vectors, and agreement with the rule's letter."""

import gc
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rubrics import (
    BLOCKING,
    EDITS,
    Shadow,
    apply_edit,
    blocking_leaf,
    built_by_evaluator,
    prerequisite_leaves,
    vectors,
)
from scripted_judge import ScriptedJudge

from mind2web2.rubric.node import VerificationNode


def node(node_id, **fields):
    """Return a node whose description does not matter."""
    return VerificationNode(id=node_id, desc=node_id, **fields)


async def test_vectors_decide_whom_the_judge_is_asked_about():
    """Prerequisites and blocking leaves are as recorded.

    A skipped leaf costs no request and gives False; any other costs two and passes.
    """
    for vector in vectors("preconditions.json"):
        for check in vector["checks"]:
            judge, case = ScriptedJudge(True), (vector["name"], check["leaf"])
            evaluator = built_by_evaluator(vector["tree"], client=judge)
            leaf = evaluator.find_node(check["leaf"])
            extra = [evaluator.find_node(name) for name in check["extra"]]
            leaves = prerequisite_leaves(leaf, extra)
            assert sorted(each.id for each in leaves) == check["prerequisites"], case
            blocked = sorted(each.id for each in leaves if each.status in BLOCKING)
            assert blocked == sorted(check["blocking"]), case
            blocking = blocking_leaf(leaf, extra)
            assert (blocking.id in blocked) if check["skip"] else (blocking is None), case
            supported = await evaluator.verify("claim", leaf, extra_prerequisites=extra)
            expected = (False, "skipped", 0.0, 0) if check["skip"] else (True, "passed", 1.0, 2)
            assert (
                supported,
                leaf.status,
                leaf.score,
                len(judge.questions),
            ) == expected, case


def check_agreement(asked, extra=()):
    """Compare both answers about a node with those of the rule's letter."""
    named = [each.real for each in extra]
    expected = asked.expected_prerequisites(extra)
    assert set(map(id, prerequisite_leaves(asked.real, named))) == {
        id(leaf.real) for leaf in expected
    }
    blocking = {id(leaf.real) for leaf in expected if leaf.status in BLOCKING}
    found = blocking_leaf(asked.real, named)
    assert (id(found) in blocking) if blocking else (found is None)


@given(EDITS)
def test_blocking_agrees_with_the_letter_after_any_change(edits):
    """The answer is the rule's after any additions, verdicts, flags and early reads."""
    root = Shadow(VerificationNode(id="root", desc="root"))
    for number, edit in enumerate(edits):
        apply_edit(root, number, edit)
        for asked in root.everything():
            check_agreement(asked)


@given(EDITS, st.data())
def test_extra_prerequisites_agree_with_the_letter(edits, data):
    """Any other nodes may be named: above, below or beside."""
    root = Shadow(VerificationNode(id="root", desc="root"))
    for number, edit in enumerate(edits):
        apply_edit(root, number, edit)
    asked = data.draw(st.sampled_from(root.everything()))
    others = [each for each in root.everything() if each is not asked]
    check_agreement(
        asked,
        data.draw(st.lists(st.sampled_from(others), max_size=3)) if others else (),
    )


def test_becoming_critical_begins_to_block():
    failed, leaf = node("failed", status="failed"), node("leaf")
    node("root", children=[node("open", critical=True), failed, leaf])
    assert blocking_leaf(leaf) is None
    failed.critical = True
    assert blocking_leaf(leaf) is failed
    failed.critical = False
    assert blocking_leaf(leaf) is None


def test_the_next_failure_blocks_when_the_first_is_taken_back():
    """Decided again as passed, a leaf leaves the others as they are."""
    leaves = [node(name, critical=True, status="failed") for name in "abc"]
    leaf = node("leaf")
    node("root", children=[*leaves, leaf])
    for expected in leaves:
        assert blocking_leaf(leaf) is expected
        expected.decide(1.0, "passed")
    assert blocking_leaf(leaf) is None


@pytest.mark.parametrize("ask", [prerequisite_leaves, blocking_leaf])
@pytest.mark.parametrize("first", [False, True])
def test_a_node_is_not_its_own_prerequisite(ask, first):
    """Naming the node itself is an error, also behind a prerequisite that blocks anyway."""
    leaf, failed = node("leaf"), node("failed", status="failed")
    with pytest.raises(ValueError, match="'leaf'"):
        ask(leaf, [leaf, failed] if first else [failed, leaf])


@pytest.mark.parametrize("ask", [prerequisite_leaves, blocking_leaf])
def test_the_error_names_what_was_named(ask):
    leaf = node("leaf")
    with pytest.raises(ValueError, match="cannot be its own") as told:
        ask(leaf, [leaf])
    assert str(told.value) == "node 'leaf' cannot be its own prerequisite"


def test_an_extra_prerequisite_may_contain_the_node():
    leaf, other = node("leaf", status="failed"), node("other")
    group = node("group", children=[leaf, other])
    node("root", children=[group])
    assert blocking_leaf(leaf, [group]) is None
    other.decide(0.0, "failed")
    assert blocking_leaf(leaf, [group]) is other


def test_extra_prerequisites_count_outside_of_any_tree():
    """A claim without a place in a tree can still depend on others."""
    failed = node("failed", status="failed")
    assert blocking_leaf(node("claim"), [failed]) is failed
    assert blocking_leaf(node("claim")) is None


def test_siblings_of_the_root_do_not_exist():
    """The root depends on nothing."""
    root = node("root", children=[node("leaf", critical=True, status="failed")])
    assert blocking_leaf(root) is None
    assert prerequisite_leaves(root) == []


def test_an_early_score_does_not_block_what_it_shows_as_skipped():
    """A leaf that is merely shown as skipped behind an undecided one has not been skipped."""
    first, gate = node("first"), node("gate", critical=True, score=1.0, status="passed")
    root = node("root", strategy="sequential", children=[first, gate])
    assert root.aggregated_score == 0.0
    assert gate.status == "skipped"
    assert blocking_leaf(first) is None


def test_a_leaf_that_becomes_a_group_blocks_no_longer():
    """Leaves alone block; a verdict of a node that got children is none."""
    group = node("group", critical=True, status="failed")
    leaf = node("leaf")
    node("root", children=[group, leaf])
    assert blocking_leaf(leaf) is group
    group.add_node(node("inside", critical=True))
    assert blocking_leaf(leaf) is None


def test_strategy_is_read_at_the_time_of_asking():
    """An earlier failure blocks in a sequence and not beside it."""
    failed, later = node("failed", status="failed"), node("later")
    root = node("root", children=[failed, later])
    assert blocking_leaf(later) is None
    root.strategy = "sequential"
    assert blocking_leaf(later) is failed
    assert blocking_leaf(failed) is None


def test_deep_and_wide_trees_are_asked_without_recursion():
    """Five thousand levels, and ten thousand critical siblings, are walked by links."""
    root = lowest = node("root")
    for number in range(5000):
        child = node(f"n{number}")
        lowest.add_node(child)
        lowest = child
    root.children.extend(node(f"c{number}", critical=True) for number in range(10_000))
    assert blocking_leaf(lowest) is None
    assert len(prerequisite_leaves(lowest)) == 10_000
    root.find("c9999").decide(0.0, "skipped")
    assert blocking_leaf(lowest).id == "c9999"


def calls_for(failed, strategy):
    """Count the calls that it takes to find what blocks leaves beside so many failures."""
    calls = Counter()
    root, leaf, other = node("root"), node("leaf"), node("other")
    root.add_node(beside := node("beside", strategy=strategy, children=[leaf]))
    root.add_node(other)
    for number in range(failed):
        beside.add_node(node(f"{number}", status="failed"))
    gc.disable()  # what it collects may call functions
    sys.setprofile(lambda _frame, event, _argument: calls.update([event]))
    try:
        reasons = [
            blocking_leaf(leaf),
            blocking_leaf(other, [beside]),
        ]
    finally:
        sys.setprofile(None)
        gc.enable()
    assert [each and each.id for each in reasons] == [None, "0"]
    return calls["call"]


@pytest.mark.parametrize("strategy", ["parallel", "sequential"])
def test_failed_siblings_are_not_searched(strategy):
    """A verification costs the same, however many leaves beside it have failed."""
    assert calls_for(failed=500, strategy=strategy) == calls_for(failed=5, strategy=strategy)


def test_a_failed_leaf_that_becomes_critical_blocks_the_others():
    leaf, failed = node("leaf"), node("failed", status="failed")
    node("root", children=[leaf, failed])
    assert blocking_leaf(leaf) is None
    failed.critical = True
    assert blocking_leaf(leaf) is failed
    failed.critical = False
    assert blocking_leaf(leaf) is None


def test_a_leaf_that_is_made_as_failed_blocks():
    """Scripts may make leaves whose verdict they know."""
    known = node("known", critical=True, status="failed", score=0.0)
    open_leaf = node("open")
    node("root", children=[known, open_leaf])
    assert blocking_leaf(open_leaf, []) is known
