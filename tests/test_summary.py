"""The summary: a rubric tree as plain data, its statistics, and what is kept beside it."""

import asyncio
import json
import math
from datetime import date

from evaluations import PAGE, started, tree_nodes
from hypothesis import given
from pydantic import BaseModel, HttpUrl
from rubrics import EDITS, Shadow, apply_edit
from scripted_judge import ScriptedJudge

from mind2web2 import Evaluator
from mind2web2.evaluator import tree_statistics
from mind2web2.rubric.node import VerificationNode
from mind2web2.rubric.tree_writing import tree_as_dict
from mind2web2.rubric.verdicts import Evidence, PageCheck, Vote


class Town(BaseModel):
    """A town, as a script extracts it."""

    name: str | None = None
    people: int | None = None


def node(node_id, **fields):
    """Return a node whose description does not matter."""
    return VerificationNode(id=node_id, desc=f"about {node_id}", **fields)


def test_a_lone_root_is_a_leaf():
    root = node("root")
    assert tree_statistics(root) == {"depth": 0, "total_nodes": 1, "leaf_nodes": 1}
    assert tree_as_dict(root) == {
        "id": "root",
        "desc": "about root",
        "critical": False,
        "score": 0.0,
        "status": "initialized",
        "strategy": "parallel",
        "children": [],
    }


def test_depth_counts_edges_along_the_longest_branch():
    deep = node("a", children=[node("b", children=[node("c")]), node("d")])
    root = node("root", children=[node("x"), deep, node("y")])
    assert tree_statistics(root) == {"depth": 3, "total_nodes": 7, "leaf_nodes": 4}


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


def test_what_a_script_has_set_itself_says_so():
    """No verdict stands without evidence; a leaf that is not decided has none."""
    given = node("given", score=1.0, status="passed")
    assigned, untouched = node("assigned"), node("untouched")
    assigned.score = 1.0
    root = node("root", children=[given, assigned, untouched])
    found = [leaf.get("evidence") for leaf in tree_as_dict(root)["children"]]
    by_script = {"decided_by": "script", "reason": "the script has set it"}
    assert found == [by_script, by_script, None]
    assert "evidence" not in tree_as_dict(root)


def test_a_verdict_that_a_script_has_set_otherwise_is_reported():
    """The evidence stays, with what it came to.

    A verdict of the script's own cannot be overruled.
    """
    votes = tuple(Vote(trial=trial, supported=True, reasoning="r") for trial in (1, 2))
    judged, own = node("judged"), node("own")
    judged.decide(1.0, "passed", Evidence(decided_by="judge", votes=votes))
    own.decide(1.0, "passed", Evidence(decided_by="script"))
    assert "overruled" not in tree_as_dict(judged)
    for leaf in (judged, own):
        leaf.score, leaf.status = 0.0, "failed"
    shown = tree_as_dict(judged)
    assert (shown["status"], shown["evidence"]["decided_by"]) == ("failed", "judge")
    assert (shown["overruled"]["status"], shown["overruled"]["score"]) == (
        "passed",
        1.0,
    )
    assert "overruled" not in tree_as_dict(own)


def test_a_superseded_verdict_is_reported():
    """A leaf behind the end of a sequence shows what it was before."""
    late = node("late", score=1.0, status="passed")
    root = node("root", strategy="sequential", children=[node("first", status="failed"), late])
    root.compute_score(mutate=True)
    first, shown = tree_as_dict(root)["children"]
    assert "superseded" not in first
    assert (shown["status"], shown["score"]) == ("skipped", 0.0)
    assert (shown["superseded"]["status"], shown["superseded"]["score"]) == (
        "passed",
        1.0,
    )


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
    assert (statistics["total_nodes"], statistics["leaf_nodes"]) == (
        len(pairs),
        len(root.leaves()),
    )


async def test_what_is_kept_beside_the_tree_has_the_published_shape():
    """Extractions, then ground truth, then other information stand in ``info``, each in order."""
    evaluator = started(ScriptedJudge(Town(name="Aa")))
    evaluator.add_custom_info({"a": 1})
    evaluator.add_ground_truth(gt_info={"depth": 80})
    await evaluator.extract("Which town?", Town, "town")
    evaluator.add_ground_truth({"depth": 81}, gt_type="second_source")
    evaluator.add_custom_info({"b": 2}, info_type="count")
    evaluator.add_custom_info({"c": 3}, "count", "names")
    assert evaluator.get_summary()["eval_breakdown"][0]["info"] == [
        {"town": {"name": "Aa", "people": None}},
        {"ground_truth": {"depth": 80}},
        {"second_source": {"depth": 81}},
        {"custom": {"a": 1}},
        {"count": {"b": 2}},
        {"names": {"c": 3}},
    ]
    assert evaluator._extraction_results == [
        {"type": "town", "result": {"name": "Aa", "people": None}}
    ]


