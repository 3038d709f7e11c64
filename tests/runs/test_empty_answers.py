"""An empty answer counts 0, whichever way it came: file, import, ``answer`` or ``Scorer``."""

import json

import pytest
from projects import AGENT, TASK, call, entered, read_json
from servers.judge_server import JudgeServer

from mind2web2 import Judge, Score, Scorer
from mind2web2.cli import main

REASON = "the agent gave an empty answer"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Stand in a project with one task, whose first run has an answer."""
    project = entered(tmp_path, monkeypatch)
    project.add_script({"leaf": ("The lake is deep.", None)})
    project.add_raw_script(
        project.paths.find_script(TASK)
        .path.read_text()
        .replace("import asyncio", "TASK_DESCRIPTION = 'Deep?'\nimport asyncio")
    )
    project.add_answer("answer_1")
    return project


def by_file(project):
    """Leave an empty file."""
    project.add_answer("answer_2", b"")


def by_blank_file(project):
    """Leave a file of white space."""
    project.add_answer("answer_2", b"\xef\xbb\xbf \r\n\t\n")


def by_import(project):
    """Import an empty answer."""
    row = {"task_id": TASK, "run": 2, "answer": ""}
    (project.root / "a.jsonl").write_text(json.dumps(row))
    assert call(main, "import", "answers", AGENT, "a.jsonl").returncode == 0


@pytest.mark.parametrize("arrive", [by_file, by_blank_file, by_import])
def test_it_counts_zero_in_every_command(project, arrive):
    arrive(project)
    with JudgeServer() as server:
        judge = ("--judge_base_url", server.base_url)
        told = call(main, "evaluate", AGENT, "--estimate", *judge)
        assert f"Score 0, without asking the judge: lake/answer_2.md: {REASON}" in told.stdout
        run = call(main, "evaluate", AGENT, "--no_capture", *judge)
        assert (run.returncode, run.stderr) == (0, "")
        assert "1: 1  2: 0" in run.stdout
        assert f"Score 0: lake/answer_2.md: {REASON}" in run.stdout
        assert len(server.requests) == 2
    entry = project.task_summary()["answer_2.md"]
    assert (entry["score"], entry["status"], entry["reason"]) == (0.0, "failed", REASON)
    assert read_json(project.results / "summary.json")["avg_score"] == 0.5
    assert f"Score 0: answer_2.md: {REASON}" in call(main, "show", AGENT, TASK).stdout
    checked = call(main, "verify-results", AGENT)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.usefixtures("project")
def test_a_scorer_counts_zero():
    with (
        JudgeServer() as server,
        Scorer(judge=Judge("m", server.base_url, api_key="k")) as scorer,
    ):
        found = scorer.score_sync(TASK, " \n")
        assert isinstance(found, Score)
        assert (found.score, found.result["reason"]) == (0.0, REASON)
        assert server.requests == []


def test_it_takes_the_place_of_an_earlier_result(project):
    project.add_answer("answer_2")
    with JudgeServer() as server:
        judge = ("--no_capture", "--judge_base_url", server.base_url)
        assert call(main, "evaluate", AGENT, *judge).returncode == 0
        project.add_answer("answer_2", b"")
        assert call(main, "evaluate", AGENT, *judge).returncode == 0
        assert project.task_summary()["answer_2.md"]["score"] == 0.0
        assert "stale" not in call(main, "metrics", AGENT).stdout
        project.add_answer("answer_2", "Other text.")
        assert call(main, "evaluate", AGENT, *judge).returncode == 0
        assert project.task_summary()["answer_2.md"]["score"] == 1.0
