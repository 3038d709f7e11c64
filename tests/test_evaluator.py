"""The face that eval scripts use: building a rubric, what is kept beside it, and the summary."""

import asyncio
import inspect
import logging

import pytest
from evaluations import PAGE, started, stored, tree_nodes
from pydantic import BaseModel
from scripted_judge import ScriptedJudge

from mind2web2 import (
    AggregationStrategy,
    Evaluator,
    EvaluatorConfig,
    VerificationNode,
    Verifier,
)
from mind2web2.errors import JudgeError


class Town(BaseModel):
    """A town, as a script extracts it."""

    name: str | None = None
    people: int | None = None


def test_a_new_evaluator_holds_nothing():
    """Root, extractor and verifier come with initialize."""
    evaluator = Evaluator()
    assert (evaluator.root, evaluator.extractor, evaluator.verifier) == (
        None,
        None,
        None,
    )
    assert evaluator.score() == 0.0
    assert (evaluator.get_all_node_ids(), evaluator.get_node_count()) == ([], 0)
    assert evaluator.find_node("root") is None
    assert evaluator.check_id_available("root")


async def test_before_initialize_calls_say_what_is_missing():
    """Each is a ValueError that names the cure."""
    evaluator = Evaluator()
    calls = (
        lambda: evaluator.add_leaf("x", "x"),
        lambda: evaluator.add_parallel("x", "x"),
        lambda: evaluator.add_custom_node(True, "x", "x"),
        evaluator.get_summary,
        lambda: evaluator.verify("claim", None),
        lambda: evaluator.extract("prompt", Town),
    )
    for call in calls:
        with pytest.raises(ValueError, match="initialize"):
            outcome = call()
            await outcome


def test_initialize_returns_the_root():
    evaluator = Evaluator()
    root = evaluator.initialize("lake")
    assert root is evaluator.root is evaluator.find_node("root")
    assert (root.id, root.desc, root.critical, root.status) == (
        "root",
        "Evaluation for lake",
        False,
        "initialized",
    )
    assert root.strategy is AggregationStrategy.PARALLEL
    summary = evaluator.get_summary()
    assert (summary["agent_name"], summary["answer_name"]) == (
        "unknown_agent",
        "unknown_answer",
    )
    assert (summary["judge_model"], summary["extract_model"]) == ("o4-mini", "o4-mini")


def test_initialize_takes_the_published_arguments():
    """Names, strategy and models arrive where they belong.

    The verifier logs where the script does.
    """
    evaluator, logger = Evaluator(), logging.getLogger("script")
    root = evaluator.initialize(
        "lake",
        AggregationStrategy.SEQUENTIAL,
        "bot",
        "answer_1.md",
        client=ScriptedJudge(),
        task_description="Find the lake",
        answer="none",
        global_cache=None,
        global_semaphore=None,
        logger=logger,
        default_model="a",
        extract_model="b",
        verify_model="c",
        config=EvaluatorConfig(),
        browser_manager=None,
    )
    summary = evaluator.get_summary()
    assert (root.desc, root.strategy) == ("Find the lake", "sequential")
    assert (summary["agent_name"], summary["answer_name"]) == ("bot", "answer_1.md")
    assert (summary["judge_model"], summary["extract_model"]) == ("c", "b")
    assert evaluator.verifier.logger is logger


def test_unknown_arguments_are_ignored_with_a_warning(caplog):
    """A script of a later version loses no answer over an argument, and its author learns of it."""
    evaluator = Evaluator()
    evaluator.initialize("lake", colour="red")
    evaluator.add_leaf("x", "x", weight=2)
    assert ["colour" in line or "weight" in line for line in caplog.messages] == [
        True,
        True,
    ]


