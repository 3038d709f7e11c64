"""``mind2web2 export`` and ``results``: the example's results as flat tables."""

import codecs
import csv
import json
import re
import shutil
from dataclasses import fields, replace

import pytest
from projects import REPOSITORY, call

import mind2web2
from mind2web2.bridges.tables import (
    AnswerRecord,
    LeafRecord,
    leaf_rows,
    without_texts,
    write_table,
)
from mind2web2.cli import evaluate_main, main
from mind2web2.errors import UsageError
from mind2web2.utils.path_config import PathConfig
from mind2web2.viewer.catalog import Catalog


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Evaluate the example once."""
    folder = tmp_path_factory.mktemp("results")
    folders = [
        "--answer_folder",
        "answers",
        "--eval_scripts_root",
        "eval_scripts",
        "--cache_root",
        "cache",
    ]
    words = [str(REPOSITORY / word) if not word.startswith("--") else word for word in folders]
    judgments = str(REPOSITORY / "examples/judgments.jsonl")
    options = [
        "--llm_provider",
        "replay",
        "--judgments",
        judgments,
        "--eval_results_root",
        str(folder),
    ]
    assert call(evaluate_main, "--agent_name", "example", *words, *options).returncode == 0
    return folder


def export(root, path, *options):
    """Export the example's results to a file, and return what was printed."""
    outcome = call(
        main,
        "export",
        "example",
        "-o",
        str(path),
        "--eval_results_root",
        str(root),
        *options,
    )
    assert (outcome.returncode, outcome.stderr) == (0, "")
    return outcome.stdout


