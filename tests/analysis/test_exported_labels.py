"""``audit --export``: labels of people measure other judges.

The labels apply by the same claims, answers and pages.
"""

import json
from pathlib import Path

import pytest
from projects import AGENT, block_in, call, entered
from servers.judge_server import JudgeServer, prompt_text

from mind2web2.analysis.audited import audited_answers
from mind2web2.analysis.corrections import population_of
from mind2web2.analysis.labels import LabelFile
from mind2web2.cli import evaluate_main, main

PAGE = "https://lake.example/facts"
TEXT = "The lake is 31 m deep. It froze in 1963."
TRUE = {
    "The lake is deep.": True,
    "The lake froze in 1962.": False,
    "The lake is wide.": True,
}
CLAIMS = {
    "deep": ("The lake is deep.", PAGE),
    "froze": ("The lake froze in 1962.", PAGE),
    "wide": ("The lake is wide.", None),
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a project that a judge has judged which passes everything."""
    project = entered(tmp_path, monkeypatch)
    project.add_answer(text="The lake is wide.")
    project.add_script(CLAIMS)
    project.cache().put_web(PAGE, TEXT, None)

    def reply(body):
        claim = block_in(prompt_text(body), "claim")
        result = body["model"] == "lenient" or TRUE[claim]
        return {"reasoning": "r", "result": result, "quote": ""}

    with JudgeServer(reply) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        words = ("--agent_name", AGENT, "--judge_model", "lenient")
        assert call(evaluate_main, *words).returncode == 0
        yield project, server


def label(project, auditor, verdicts):
    """Write an auditor's labels of leaves of the only answer."""
    file = LabelFile(project.root / "audits", AGENT, auditor)
    (answer,) = audited_answers(project.root / "eval_results", AGENT)
    file.begin(population_of([answer]))
    for leaf in answer.leaves:
        if leaf.name.leaf in verdicts:
            file.append(leaf.name, leaf.seen_sha256, verdicts[leaf.name.leaf])


def exported(*words):
    """Export the labels and return what is printed, with the rows."""
    outcome = call(main, "export", AGENT, "--labels", "labels.jsonl", *words)
    lines = Path("labels.jsonl").read_text(encoding="utf-8").splitlines()
    return outcome, [json.loads(line) for line in lines]


def test_labels_measure_the_next_judge(project):
    """The judge of the results has the errors that the audit shows, and a better one has none."""
    place, server = project
    label(place, "ann", {"deep": "y", "froze": "n", "wide": "y"})
    outcome, rows = exported()
    assert "3 labels written to labels.jsonl." in outcome.stdout
    assert "check-judge --labels labels.jsonl" in outcome.stdout
    assert {(row["claim"], row["label"]) for row in rows} == set(TRUE.items())
    assert [row.get("pages") for row in rows if row["claim"] == "The lake is wide."] == [None]
    words = ("check-judge", "--labels", "labels.jsonl", "--json")
    judges = ("--judge_model", "lenient", "--judge_model", "strict")
    lenient, strict = json.loads(call(main, *words, *judges).stdout)["judges"]
    assert (lenient["overall"]["right"], strict["overall"]["right"]) == (2, 3)
    audit = json.loads(call(main, "metrics", AGENT, "--audit", "--json").stdout)["audit"]
    assert lenient["overall"]["accuracy"]["value"] == pytest.approx(
        audit["auditors"][0]["quality"]["figures"]["agreement"]["value"]
    )
    shown = [prompt_text(body) for body in server.requests if body["model"] == "strict"]
    assert any(TEXT in (block_in(text, "page") or "") for text in shown)
    assert all(block_in(text, "answer") == "The lake is wide." for text in shown)


def test_labels_that_measure_nothing_are_left_out(project):
    """Auditors who are divided, leaves that are undecidable, and pages that have changed since."""
    place, _ = project
    label(place, "ann", {"deep": "y", "froze": "n", "wide": "u"})
    label(place, "bob", {"deep": "y", "froze": "y"})
    outcome, rows = exported()
    assert [(row["claim"], row["labels"]) for row in rows] == [("The lake is deep.", [True, True])]
    assert "Left out: 2 labels: undecidable, or auditors are divided." in outcome.stdout
    place.cache().put_web(PAGE, "Another text.", None)
    outcome, rows = exported()
    assert (outcome.returncode, rows) == (1, [])
    assert "Left out: 1 label: a page has changed or is gone." in outcome.stdout


def test_labels_of_a_part_of_an_answer_are_left_out(project):
    """They are not a random choice of its leaves, and would measure a judge with a bias."""
    place, _ = project
    label(place, "ann", {"deep": "y", "froze": "n"})
    outcome, rows = exported()
    assert (outcome.returncode, rows) == (1, [])
    assert "Left out: 2 labels: its answer has no labels of all leaves" in outcome.stdout