async def test_extractions_are_listed_in_the_order_of_their_calls():
    class SlowFirst:
        async def async_response(self, **keywords):
            for _ in range(20 if "first?" in str(keywords["messages"]) else 0):
                await asyncio.sleep(0)
            return Town(name="Aa")

    evaluator = started(SlowFirst())
    await asyncio.gather(
        *(evaluator.extract(f"{name}?", Town, name) for name in ("first", "second"))
    )
    info = evaluator.get_summary()["eval_breakdown"][0]["info"]
    assert [name for each in info for name in each] == ["first", "second"]


def test_what_scripts_keep_becomes_plain_data():
    """Dates, addresses, templates and sets are written as JSON can hold them.

    They are written as they were when given.
    """
    evaluator, found = started(), {"towns": [Town(name="Aa")]}
    evaluator.add_custom_info(found)
    given = {
        "day": date(2025, 7, 14),
        "url": HttpUrl(PAGE),
        "names": {"a"},
        "x": math.inf,
        "y": b"\xff",
    }
    evaluator.add_ground_truth(given)
    found["towns"].clear()
    info = json.loads(json.dumps(evaluator.get_summary(), allow_nan=False))["eval_breakdown"][0][
        "info"
    ]
    assert info[1] == {"custom": {"towns": [{"name": "Aa", "people": None}]}}
    expected = {
        "day": "2025-07-14",
        "url": PAGE,
        "names": ["a"],
        "x": "Infinity",
        "y": "_w==",
    }
    assert info[0] == {"ground_truth": expected}


async def test_an_extracted_infinity_can_be_written_down():
    """A judge may reply with a number that JSON does not have."""

    class Depth(BaseModel):
        metres: float

    evaluator = started(ScriptedJudge(Depth(metres=math.inf)))
    assert (await evaluator.extract("how deep?", Depth)).metres == math.inf
    (entry,) = json.loads(json.dumps(evaluator.get_summary(), allow_nan=False))["eval_breakdown"][
        0
    ]["info"]
    assert entry == {"extraction": {"metres": "Infinity"}}


async def test_undecided_leaves_are_named():
    """A script that forgets to verify one is easily found out."""
    evaluator = started()
    group = evaluator.add_parallel("group", "")
    leaves = [evaluator.add_leaf(name, "", group) for name in ("open", "judged", "late")]
    evaluator.add_parallel("empty", "")
    evaluator.add_leaf("counts", "").score = 1.0
    await evaluator.verify("claim", leaves[1])
    assert evaluator.get_summary()["undecided_leaves"] == ["open", "late", "empty"]


def test_the_summary_has_the_published_shape():
    """Every key of eval-scripts.md is there, and the whole is JSON."""
    evaluator = Evaluator()
    evaluator.initialize(
        "lake", agent_name="bot", answer_name="answer_1.md", task_description="Find it"
    )
    group = evaluator.add_sequential("group", "in order")
    evaluator.add_leaf("a", "first", group, score=1.0, status="passed")
    evaluator.add_leaf("b", "second", critical=True, score=1.0, status="passed")
    summary = json.loads(json.dumps(evaluator.get_summary()))
    assert {
        "agent_name": "bot",
        "answer_name": "answer_1.md",
        "final_score": 1.0,
    }.items() <= summary.items()
    assert summary["tree_statistics"] == {"depth": 2, "total_nodes": 4, "leaf_nodes": 2}
    assert list(summary["tree_statistics"]) == ["depth", "total_nodes", "leaf_nodes"]
    (breakdown,) = summary["eval_breakdown"]
    root = breakdown["verification_tree"]
    fields = {
        "id": "root",
        "desc": "Find it",
        "critical": False,
        "score": 1.0,
        "status": "passed",
    }
    assert {**fields, "strategy": "parallel"}.items() <= root.items()
    assert [child["id"] for child in root["children"]] == ["group", "b"]
    assert root["children"][0]["strategy"] == "sequential"
    assert root["children"][0]["children"][0]["children"] == []


def test_a_tree_of_ten_thousand_leaves_is_summarised():
    """Building, numbering, scoring and writing down follow the rubric's size."""
    evaluator = started()
    for _ in range(10_000):
        evaluator.add_leaf("leaf", "", score=1.0, status="passed")
    summary = evaluator.get_summary()
    assert summary["tree_statistics"] == {
        "depth": 1,
        "total_nodes": 10_001,
        "leaf_nodes": 10_000,
    }
    assert evaluator.find_node("leaf_9999") is evaluator.root.children[-1]


def test_a_very_deep_tree_is_summarised():
    """Statistics and the tree's plain form do not recurse."""
    evaluator = started()
    parent = None
    for number in range(3000):
        parent = evaluator.add_parallel(f"n{number}", "", parent)
    summary = evaluator.get_summary()
    assert summary["tree_statistics"] == {
        "depth": 3000,
        "total_nodes": 3001,
        "leaf_nodes": 1,
    }
    assert tree_nodes(summary)["n2999"]["children"] == []
