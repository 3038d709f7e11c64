"""``--quiet``: what failed and the results, without a line for each answer and each task."""

import pytest
from projects import AGENT, call, entered
from servers.judge_server import JudgeServer

from mind2web2.cli import main


@pytest.fixture
def server(tmp_path, monkeypatch):
    """Stand in a project with four answers, one of them unreadable, beside a judge."""
    project = entered(tmp_path, monkeypatch)
    project.add_script({"leaf": ("The lake is deep.", None)})
    for number in range(1, 4):
        project.add_answer(f"answer_{number}")
    project.add_answer("answer_4", b"\xff")
    with JudgeServer() as server:
        yield server


def lines(server, *words):
    """Return what a command prints, with the status that one answer without a result gives."""
    run = call(main, *words, "--judge_base_url", server.base_url, "--judge_model", "gpt-4o")
    assert run.returncode in (0, 1), run.stderr
    return run.stdout.splitlines()


def test_an_evaluation(server):
    """Scores, metrics, warnings and the answer without a result are there."""
    shown = lines(server, "evaluate", AGENT, "--no_capture", "--quiet")
    assert [
        line for line in shown if line.startswith(("[", "Judge use", "To see why an answer"))
    ] == []
    text = "\n".join(shown)
    for words in (
        "1: 1  2: 1  3: 1",
        "partial completion",
        "No result: lake/answer_4.md: ",
        "Judge: gpt-4o",
    ):
        assert words in text


def test_judging_again(server):
    """The figures that matter are what is left of three evaluations."""
    assert lines(server, "evaluate", AGENT, "--no_capture", "--quiet")
    loud = lines(server, "rejudge", AGENT)
    quiet = lines(server, "rejudge", AGENT, "--quiet")
    assert len(quiet) < len(loud) / 2
    assert quiet[-3:] == loud[-3:]
    assert not any("partial completion" in line for line in quiet[:-20])
