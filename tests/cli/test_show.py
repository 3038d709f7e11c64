"""``mind2web2 show``: from an agent's tasks down to the details of one answer.

The details are claims, reasons and page files.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from projects import KEY_VARIABLES, Project, call, claim_in, clean_environment
from servers.judge_server import JudgeServer, prompt_text

from mind2web2.cli import main

PAGE = "https://lake.example/depth"
CLAIMS = {
    "deep": ("The lake is deep.", None),
    "wide": ("The lake is wide.", PAGE),
    "far": ("The lake is far.", "https://gone.example/x"),
}
BODY = """
from pydantic import BaseModel
class Depth(BaseModel):
    depth_m: int | None
await evaluator.extract("How deep is it?", Depth, "depth")
gate = evaluator.add_leaf("gate", "It is a lake", critical=True)
await evaluator.verify("The lake is wide.", gate, sources="https://lake.example/depth")
after = evaluator.add_leaf("after", "It is deep")
await evaluator.verify("The lake is deep.", after)
evaluator.add_custom_node(0, "is_listed", "It is listed", critical=False)
return evaluator.get_summary()
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Return a project with two evaluated tasks.

    One task fails a critical claim, and one cites a missing page.
    """

    def reply(body):
        claim = claim_in(prompt_text(body))
        if claim is None:
            return {"depth_m": 412}
        quote = "The lake is narrow" if claim == "The lake is wide." else "It says so."
        return {
            "reasoning": f"I read about: {claim}",
            "result": claim != "The lake is wide.",
            "quote": quote,
        }

    with pytest.MonkeyPatch.context() as patch, JudgeServer(reply) as server:
        folder = tmp_path_factory.mktemp("show")
        _prepare(patch, folder)
        project = Project(folder)
        for task in ("lake", "pond"):
            project.add_answer("answer_1", task=task)
        project.add_script_body(BODY)
        project.add_script(CLAIMS, task="pond")
        for task in ("lake", "pond"):
            project.cache(task).put_web(PAGE, "The lake is narrow.", None)
        run = call(main, "evaluate", "bot", "--judge_base_url", server.base_url, "--no_capture")
        assert run.returncode == 0, run.stderr
        project.add_answer("answer_2", b"\xff", task="pond")
        project.add_answer("answer_3", "", task="pond")
        call(main, "evaluate", "bot", "--judge_base_url", server.base_url, "--no_capture")
        yield project


@pytest.fixture
def show(project, monkeypatch):
    """Return the command, run in the project's folder."""
    _prepare(monkeypatch, project.root)
    return lambda *words: call(main, "show", *words)


def _prepare(patch, folder):
    for name in (*KEY_VARIABLES, "UV"):
        patch.delenv(name, raising=False)
    patch.setenv("OPENAI_API_KEY", "dummy")
    patch.setenv("COLUMNS", "80")
    patch.setattr(sys, "argv", ["mind2web2"])
    patch.chdir(folder)


def test_an_agent_is_shown_by_tasks(show):
    run = show("bot")
    assert run.returncode == 0
    for words in (
        "2 tasks, 4 answers",
        "1: 0 ",
        "1: 0.33  2: -  3: 0",
        "Judged by o4-mini",
    ):
        assert words in run.stdout
    assert run.stdout.endswith("To see the answers to a task: mind2web2 show bot lake\n")
    moved = call(main, "show", "bot", "--eval_results_root", f"{Path.cwd()}/eval_results")
    assert f"show bot lake --eval_results_root {Path.cwd()}/eval_results\n" in moved.stdout


def test_a_task_is_shown_by_answers(show):
    run = show("bot", "pond")
    assert "answer_1 │ 0.33 │ 1 │ 2 │ 0 │ 0 │ 6" in " ".join(run.stdout.split())
    assert "No result: answer_2.md: answer answers/bot/pond/answer_2.md is not UTF-8" in run.stdout
    assert "Score 0: answer_3.md: the agent gave an empty answer" in run.stdout


def test_a_run_without_an_answer_has_its_reason(show):
    """A run counts as 0 where the agent gave none."""
    assert (
        "answer_3: score 0\nReason: the agent gave an empty answer\n"
        in show("bot", "pond", "3").stdout
    )


def test_an_earlier_result_that_does_not_count_is_only_named(project, monkeypatch, tmp_path):
    shutil.copytree(project.root, tmp_path / "copy")
    _prepare(monkeypatch, tmp_path / "copy")
    Path("answers/bot/pond/answer_1.md").write_bytes(b"\xff")
    words = ("--task_id", "pond", "--llm_provider", "replay")
    assert call(main, "evaluate", "bot", *words).returncode == 1
    text = call(main, "show", "bot", "pond", "1").stdout
    assert text.startswith("bot / pond / answer_1: no result\nReason: ")
    assert "\nEarlier result, which does not count: eval_results/bot/pond/answer_1/" in text
    assert "Rubric tree" not in text
    table = " ".join(call(main, "show", "bot", "pond").stdout.split())
    assert "answer_1 │ - │ - │ - │ - │ - │ 6" in table


