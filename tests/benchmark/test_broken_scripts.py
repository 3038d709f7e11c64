"""An eval script that cannot run costs its own task only, in every command that reads scripts."""

import json

import pytest
from projects import call, entered

from mind2web2.cli import main

SOUND = """\
from mind2web2 import Evaluator

TASK_DESCRIPTION = "Where is {}?"


async def evaluate_answer(
    client, answer, agent_name, answer_name, cache, semaphore, logger, model="o4-mini"
):
    evaluator = Evaluator()
    evaluator.initialize(task_id="sound", client=client, answer=answer)
    return evaluator.get_summary()
"""
BROKEN = {
    "open": (
        "x = (\n",
        "eval_scripts/lab/open.py has a syntax error in line 1: '(' was never closed",
    ),
    "null": (
        "x = 1\n\0",
        "eval_scripts/lab/null.py has a syntax error in line 2: source code contains a null",
    ),
    "bare": (
        "TASK_DESCRIPTION = 'What?'\n",
        "eval_scripts/lab/bare.py has no evaluate_answer: add 'async def evaluate_answer(...)'",
    ),
}


@pytest.fixture(params=BROKEN)
def broken(request, tmp_path, monkeypatch):
    """Stand in a project with two sound scripts and a broken one.

    Return its task and what is wrong.
    """
    project = entered(tmp_path, monkeypatch)
    for task in ("lake", "mill"):
        project.add_raw_script(SOUND.format(task), task, "lab")
        project.add_answer(task=task)
    text, problem = BROKEN[request.param]
    project.add_raw_script(text, request.param, "lab")
    project.add_answer(task=request.param)
    return request.param, problem


def test_answers_are_imported(broken, tmp_path):
    rows = [{"task_id": task, "answer": "Here."} for task in ("lake", broken[0])]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = call(main, "import", "answers", "new", "a.jsonl")
    assert (run.returncode, run.stderr) == (0, "")
    assert "2 runs in a.jsonl: 2 stored" in run.stdout


def test_the_estimate_names_it(broken):
    task, problem = broken
    told = call(main, "evaluate", "bot", "--estimate")
    assert (told.returncode, told.stderr) == (0, "")
    assert "Answers to evaluate: 2 of 3" in told.stdout
    assert f"Not estimated: {task}/answer_1.md: {problem}" in told.stdout