def test_initialize_again_starts_afresh():
    evaluator = started()
    evaluator.add_leaf("x", "x", score=1.0, status="passed")
    evaluator.add_ground_truth({"depth": 80})
    evaluator.initialize("river")
    assert evaluator.get_all_node_ids() == ["root"]
    assert evaluator.get_summary()["eval_breakdown"][0]["info"] == [
        {"no_info": "No information recorded"}
    ]
    assert evaluator.add_leaf("x", "x").id == "x"


def test_inner_nodes_and_leaves_go_below_the_root_or_a_parent():
    """Strategies, descriptions and the order of adding are kept."""
    evaluator = started()
    group = evaluator.add_sequential("group", "in order", critical=True)
    inside = evaluator.add_parallel("inside", "at once", group, critical=True)
    leaf = evaluator.add_leaf("leaf", "a leaf", parent=inside, critical=True)
    assert (group.strategy, inside.strategy) == ("sequential", "parallel")
    assert (group.parent, inside.parent, leaf.parent) == (evaluator.root, group, inside)
    assert (leaf.desc, leaf.claim, leaf.score, leaf.status) == (
        "a leaf",
        "a leaf",
        0.0,
        "initialized",
    )
    assert (
        evaluator.add_parallel("plain", "").critical
        is evaluator.add_leaf("l", "").critical
        is False
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"score": 0.5},
        {"score": 2},
        {"score": -1.0},
        {"status": "partial"},
        {"status": "ok"},
    ],
)
def test_a_leaf_starts_decided_or_not(fields):
    """Scores between and unknown statuses are ValueErrors, and nothing is added."""
    evaluator = started()
    with pytest.raises(ValueError, match="leaf 'x'"):
        evaluator.add_leaf("x", "x", **fields)
    assert evaluator.check_id_available("x")


@pytest.mark.parametrize(
    ("score", "status"),
    [
        (1.0, "passed"),
        (0.0, "failed"),
        (0.0, "skipped"),
        (0.0, "initialized"),
        (1, "passed"),
    ],
)
def test_a_leaf_may_be_added_decided(score, status):
    """The published statuses are taken as given."""
    leaf = started().add_leaf("x", "x", score=score, status=status)
    assert (leaf.score, leaf.status) == (score, status)


def test_equal_ids_are_numbered():
    """The second x is x_1, the third x_2, whatever kind of node asks."""
    evaluator = started()
    added = [
        evaluator.add_leaf("x", ""),
        evaluator.add_parallel("x", ""),
        evaluator.add_custom_node(True, "x", ""),
        evaluator.add_leaf("root", ""),
    ]
    assert [node.id for node in added] == ["x", "x_1", "x_2", "root_1"]


def test_numbered_ids_avoid_what_is_there():
    """Where x_1 was taken by name, the second x is x_2."""
    evaluator = started()
    names = ["x", "x_1", "x", "x", "x_1"]
    assert [evaluator.add_leaf(name, "").id for name in names] == [
        "x",
        "x_1",
        "x_2",
        "x_3",
        "x_1_1",
    ]


def test_a_refused_node_uses_up_no_id():
    evaluator = started()
    gate = evaluator.add_parallel("gate", "", critical=True)
    for _ in range(3):
        with pytest.raises(ValueError, match="non-critical"):
            evaluator.add_leaf("x", "", gate)
        with pytest.raises(ValueError, match="non-critical"):
            evaluator.add_leaf("gate", "", gate)
    assert evaluator.add_leaf("x", "").id == "x"
    assert evaluator.add_leaf("gate", "").id == "gate_1"
    assert evaluator.add_leaf("gate", "").id == "gate_2"


@pytest.mark.parametrize("kind", ["add_leaf", "add_parallel", "add_sequential"])
def test_the_critical_rule_names_both_nodes(kind):
    """A non-critical node under a critical one is refused, in those words."""
    evaluator = started()
    gate = evaluator.add_parallel("gate", "", critical=True)
    with pytest.raises(ValueError, match=r"'loose'.*'gate'"):
        getattr(evaluator, kind)("loose", "", gate)
    with pytest.raises(ValueError, match=r"'loose'.*'gate'"):
        evaluator.add_custom_node(True, "loose", "", gate, critical=False)
    assert evaluator.get_node_count() == 2


