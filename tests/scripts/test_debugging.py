"""How a person finds a mistake in a script (docs/eval-scripts.md, "Debug a script")."""

import subprocess
import sys

from documents.blocks import blocks_of
from projects import (
    REPOSITORY,
    ClaimJudge,
    Project,
    call,
    clean_environment,
    entered,
    evaluate,
)
from servers.judge_server import JudgeServer

from mind2web2.cli import evaluate_main

STOPPED = "breakpoint()\nreturn evaluator.get_summary()"


def test_what_a_script_prints_is_shown_as_it_goes_on(tmp_path, monkeypatch):
    project = entered(tmp_path, monkeypatch)
    project.add_answer()
    project.add_script_body("print('so far')\nreturn evaluator.get_summary()")
    with JudgeServer() as server:
        words = ("--agent_name", "bot", "--judge_base_url", server.base_url)
        run = call(evaluate_main, *words, "--self_debug")
    assert "script printed: so far" in run.stderr


async def test_a_breakpoint_ends_a_script_in_a_run(tmp_path):
    """Nobody can type there; the reason names the line."""
    project = Project(tmp_path)
    project.add_answer()
    project.add_script_body(STOPPED)
    [outcome] = await evaluate(project, ClaimJudge())
    assert outcome.reason.startswith("script lake.py raised BdbQuit (line ")
    assert outcome.reason.endswith("(docs/eval-scripts.md#debug-a-script)")


def test_a_debugger_stops_in_a_script_that_a_program_calls(tmp_path):
    """The test runs the program that the docs show.

    The terminal is the debugger's, and the script goes on to its end.
    """
    project = Project(tmp_path)
    project.add_answer()
    project.add_script_body("found = answer\n" + STOPPED)
    [program] = [
        block.text
        for block in blocks_of(REPOSITORY / "docs/eval-scripts.md")
        if "load_eval_script(" in block.text
    ]
    for shown, own in (
        ('"museum_saturday"', '"lake"'),
        ("answers/example", "answers/bot"),
    ):
        program = program.replace(shown, own)
    run = subprocess.run(
        [sys.executable, "-c", program],
        input="p found\ncontinue\n",
        cwd=tmp_path,
        env=clean_environment(OPENAI_API_KEY="dummy"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "'The lake is deep and cold.'" in run.stdout
    assert run.stdout.endswith("0.0\n")