def test_a_row_for_each_answer(root, tmp_path):
    assert "9 answers written" in export(root, tmp_path / "answers.csv", "--answers")
    with (tmp_path / "answers.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert (tmp_path / "answers.csv").read_bytes().startswith(codecs.BOM_UTF8)
    scores = {(row["task_id"], int(row["run"])): round(float(row["score"]), 4) for row in rows}
    assert scores[("library_facts", 2)] == 0.375
    assert scores[("museum_saturday", 1)] == 0.4444
    assert sum(int(row["judgments"]) for row in rows) == 144
    assert list(rows[0]) == [field.name for field in fields(AnswerRecord)]


def test_a_row_for_each_leaf_in_each_form(root, tmp_path):
    """CSV and JSON lines hold the same values."""
    for name in ("leaves.csv", "leaves.jsonl"):
        export(root, tmp_path / name)
    lines = [
        json.loads(line) for line in (tmp_path / "leaves.jsonl").read_text("utf-8").splitlines()
    ]
    with (tmp_path / "leaves.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["claim"] for row in rows] == [line["claim"] or "" for line in lines]
    place = ("museum_saturday", 1, "tour/tour_start_supported")
    [leaf] = [line for line in lines if (line["task_id"], line["run"], line["path"]) == place]
    assert (
        leaf["verdict"],
        leaf["decided_by"],
        leaf["votes_for"],
        leaf["critical"],
    ) == (
        "passed",
        "judge",
        2,
        True,
    )
    assert leaf["page"].startswith("https://")


def test_results_are_read_one_after_another(root, tmp_path):
    shutil.copytree(root / "example", tmp_path / "example")
    rows = leaf_rows("example", tmp_path)
    first = next(rows).task_id
    for folder in (tmp_path / "example").iterdir():
        if folder.is_dir() and folder.name != first:
            shutil.rmtree(folder)
    assert {row.task_id for row in rows} == {first}


def test_leaves_of_answers_that_are_empty_or_gone_now_do_not_count(root, tmp_path):
    shutil.copytree(root, tmp_path / "eval_results")
    folder = tmp_path / "eval_results/example/museum_saturday"
    changes = {
        "answer_1": {"score": 0, "status": "failed", "reason": "the agent gave an empty answer"},
        "answer_2": {"score": None, "status": "removed"},
    }
    entries = []
    for answer, change in changes.items():
        (result,) = (folder / answer / "results").iterdir()
        names = {"answer_name": f"{answer}.md", "earlier_result": result.name}
        entries.append({**names, "success": False, **change})
    (folder / "unscored.json").write_text(json.dumps(entries))
    rows = leaf_rows("example", tmp_path / "eval_results")
    assert {row.run for row in rows if row.task_id == "museum_saturday"} == {3}
    shown = Catalog(PathConfig(tmp_path)).leaves("museum_saturday")
    assert shown["results"] == 1


FORMULAS = [
    ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
    ("+1+1", "'+1+1"),
    ("-1+1", "'-1+1"),
    ("@SUM(A1)", "'@SUM(A1)"),
    ("\t=1", "' =1"),
    ("\r\x1b[31mred\x00", "  [31mred "),
    ("a-b = 3", "a-b = 3"),
]


@pytest.mark.parametrize(("text", "cell"), FORMULAS)
def test_a_text_is_not_a_formula_in_csv(root, tmp_path, text, cell):
    [leaf, *_] = mind2web2.load_results("example", root).leaves
    record = replace(leaf, leaf=text, claim=text, tags=(text,), cost_usd=-0.5)
    write_table(tmp_path / "leaves.csv", [record], LeafRecord)
    with (tmp_path / "leaves.csv").open(encoding="utf-8-sig", newline="") as file:
        [row] = csv.DictReader(file)
    assert {row["leaf"], row["claim"], row["tags"]} == {cell}
    assert row["cost_usd"] == "-0.5"


@pytest.mark.parametrize("name", ["leaves.csv", "leaves.jsonl"])
def test_half_a_surrogate_is_written_as_its_escape(root, tmp_path, name):
    """Scripts and judges return such texts."""
    row = replace(
        next(leaf_rows("example", root)), leaf="\ud800", tags=("\ud800",), claim="a\ud83d"
    )
    assert write_table(tmp_path / name, [row, without_texts(row)], LeafRecord) == 2
    assert "a\\ud83d" in (tmp_path / name).read_text("utf-8")


def test_an_anonymous_table_has_no_texts(root, tmp_path):
    export(root, tmp_path / "named.jsonl")
    export(root, tmp_path / "leaves.jsonl", "--anonymous")
    text = (tmp_path / "leaves.jsonl").read_text("utf-8")
    named = (tmp_path / "named.jsonl").read_text("utf-8")
    assert "http" not in text
    rows = [json.loads(line) for line in text.splitlines()]
    assert {(row["desc"], row["claim"]) for row in rows} == {(None, None)}
    for row in map(json.loads, named.splitlines()):
        for word in (row["leaf"], row["path"], *row["tags"]):
            assert f'"{word}"' not in text
    assert len({row["path"] for row in rows}) == len({row["leaf"] for row in rows})


def test_an_anonymous_answer_has_no_reason(root):
    found = mind2web2.load_results("example", root)
    [first, *_] = found.answers
    failed = replace(first, score=None, reason="script raised ValueError: secret")
    assert without_texts(failed).reason is None


def test_results_have_types(root):
    found = mind2web2.load_results("example", root)
    assert {type(record) for record in found.leaves} == {LeafRecord}
    assert len(found.answers) == 9
    with pytest.raises(UsageError, match="no results of agent nobody under"):
        mind2web2.load_results("nobody", root)


@pytest.mark.parametrize("option", ["-o", "--inspect"])
def test_an_unknown_agent_is_answered_with_the_one_that_was_meant(root, option):
    words = ("export", "exampel", option, "x.eval", "--eval_results_root", str(root))
    run = call(main, *words)
    assert run.returncode == 2
    assert f"no results of agent exampel under {root}: did you mean example?" in (run.stderr)
    assert run.stderr.endswith("There are results of example\n")


@pytest.mark.parametrize("options", [(), ("--answers",)])
def test_a_result_that_was_changed_is_refused(root, tmp_path, options):
    results = tmp_path / "results"
    shutil.copytree(root, results)
    changed = next(results.glob("example/*/*/results/*.json"))
    changed.write_text(changed.read_text().replace('"failed"', '"passed"'))
    words = ("-o", str(tmp_path / "x.csv"), "--eval_results_root", str(results))
    outcome = call(main, "export", "example", *words, *options)
    assert (outcome.returncode, (tmp_path / "x.csv").exists()) == (2, False)
    assert f"{changed} was changed after it was written" in outcome.stderr


@pytest.mark.parametrize("name", ["leaves.xlsx", "leaves"])
def test_other_files_are_refused(root, tmp_path, name):
    outcome = call(
        main,
        "export",
        "example",
        "-o",
        str(tmp_path / name),
        "--eval_results_root",
        str(root),
    )
    assert (outcome.returncode, "ends in .csv, .jsonl" in outcome.stderr) == (
        2,
        True,
    )


@pytest.mark.parametrize("record", [LeafRecord, AnswerRecord])
def test_the_page_explains_each_column(record):
    named = set(re.findall(r"`(\w+)`", (REPOSITORY / "docs/file-layouts.md").read_text("utf-8")))
    assert {field.name for field in fields(record)} <= named