class _Falsy:
    def __len__(self):
        return 0


@pytest.mark.parametrize(
    ("result", "passed"),
    [
        (True, True), (1, True), ("no", True), (["x"], True), ({"a": None}, True), (Town(), True),
        (False, False), (None, False), ("", False), ([], False), ({}, False), (0.0, False), (_Falsy(), False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["add_custom_node", "add_existence_node"])
def test_custom_nodes_take_any_object(kind, result, passed):
    evaluator = started()
    node = getattr(evaluator, kind)(result, "given", "a name is given")
    assert (node.score, node.status) == ((1.0, "passed") if passed else (0.0, "failed"))
    assert (node.critical, node.parent, node.desc) == (
        True,
        evaluator.root,
        "a name is given",
    )
    assert evaluator.score() == node.score
    assert tree_nodes(evaluator.get_summary())["given"]["evidence"]["decided_by"] == "script"


def test_custom_nodes_go_below_their_parent():
    """Parent and critical are as given, by name or in order."""
    evaluator = started()
    group = evaluator.add_parallel("group", "")
    assert evaluator.add_custom_node(True, "a", "", group, False).parent is group
    node = evaluator.add_existence_node(None, id="b", desc="", parent=group, critical=False)
    assert (node.parent, node.critical, group.children[0].critical) == (
        group,
        False,
        False,
    )


async def test_nodes_built_by_hand_belong_to_the_tree():
    evaluator = started()
    group = VerificationNode(
        id="group",
        desc="by hand",
        critical=True,
        strategy=AggregationStrategy.SEQUENTIAL,
    )
    leaf = VerificationNode(id="leaf", desc="by hand", critical=True)
    group.add_node(leaf)
    evaluator.root.add_node(group)
    assert await evaluator.verify("claim", leaf)
    assert evaluator.find_node("leaf") is leaf
    assert evaluator.get_all_node_ids() == ["group", "leaf", "root"]
    assert evaluator.score() == 1.0
    assert evaluator.add_leaf("leaf", "").id == "leaf_1"


def test_lookups_answer_for_the_whole_tree():
    """Ids come sorted, the root included; what is not there is None."""
    evaluator = started()
    group = evaluator.add_parallel("b", "")
    leaf = evaluator.add_leaf("a", "", group)
    assert evaluator.get_all_node_ids() == ["a", "b", "root"]
    assert evaluator.get_node_count() == 3
    assert evaluator.find_node("a") is leaf
    assert evaluator.find_node("c") is None
    assert (evaluator.check_id_available("a"), evaluator.check_id_available("c")) == (
        False,
        True,
    )


async def test_extractions_are_recorded_under_their_names():
    """Extractions with equal names are recorded one by one."""
    evaluator = started(ScriptedJudge([Town(name="Aa"), Town(people=3)]))
    await evaluator.extract("which town?", Town)
    await evaluator.extract("how many?", Town, "people")
    assert evaluator.get_summary()["eval_breakdown"][0]["info"] == [
        {"extraction": {"name": "Aa", "people": None}},
        {"people": {"name": None, "people": 3}},
    ]


async def test_the_summary_shows_what_changed_since_the_last_one():
    """Reading it early freezes nothing, neither scores nor the tree."""
    evaluator = started()
    leaf = evaluator.add_leaf("leaf", "")
    assert (
        evaluator.get_summary()["final_score"],
        evaluator.score(),
        evaluator.root.aggregated_score,
    ) == (
        0,
        0,
        0,
    )
    await evaluator.verify("claim", leaf)
    evaluator.add_leaf("late", "", score=0.0, status="failed")
    assert evaluator.score() == evaluator.get_summary()["final_score"] == 0.5
    assert tree_nodes(evaluator.get_summary())["root"]["status"] == "partial"


async def test_reading_the_score_between_verifications_skips_none():
    """In a sequence, an early score shows later leaves as skipped; they are judged all the same."""
    judge = ScriptedJudge()
    evaluator = started(judge, strategy=AggregationStrategy.SEQUENTIAL)
    leaves = [evaluator.add_leaf(name, "", critical=True) for name in "abc"]
    for leaf in reversed(leaves):
        evaluator.score()
        evaluator.get_summary()
        assert await evaluator.verify(f"claim {leaf.id}", leaf)
    assert (evaluator.score(), len(judge.questions)) == (1.0, 6)


async def test_closing_keeps_the_result():
    """Scripts may close before they ask for the summary, twice, or never."""
    evaluator = started(ScriptedJudge([True, True, Town(name="Aa")]))
    await evaluator.verify("claim", evaluator.add_leaf("leaf", ""))
    await evaluator.extract("which?", Town)
    before = evaluator.get_summary()
    await evaluator.close()
    await evaluator.close()
    assert evaluator.get_summary() == before


async def test_scripts_run_their_helpers_at_once(tmp_path):
    """Nodes added and verified from several coroutines end up in one right tree."""
    judge = ScriptedJudge(lambda question: "even" in question.claim)
    evaluator = started(judge, stored(tmp_path))

    async def check(number):
        group = evaluator.add_parallel("group", f"number {number}")
        leaf = evaluator.add_leaf("leaf", "", group)
        return await evaluator.verify(
            f"{'even' if number % 2 == 0 else 'odd'} {number}", leaf, PAGE
        )

    assert await asyncio.gather(*map(check, range(20))) == [True, False] * 10
    assert evaluator.score() == 0.5
    assert evaluator.get_node_count() == 41


async def test_a_failed_judge_leaves_no_score():
    evaluator = started(ScriptedJudge(JudgeError("down for good")))
    leaf = evaluator.add_leaf("leaf", "")
    with pytest.raises(JudgeError, match="down for good"):
        await evaluator.verify("claim", leaf)
    for call in (evaluator.score, evaluator.get_summary):
        with pytest.raises(JudgeError, match="down for good"):
            call()
    assert leaf.status == "initialized"


def test_all_of_the_published_calls_are_there():
    """Coroutines are coroutines, and the others are not."""
    coroutines = {"extract", "verify", "batch_verify", "close"}
    plain = {
        "initialize",
        "add_parallel",
        "add_sequential",
        "add_leaf",
        "add_custom_node",
        "add_existence_node",
    }
    plain |= {
        "add_ground_truth",
        "add_custom_info",
        "score",
        "get_summary",
        "find_node",
        "get_all_node_ids",
    }
    plain |= {"check_id_available", "get_node_count"}
    for name in coroutines | plain:
        assert inspect.iscoroutinefunction(getattr(Evaluator, name)) is (name in coroutines), name


class OwnVerifier(Verifier):
    """One that a script wrote against the published interface."""

    async def verify(
        self,
        claim,
        node,
        sources,
        *,
        extra_prerequisites=None,
        additional_instruction=None,
        majority_vote=None,
        num_trials=None,
        use_screenshot=None,
    ):
        """Judge as usual, and remember the claim."""
        self.seen = claim
        return await super().verify(
            claim,
            node,
            sources,
            extra_prerequisites=extra_prerequisites,
            additional_instruction=additional_instruction,
            majority_vote=majority_vote,
            num_trials=num_trials,
            use_screenshot=use_screenshot,
        )


async def test_a_verifier_of_a_scripts_own_gets_the_published_keywords():
    evaluator = started(ScriptedJudge(True))
    own = evaluator.verifier = OwnVerifier(evaluator.verifier._context)
    leaf = evaluator.add_leaf("deep", "deep")
    assert await evaluator.verify("The lake is deep.", leaf)
    assert own.seen == "The lake is deep."
