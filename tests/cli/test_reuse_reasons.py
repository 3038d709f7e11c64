"""A run says why it judges an answer again, and judges nothing for what changes no verdict."""

import json

import pytest
from projects import call, entered, read_json
from servers.judge_server import JudgeServer

from mind2web2.cli import evaluate_main, main
from mind2web2.results.freshness import CHANGED

PAGE = "https://lake.example/depth"
CLAIMS = {"deep": ("The lake is deep.", PAGE)}


@pytest.fixture
def server():
    """Return a judge that supports every claim."""
    with JudgeServer(lambda _body: {"reasoning": "read", "result": True}) as server:
        yield server


@pytest.fixture
def project(tmp_path, monkeypatch, server):
    """Return a project that has been evaluated."""
    project = entered(tmp_path, monkeypatch)
    project.add_answer()
    project.add_script(CLAIMS)
    project.cache().put_web(PAGE, "The lake is 412 m deep.", None)
    assert evaluate(server).returncode == 0
    return project


def evaluate(server, *more):
    """Evaluate the project's answers."""
    return call(evaluate_main, "--agent_name", "bot", "--judge_base_url", server.base_url, *more)


def other_page(project):
    """Store the page again with another text."""
    project.cache().put_web(PAGE, "The lake is 4 m deep.", None)


@pytest.mark.parametrize(
    ("change", "options", "reason"),
    [
        (lambda project: project.add_answer(text="The lake is cold."), (), CHANGED),
        (lambda project: project.add_script({"cold": ("It is cold.", PAGE)}), (), CHANGED),
        (other_page, (), CHANGED),
        (lambda _project: None, ("--judge_model", "gpt-4o"), CHANGED),
        (lambda _project: None, ("--no_screenshots",), CHANGED),
        (lambda _project: None, ("--overwrite",), "--overwrite"),
    ],
)
def test_the_reason_stands_beside_the_score(project, server, change, options, reason):
    """An answer is judged again only for a reason that is said."""
    change(project)
    assert f"[1/1] lake/answer_1.md: 1 (judged again: {reason}" in evaluate(server, *options).stdout


def test_another_time_of_the_agent_asks_nothing(project, server):
    """The script runs again from stored judgments, and the new result has the new time."""
    asked = len(server.requests)
    meta = project.root / "answers/bot/lake/answer_1.meta.json"
    meta.write_text(json.dumps({"time_seconds": 99}))
    assert "lake/answer_1.md: 1 (judged again: " in evaluate(server).stdout
    assert read_json(project.result_paths()[-1])["time_seconds"] == 99
    assert len(server.requests) == asked
    assert read_json(project.results / "summary.json")["avg_time_seconds"] == 99


def test_a_replay_that_comes_to_the_same_writes_nothing(project):
    for files, words in (
        (2, "1\n"),
        (2, "1, reused\n"),
        (2, "1, reused\n"),
    ):
        run = call(main, "evaluate", "bot", "--llm_provider", "replay")
        assert words in run.stdout and len(project.result_paths()) == files
