"""Results of earlier versions and of other tools, and the layout of those written now."""

import json
import shutil
from pathlib import Path

import pytest
from projects import call
from result_parts import made_from

from mind2web2.cli import main
from mind2web2.results.result_file import ResultFile, ResultMaking
from mind2web2.results.scored_answer import result_facts
from mind2web2.results.stored_results import latest_result, write_result
from mind2web2.viewer.catalog import tree_rows

# Written by a version with dictionaries in place of the model, from the example's stored judgments.
EARLIER = Path(__file__).parents[1] / "fixtures" / "results"
LEAF = {
    "id": "a",
    "desc": "A fact",
    "critical": False,
    "score": 1.0,
    "status": "passed",
    "strategy": "parallel",
}
# The layout of the first tools: no evidence, no provenance, no checksum.
RELEASED = {
    "agent_name": "bot",
    "answer_name": "answer_1.md",
    "final_score": 0.5,
    "judge_model": "o4-mini",
    "extract_model": "o4-mini",
    "eval_breakdown": [
        {
            "info": [{"towns": ["Tarn"]}, {"ground_truth": {"depth": 80}}],
            "verification_tree": {
                **LEAF,
                "id": "root",
                "score": 0.5,
                "status": "partial",
                "children": [
                    {**LEAF, "children": []},
                    {
                        **LEAF,
                        "id": "b",
                        "score": 0.0,
                        "status": "failed",
                        "children": [],
                    },
                ],
            },
        }
    ],
    "tree_statistics": {"depth": 1, "total_nodes": 3, "leaf_nodes": 2},
}


def test_a_result_of_an_earlier_version_is_read_whole():
    """Score, facts and checksum; and each node as it is in the file."""
    result = latest_result(EARLIER).content
    assert (result.final_score, result.score_by_tree) == (4 / 9, 4 / 9)
    assert result.has_checksum and not result.is_edited
    facts = result_facts(result)
    assert facts.judge == "example-key"
    assert (len(facts.claims), facts.is_explained, facts.is_off_tree) == (
        3,
        True,
        False,
    )
    nodes = list(_nodes(result.document["eval_breakdown"][0]["verification_tree"]))
    assert [node.own_fields() for node in result.trees[0].walk()] == nodes
    rows = [
        {name: row[name] for name in node}
        for row, node in zip(tree_rows(result.trees[0], {}), nodes, strict=True)
    ]
    assert rows == nodes


def _nodes(tree):
    yield {name: value for name, value in tree.items() if name != "children"}
    for child in tree["children"]:
        yield from _nodes(child)


def test_an_earlier_result_written_again_is_the_same_file(tmp_path):
    [file] = EARLIER.glob("*.json")
    written = write_result(tmp_path, "answer_1.md", latest_result(EARLIER).content)
    assert written.read_bytes() == file.read_bytes()


def test_the_released_layout_opens(tmp_path, monkeypatch):
    result = ResultFile.of(RELEASED)
    assert (result.final_score, result.score_by_tree, result.provenance) == (
        0.5,
        0.5,
        None,
    )
    assert not result.is_edited and not result.has_checksum
    assert list(result.info_entries()) == [
        ("towns", ["Tarn"]),
        ("ground_truth", {"depth": 80}),
    ]
    assert result_facts(result).judge == "o4-mini, parameters not recorded"
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "eval_results/bot/lake/answer_1/results"
    folder.mkdir(parents=True)
    (folder / "20250714_120000_answer_1.md.json").write_text(json.dumps(RELEASED))
    assert "0.5" in call(main, "metrics", "bot").stdout
    shown = call(main, "show", "bot", "lake", "1").stdout
    assert "score 0.5" in shown and "0.50 = mean of a 1, b 0" in shown and "towns" in shown


def test_an_earlier_version_is_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(EARLIER, tmp_path / "eval_results/example/museum_saturday/answer_1/results")
    shown = call(main, "show", "example", "museum_saturday", "1").stdout
    assert "score 0.44" in shown and "Claim: " in shown and "Page [1]: " in shown


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("final_score", "1"),
        ("extractions", [{"url": "u"}, 1]),
        ("doubts", "x"),
        ("run", {"created": 5, "judge_check": {}}),
        ("judge_usage", "many"),
        ("answer_flags", {"kind": "instruction"}),
    ],
)
def test_a_malformed_field_counts_as_missing(field, value):
    """The others are read all the same."""
    result = ResultFile.of({**RELEASED, field: value})
    default = ResultFile.of({name: known for name, known in RELEASED.items() if name != field})
    assert result.model_dump() == default.model_dump()
    assert result.document[field] == value


def test_a_result_is_written_in_the_order_of_the_layout():
    """The script's fields as they come, then how it was made."""
    making = ResultMaking.model_validate(
        {
            "agent_name": "bot",
            "answer_name": "answer_1.md",
            "judge_model": "judge-1",
            "task_id": "lake",
            "time_seconds": None,
            "provenance": made_from(),
            "judge_usage": {"judgments": 0, "input_tokens": 0},
            "doubts": (),
            "ignored_arguments": (),
            "script_faults": (),
            "answer_flags": (),
            "run": {"version": "1"},
        }
    )
    result = ResultFile.of({**RELEASED, "own": {1: (2,)}}).completed(making)
    assert not result.is_edited
    assert list(result.document) == [
        "agent_name",
        "answer_name",
        "judge_model",
        "final_score",
        "extract_model",
        "eval_breakdown",
        "tree_statistics",
        "own",
        "task_id",
        "time_seconds",
        "provenance",
        "judge_usage",
        "quotes",
        "doubts",
        "ignored_arguments",
        "script_faults",
        "answer_flags",
        "run",
    ]
    assert list(result.document["run"]) == [
        "version",
        "tree_format",
        "created",
        "seconds",
        "judge_requests",
        "judge_retries",
        "judged_from",
        "judged_to",
        "content_sha256",
    ]
    assert result.document["own"] == {"1": [2]}
