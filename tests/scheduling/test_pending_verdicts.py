"""Prerequisites of a verification while verdicts are pending: in the end those of program order."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rubrics import EDITS, Shadow, apply_edit, blocking_leaf

from mind2web2.errors import JudgeError
from mind2web2.rubric.node import VerificationNode, possible_blocks
from mind2web2.scheduling.prerequisites import (
    NotedPrerequisites,
    PendingCall,
    noted_prerequisites,
)

FINAL = ((1.0, "passed"), (0.0, "failed"), (0.0, "skipped"), (0.0, "initialized"))


def node(node_id, **fields):
    """Return a node whose description does not matter."""
    return VerificationNode(id=node_id, desc=node_id, **fields)


def failed(node_id, **fields):
    """Return a leaf that has failed."""
    return node(node_id, status="failed", **fields)


class Watch:
    """Lets the program change the tree."""

    def note_change(self):
        """Accept it."""


def noted(leaves):
    """Mark leaves as pending and return their verdicts."""
    for leaf in leaves:
        leaf.mark_pending(Watch())
    return {id(leaf): PendingCall(leaf) for leaf in leaves}


def possible(asked, extra, pending):
    """Return the ids of what may block a leaf while others are pending."""
    for leaf in pending:
        leaf.mark_pending(Watch())
    found = [leaf.id for leaf in possible_blocks(asked, extra)]
    for leaf in pending:
        leaf.clear_pending()
    return found


def finish(verdict, status):
    """Let a verdict be there; ``None`` for a judge that failed."""
    verdict.status = status
    verdict.finished.set()


def names(leaves):
    """Return the ids of leaves."""
    return [leaf.id for leaf in leaves]


async def test_an_outcome_is_there_when_it_is_finished():
    """A caller that asks before waits."""
    verdict = PendingCall(node("leaf"))
    assert verdict.status is None
    waiting = asyncio.create_task(verdict.outcome())
    await asyncio.sleep(0)
    assert not waiting.done()
    finish(verdict, "passed")
    assert await waiting == "passed"


@pytest.mark.parametrize(("leaf", "name"), [(node("leaf"), "leaf"), (None, "None")])
async def test_a_verdict_that_will_never_be_is_a_judge_error(leaf, name):
    """A failed judge is no verdict; the error names the leaf."""
    verdict = PendingCall(leaf)
    finish(verdict, None)
    with pytest.raises(JudgeError) as told:
        await verdict.outcome()
    assert str(told.value) == f"no verdict on '{name}', which was to come first"


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        (["passed", "passed"], "what is decided"),
        (["passed", "failed"], "not judged, because 'p1' failed"),
        (["skipped", "failed"], "not judged, because 'p0' was skipped"),
        (["initialized", "partial"], "what is decided"),
        ([], "what is decided"),
    ],
)
async def test_the_first_that_blocks_is_the_reason(statuses, expected):
    """Pending ones come before decided ones."""
    verdicts = [PendingCall(node(f"p{place}")) for place in range(len(statuses))]
    for verdict, status in zip(verdicts, statuses, strict=True):
        finish(verdict, status)
    assert (
        await NotedPrerequisites("what is decided", tuple(verdicts)).skip_reason()
        == expected
    )


async def test_a_verdict_without_a_leaf_blocks_no_verification():
    """It stands nowhere in the tree."""
    verdict = PendingCall(None)
    finish(verdict, "failed")
    assert await NotedPrerequisites(None, (verdict,)).skip_reason() is None


def test_the_reason_names_leaf_and_status():
    """Where nothing is pending, the tree as it stands decides."""
    first, leaf = node("first", critical=True, status="skipped"), node("leaf")
    node("root", children=[first, leaf])
    assert noted_prerequisites(leaf, [], {}) == NotedPrerequisites(
        "not judged, because 'first' was skipped"
    )
    assert noted_prerequisites(None, [first], {}) == NotedPrerequisites(
        "not judged, because 'first' was skipped"
    )
    assert noted_prerequisites(first, [], {}) == NotedPrerequisites(None)


def test_pending_leaves_are_listed_up_to_the_first_that_blocks_in_any_case():
    """A failure ends the list; what comes after it cannot be the reason."""
    early, gate, late = (
        node("early", critical=True),
        failed("gate", critical=True),
        node("late", critical=True),
    )
    leaf = node("leaf")
    node("root", children=[early, gate, late, leaf])
    pending = noted([early, late])
    found = noted_prerequisites(leaf, [], pending)
    assert (found.decided, names(each.leaf for each in found.pending)) == (
        "not judged, because 'gate' failed",
        ["early"],
    )
    gate.decide(1.0, "passed")
    found = noted_prerequisites(leaf, [], pending)
    assert (found.decided, names(each.leaf for each in found.pending)) == (
        None,
        ["early", "late"],
    )


def test_a_node_is_not_its_own_prerequisite_while_others_are_pending():
    """Naming the node itself is an error here as well."""
    leaf, other = node("leaf"), node("other")
    with pytest.raises(ValueError, match="'leaf' cannot be its own"):
        noted_prerequisites(leaf, [other, leaf], noted([other]))


def test_a_leaf_that_is_verified_again_does_not_wait_for_itself():
    """Its own former verdict in a named group does not block it; the next one in the group may."""
    leaf, pending_one, last = failed("leaf"), node("pending"), failed("last")
    group = node("group", children=[leaf, pending_one, last])
    node("root", children=[group])
    assert possible(leaf, [group], [pending_one]) == ["pending", "last"]
    assert possible(leaf, [group], [leaf, pending_one]) == ["pending", "last"]


def test_only_earlier_children_of_a_sequence_are_waited_for():
    """Later ones, and any of a parallel parent, are no prerequisites."""
    leaves = [node(name) for name in "abc"]
    root = node("root", strategy="sequential", children=leaves)
    assert [possible(leaf, [], leaves) for leaf in leaves] == [[], ["a"], ["a", "b"]]
    root.strategy = "parallel"
    assert [possible(leaf, [], leaves) for leaf in leaves] == [[], [], []]


def test_what_an_ancestor_depends_on_is_waited_for_on_every_level():
    """Critical siblings of a group hold back all that is below it, to any depth."""
    gate, leaf, early = node("gate", critical=True), node("leaf"), node("early")
    low = node("low", strategy="sequential", children=[early, leaf])
    node("root", children=[node("group", children=[low]), gate])
    assert possible(leaf, [], [gate, early]) == ["early", "gate"]
    assert possible(low, [], [gate, early]) == ["gate"]


def test_its_own_former_verdict_is_not_what_blocks_in_any_case():
    leaf, waiting, gate = (
        node(name, critical=True) for name in ("leaf", "waiting", "gate")
    )
    node("root", children=[leaf, waiting, gate])
    for decided in (leaf, gate):
        decided.decide(0.0, "failed")
    assert possible(leaf, [], [waiting]) == ["waiting", "gate"]


def test_an_earlier_failure_of_a_sequence_ends_the_list():
    """A pending leaf behind it cannot be the reason; one before it can."""
    leaves = [node("a"), failed("b"), node("c"), node("d")]
    node("root", strategy="sequential", children=leaves)
    assert possible(leaves[3], [], [leaves[0], leaves[2]]) == ["a", "b"]
    assert possible(leaves[3], [], [leaves[2]]) == ["b"]


def test_in_a_group_the_first_failure_and_all_pending_leaves_are_listed_once():
    """Also where the group is both what blocks in any case and what may come to."""
    inside = [node("a"), failed("b"), failed("c"), node("d")]
    for leaf in inside:
        leaf.critical = True
    asked = node("asked")
    node("root", children=[node("group", critical=True, children=inside), asked])
    assert possible(asked, [], [inside[0], inside[3]]) == ["a", "b", "d"]


def decided_at_last(pending, statuses):
    """Let every pending verdict be there, in the tree as well."""
    for verdict, (score, status) in zip(list(pending.values()), statuses, strict=True):
        verdict.leaf.take_verdict(score, status)
        finish(verdict, status)


@given(EDITS, st.data())
def test_in_the_end_the_reason_is_the_one_of_program_order(edits, data):
    """Whatever is pending when prerequisites are recorded: once decided, the tree names the same leaf."""
    root = Shadow(VerificationNode(id="root", desc="root"))
    for number, edit in enumerate(edits):
        apply_edit(root, number, edit)
    real = [each.real for each in root.everything()]
    undecided = [
        leaf
        for leaf in real
        if not leaf.children and leaf.verdict.status == "initialized"
    ]
    under_way = (
        data.draw(st.lists(st.sampled_from(undecided), unique_by=id))
        if undecided
        else []
    )
    verdicts = noted(under_way)
    for gone in (
        data.draw(st.lists(st.sampled_from(under_way), unique_by=id))
        if under_way
        else []
    ):
        gone.clear_pending()
        del verdicts[id(gone)]
    asked = data.draw(st.sampled_from(real))
    others = [each for each in real if each is not asked]
    extra = data.draw(st.lists(st.sampled_from(others), max_size=3)) if others else []
    found = noted_prerequisites(asked, extra, verdicts)
    finals = data.draw(
        st.lists(st.sampled_from(FINAL), min_size=len(verdicts), max_size=len(verdicts))
    )
    decided_at_last(verdicts, finals)
    expected = blocking_leaf(asked, extra)
    how = {"failed": "failed", "skipped": "was skipped"}
    assert asyncio.run(found.skip_reason()) == (
        None
        if expected is None
        else f"not judged, because '{expected.id}' {how[expected.verdict.status]}"
    )