@pytest.mark.parametrize("name", ["answer_1", "answer_1.md", "1"])
def test_an_answer_is_shown_with_all_that_decided(show, project, name):
    """Marks, claims, reasons, pages with their files, and what was extracted; within 80 columns."""
    run = show("bot", "lake", name)
    lines = run.stdout.splitlines()
    [text] = list((project.root / "cache/bot/lake").glob("*.txt"))
    for expected in (
        "bot / lake / answer_1: score 0",
        "Rubric tree: 0 passed, 2 failed, 1 skipped, 0 never judged. A node marked * is",
        "    0 = gate closed by critical gate 0",
        "  failed * gate",
        "      Claim: The lake is wide.",
        "      Page [1]: not supported",
        "      Judge: no (2 of 2 votes): I read about: The lake is wide.",
        "  skipped after",
        "      not judged, because 'gate' failed",
        "  failed is_listed",
        "      checked by the script without a judge: not met (value: 0)",
        f"[1] {PAGE}",
        f"    {text.relative_to(project.root)}",
        '    "depth_m": 412',
    ):
        assert expected in lines
    assert all(len(line) <= 80 for line in lines if "results/" not in line)


def test_quotations_say_whether_they_were_found(show):
    assert 'Quote from the page: "The lake is narrow"' in show("bot", "lake", "1").stdout
    found = " ".join(show("bot", "pond", "1").stdout.split())
    assert 'Quote from the answer, not found in the answer: "It says so."' in found


def test_a_page_that_was_unavailable_says_why(show):
    run = show("bot", "pond", "1")
    assert "Page [2]: unavailable: " in run.stdout
    assert "[2] https://gone.example/x" in run.stdout


def test_only_what_failed(show):
    """The rest of the tree is left out."""
    run = show("bot", "pond", "1", "--failed")
    assert "failed wide" in run.stdout and "passed deep" not in run.stdout


def test_a_page_that_has_changed_says_so(show, project):
    cache = project.cache("pond")
    cache.put_web(PAGE, "The lake is another one.", None)
    assert "The page has changed since it was judged." in show("bot", "pond", "1").stdout
    cache.put_web(PAGE, "The lake is narrow.", None)
    assert "The page has changed" not in show("bot", "pond", "1").stdout


def test_an_answer_without_a_result_says_why(show):
    run = show("bot", "pond", "2")
    assert (
        "bot / pond / answer_2: no result\nReason: answer answers/bot/pond/answer_2.md"
        in run.stdout
    )


@pytest.mark.parametrize(
    "damage",
    [
        {
            "eval_breakdown": [
                {
                    "verification_tree": {
                        "status": "partial",
                        "score": "high",
                        "children": 7,
                    }
                }
            ]
        },
        {
            "doubts": 5,
            "extractions": 3,
            "run": [],
            "provenance": 7,
            "eval_breakdown": [5],
        },
        {
            "eval_breakdown": [
                {
                    "info": {"a": 1},
                    "verification_tree": {"evidence": {"pages": [{"url": 1}]}},
                }
            ]
        },
        {"eval_breakdown": [{"verification_tree": {"id": "\ud800 \x1b[31m", "evidence": [7]}}]},
    ],
)
def test_a_damaged_result_is_shown_as_far_as_it_goes(show, project, damage):
    """Whatever stands in the file: no traceback, and a line says that it was changed."""
    [path] = project.result_paths(task="pond")
    whole = path.read_text(encoding="utf-8")
    path.write_text(json.dumps(json.loads(whole) | damage), encoding="utf-8")
    run = show("bot", "pond", "1")
    path.write_text(whole, encoding="utf-8")
    assert run.returncode == 0
    if "provenance" not in damage:  # which holds the checksum
        assert "was changed after it was written: evaluate it again" in " ".join(run.stdout.split())


@pytest.mark.parametrize("coding", ["ascii", "latin-1", "utf-8:strict"])
def test_any_output_encoding_will_do(project, coding):
    """A character that it lacks is written as an escape, also in a log line and in an error."""
    [path] = project.result_paths()
    whole = path.read_text(encoding="utf-8")
    path.write_text(
        whole.replace("I read about", "\\ud800 ü 漢 \\u0001 I read about"),
        encoding="utf-8",
    )
    for words in (["bot", "lake", "1"], ["bot", "漢"]):
        run = subprocess.run(
            [sys.executable, "-m", "mind2web2", "show", *words],
            cwd=project.root,
            env={**clean_environment(), "PYTHONIOENCODING": coding},
            capture_output=True,
            check=False,
        )
        assert (run.returncode, b"Traceback" in run.stderr) == (
            2 * (words[-1] == "漢"),
            False,
        )
    path.write_text(whole, encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["cat"],
            "no results of agent cat under eval_results: run mind2web2 evaluate cat first. There "
            "are",
        ),
        (["bot", "sea"], "no results of agent bot for task sea; found: lake, pond"),
        (
            ["bot", "-dash"],
            "no results of agent bot for task -dash; found: lake, pond",
        ),
        (["bot", "lake", "7"], "no result of answer 7 to task lake. Found: answer_1"),
        (["bot", "--failed"], "--failed needs an answer"),
    ],
)
def test_a_wrong_name_is_answered_with_the_right_ones(show, words, message):
    run = show(*words)
    assert run.returncode == 2 and message in run.stderr and run.stderr.count("\n") == 1


def test_the_package_can_be_run_as_a_module(project):
    """``python -m mind2web2``; commands that it suggests are spelled the same way."""
    run = subprocess.run(
        [sys.executable, "-m", "mind2web2", "show", "bot"],
        cwd=project.root,
        env={name: value for name, value in clean_environment().items() if name != "UV"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.endswith("To see the answers to a task: python -m mind2web2 show bot lake\n")


def test_public_names_are_listed():
    import mind2web2

    assert {*mind2web2.__all__, "__version__"} <= set(dir(mind2web2))
