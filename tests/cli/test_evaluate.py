"""``run_eval.py`` and ``mind2web2 evaluate``: what they are given, what they say, how they end."""

import os
import re
import shutil
import subprocess
import sys
import threading

import pytest
from projects import (
    REPOSITORY,
    TASK,
    call,
    claim_in,
    entered,
    overridden,
    read_json,
    run_command,
)
from servers.judge_server import JudgeServer, prompt_text, status

from mind2web2.cli import evaluate_main, main
from mind2web2.judge.store import STORE_NAME

CLAIMS = {
    "first": ("The lake is deep.", None),
    "second": ("The lake is cold.", None),
    "third": ("The lake is wide.", None),
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a project with one task of two answers, in which commands run."""
    project = entered(tmp_path, monkeypatch)
    project.add_answer("answer_1")
    project.add_answer("answer_2", "The lake is shallow.")
    project.add_script(CLAIMS)
    return project


@pytest.fixture
def server():
    """Return a judge that supports every claim but one."""

    def reply(body):
        return {
            "reasoning": "read",
            "result": claim_in(prompt_text(body)) != "The lake is wide.",
        }

    with JudgeServer(reply) as server:
        yield server


def evaluate(server, *more):
    """Evaluate the project's answers in this process."""
    return call(evaluate_main, "--agent_name", "bot", "--judge_base_url", server.base_url, *more)


@pytest.mark.usefixtures("project")
def test_both_commands_are_the_same(server):
    """The agent may be given either way; options take hyphens and ``=``."""
    url = f"--judge-base-url={server.base_url}"
    for command, *words in (
        (main, "evaluate", "--agent-name=bot"),
        (evaluate_main, "bot"),
    ):
        run = call(command, *words, url)
        assert (run.returncode, run.stderr) == (0, "")
    assert len(server.requests) == 12


def test_the_output_of_a_run(project, server):
    """The command prints a line per answer, and then the figures.

    It shows the scores by task, the metrics, the judge and the cost, and where the results are.
    """
    run = evaluate(server, "--max_concurrent_answers", "1")
    lines = run.stdout.splitlines()
    assert lines[0].startswith("[1/2] lake/answer_1.md: 0.67")
    assert lines[1].startswith("[2/2] lake/answer_2.md: 0.67")
    for words in (
        "1: 0.67  2: 0.67",
        "bot, all results: 1 task, 2 runs",
        "pass@2",
        "12 judgments asked, 0 reused",
    ):
        assert words in run.stdout
    assert lines[-1] == "Results: eval_results/bot"
    assert "lake" in run.stdout and "example" in run.stdout
    assert {path.name for path in project.results.iterdir()} >= {
        TASK,
        "summary.json",
        "run.log",
        STORE_NAME,
    }


def test_the_judge_is_the_one_given(project, server):
    """Model and parameters go into the requests and the results."""
    run = evaluate(
        server,
        "--judge_model",
        "gpt-4o",
        "--judge_temperature",
        "0.3",
        "--judge_reasoning_effort",
        "low",
    )
    assert run.returncode == 0
    sent = {
        (body["model"], body.get("temperature"), body.get("reasoning_effort"))
        for body in server.requests
    }
    assert sent == {("gpt-4o", 0.3, "low")}
    assert read_json(project.result_paths()[0])["judge_model"] == "gpt-4o"


def test_the_environment_names_server_and_key(project, server, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-mine")
    assert call(evaluate_main, "--agent_name", "bot").returncode == 0
    assert {call.headers["authorization"] for call in server.calls} == {"Bearer sk-mine"}
    assert "sk-mine" not in "".join(
        path.read_text(errors="replace") for path in project.results.rglob("*") if path.is_file()
    )


def test_folders_may_be_elsewhere(project, server, tmp_path):
    moved = {
        "answers": "--answer_folder",
        "eval_scripts": "--eval_scripts_root",
        "cache": "--cache_root",
        "eval_results": "--eval_results_root",
    }
    project.cache().put_web("https://a.example", "text", None)
    for name in moved:
        (project.root / name).mkdir(exist_ok=True)
        (project.root / name).rename(tmp_path / f"my_{name}")
    options = [f"{option}={tmp_path / f'my_{name}'}" for name, option in moved.items()]
    assert evaluate(server, *options).returncode == 0
    assert (tmp_path / "my_eval_results" / "all_results.json").is_file()
    assert not (tmp_path / "eval_results").exists()


def test_a_version_may_be_pinned(project, server):
    project.add_script({"dated": ("The lake is old.", None)}, version="2025_07_14")
    project.add_script({"newest": ("The lake is new.", None)}, version="2025_10_02")
    for more, version in (
        ([], "2025_10_02"),
        (["--eval_version", "2025_07_14"], "2025_07_14"),
        (["--eval_version", "example"], "example"),
    ):
        run = evaluate(server, *more)
        assert run.returncode == 0
        assert version in run.stdout
        assert read_json(project.result_paths()[-1])["provenance"]["script"] == f"{version}/lake.py"


def test_at_most_so_many_requests_at_once(project):
    """The server counts, and holds the first ones back until there are as many as allowed."""
    for number in range(3, 6):
        project.add_answer(f"answer_{number}", f"Text {number}.")
    full = threading.Event()

    def reply(_body):
        if server.most_at_once >= 3:
            full.set()
        return {"reasoning": "read", "result": full.wait(30)}

    with JudgeServer(reply) as server:
        run = evaluate(server, "--max_llm_requests", "3", "--max_concurrent_answers", "5")
        assert run.returncode == 0
        assert (server.most_at_once, len(server.requests)) == (3, 30)


@pytest.mark.parametrize(
    ("options", "tasks", "least", "most"),
    [
        ([], 60, 20, 30),
        (["--max_concurrent_tasks", "2", "--max_concurrent_answers", "1"], 4, 4, 4),
        (["--max_concurrent_tasks", "2"], 4, 4, 4),
    ],
)
def test_short_tasks_keep_the_judge_busy(tmp_path, project, options, tasks, least, most):
    """As many answers run at once as the judge takes; the bounds of the options are obeyed."""
    for path in (tmp_path / "answers" / "bot" / TASK).iterdir():
        path.unlink()
    for number in range(tasks):
        project.add_answer("answer_1", f"Text {number}.", f"task_{number}")
        project.add_script({"leaf": ("The lake is deep.", None)}, task=f"task_{number}")
    full = threading.Event()

    def reply(_body):
        if server.most_at_once >= least:
            full.set()
        # Not for long: the window begins small and grows with each reply.
        full.wait(1)
        return {"reasoning": "read", "result": True}

    with JudgeServer(reply) as server:
        assert evaluate(server, *options).returncode == 0
        # Each answer takes two votes at once.
        assert least <= server.most_at_once <= most
        assert (full.is_set(), len(server.requests)) == (True, 2 * tasks)


def test_failures_are_listed_and_the_rest_is_scored(project, server):
    project.add_answer("answer_4", b"\xff")
    project.add_answer("answer_5", "x" * 5_000_000)
    (project.root / "answers" / "bot" / TASK / "answer_6.md").mkdir()
    project.add_answer(task="broken")
    project.add_raw_script("def f(:\n", task="broken")
    project.add_answer(task="unscripted")
    (project.root / "answers" / "bot" / TASK / "notes.txt").write_text("ignored")
    run = evaluate(server)
    assert (run.returncode, run.stderr) == (1, "")
    reasons = dict(re.findall(r"^No result: (\S+): (.+)$", run.stdout, re.MULTILINE))
    expected = {
        "lake/answer_4.md": "is not UTF-8",
        "lake/answer_5.md": "more than 1,000,000 bytes",
        "lake/answer_6.md": "Is a directory",
        "broken/answer_1.md": "script broken.py has a syntax error in line 1",
        "unscripted/answer_1.md": "no script for task unscripted",
    }
    assert reasons.keys() == expected.keys()
    assert [name for name, words in expected.items() if words not in reasons[name]] == []
    assert "1: 0.67  2: 0.67  4: -" in run.stdout
    assert "Note: lake: ignored notes.txt" in run.stdout
    assert "Warning: answers without a score: " in run.stdout
    log = (project.results / "run.log").read_text(encoding="utf-8")
    assert [reason for reason in reasons.values() if reason not in log] == []
    assert [entry["score"] for entry in project.task_summary().values()] == [
        2 / 3,
        2 / 3,
    ] + [None] * 3


def test_a_warning_is_one_line(project, server, monkeypatch):
    assert evaluate(server).returncode == 0
    [path] = project.result_paths()
    path.write_bytes(b"{")
    monkeypatch.setenv("COLUMNS", "40")
    run = evaluate(server)
    assert run.returncode == 0
    [warning] = [line for line in run.stderr.splitlines() if line.startswith("warning: ")]
    assert warning.startswith(
        f"warning: damaged result, counts as none path={path.relative_to(project.root)} "
    )
    assert warning.removeprefix("warning: ") in (project.results / "run.log").read_text()


def test_a_wrong_key_ends_the_run_with_one_line(project):
    """No retry, no score, and the key itself is nowhere."""
    with JudgeServer(faults=lambda _: status(401, "Incorrect API key: dummy")) as server:
        run = evaluate(server)
        # Both trials of all three claims of both answers are in flight when the first of them
        # fails.
        assert len(server.requests) <= 12
    assert run.returncode == 2
    [line] = run.stderr.splitlines()
    assert "the key is refused, check OPENAI_API_KEY" in line
    assert "dummy" not in run.stdout + run.stderr
    assert project.result_paths() == [] and "scored" not in run.stdout


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--agent_name", ".."], "agent '..' begins with a dot"),
        (["--agent_name", "a/../b"], "agent 'a/../b' contains"),
        (["--agent_name", "/etc"], "agent '/etc' contains"),
        (["--agent_name", ""], "name the agent to evaluate"),
        (["--agent_name", "nobody"], "no agent nobody under answers. Found: bot"),
        (["--task_id", "../lake"], "task '../lake' begins with a dot"),
        (["--task_id", "a/b"], "task 'a/b' contains"),
        (
            ["--task_id", "sea"],
            "no answers to task sea under answers/bot. Found: lake",
        ),
        (["--eval_version", "../x"], "eval version '../x' begins with a dot"),
        (
            ["--eval_version", "2030_01_01"],
            "no eval version 2030_01_01 under eval_scripts. Found: example",
        ),
        (["--answer_folder", "gone"], "no answers folder gone"),
        (["--eval_scripts_root", "gone"], "there is no folder gone"),
        (["--cache_root", "gone", "--no_capture"], "--cache_root gone is not a folder"),
        (
            ["--judgments", "x.jsonl"],
            "--judgments FILE goes with --llm_provider replay",
        ),
        (
            ["--llm_provider", "replay"],
            "no judgments at eval_results/bot/judgments.sqlite3",
        ),
        (
            ["--llm_provider", "replay", "--judgments", "x.jsonl"],
            "no judgments at x.jsonl",
        ),
        (["--judge_base_url", "localhost:8000"], "base URL"),
    ],
)
def test_a_run_that_cannot_start(project, more, message):
    """Exit status 2 and one line that names the object and the cure; nothing else is printed."""
    usual = ("--agent_name", "bot", "--judge_base_url", "http://127.0.0.1:9/v1")
    run = call(evaluate_main, *overridden(usual, more))
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("run_eval.py: ")
    assert run.stderr.count("\n") == 1
    assert message in run.stderr
    assert not list(project.root.rglob("*.md.json"))


@pytest.mark.usefixtures("project")
def test_an_agent_is_named_once(server):
    """Twice the same will do, with the slash that a shell's completion adds.

    Two different ones will not.
    """
    url = f"--judge_base_url={server.base_url}"
    assert call(main, "evaluate", "bot/", url).returncode == 0
    assert call(main, "evaluate", "bot", "--agent_name", "bot", url).returncode == 0
    run = call(main, "evaluate", "bot", "--agent_name", "other", url)
    assert (run.returncode, run.stderr.count("\n")) == (2, 1)
    assert "name one agent, not " in run.stderr


def test_reasons_for_low_scores_are_reported(project, server):
    """Pages that could not be had, and leaves that the script never decided; once each."""
    page = "https://www.lake.example/gone"
    project.add_script_body(
        f"""
        leaf = evaluator.add_leaf("cited", "cited")
        evaluator.add_leaf("forgotten", "forgotten")
        await evaluator.verify(claim="The lake is deep.", node=leaf, sources={page!r})
        return evaluator.get_summary()
        """
    )
    run = evaluate(server, "--no_capture")
    assert run.returncode == 0
    warnings = [line for line in run.stdout.splitlines() if line.startswith("Warning: ")]
    assert warnings == [
        "Warning: 1 cited page unavailable (lake 1); claims on them are not supported",
        "Warning: lake.py, line 20: leaf 'forgotten' is never judged, and counts 0 "
        "(lake/answer_1.md, lake/answer_2.md)",
    ]


def test_extractions_without_their_page_are_reported(project, server):
    """Scores drop for them as well, where no claim is judged on the page."""
    page = "https://www.lake.example/gone"
    project.add_script_body(
        f"""
        from pydantic import BaseModel
        Depth = type("Depth", (BaseModel,), {{"__annotations__": {{"metres": str | None}}}})
        found = await evaluator.extract("The depth.", Depth, "depth", source={page!r})
        evaluator.add_custom_node(found.metres, "has_depth", "it has a depth")
        return evaluator.get_summary()
        """
    )
    for _ in ("judged", "reused"):
        run = evaluate(server, "--no_capture")
        assert run.returncode == 0
        warnings = [line for line in run.stdout.splitlines() if line.startswith("Warning: ")]
        assert warnings == [
            "Warning: 1 cited page unavailable (lake 1)",
            "Warning: extractions: 2 empty, because a page was unavailable",
        ]


@pytest.mark.parametrize(
    ("provider", "variable"),
    [
        ("openai", "OPENAI_API_KEY"),
        ("azure_openai", "AZURE_OPENAI_API_KEY"),
        ("bedrock_anthropic", "AWS_ACCESS_KEY"),
    ],
)
def test_without_a_key(project, provider, variable):
    run = run_command(
        "--agent_name",
        "bot",
        "--llm_provider",
        provider,
        cwd=project.root,
        OPENAI_API_KEY="",
    )
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.count("\n") == 1
    assert variable in run.stderr
    assert not list(project.root.rglob("*.md.json"))


@pytest.mark.parametrize(
    "obstacle", ["eval_results", "eval_results/bot", f"eval_results/bot/{STORE_NAME}"]
)
def test_results_that_cannot_be_written(project, server, obstacle):
    """One line that names the folder, before anything is asked."""
    path = project.root / obstacle
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("in the way " * 100)
    run = evaluate(server)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.count("\n") == 1
    assert "eval_results/bot" in run.stderr
    assert server.requests == []
    assert path.read_text() == "in the way " * 100


@pytest.mark.parametrize("obstacle", ["eval_results", "eval_results/bot"])
def test_replayed_results_that_cannot_be_written(project, server, obstacle):
    assert evaluate(server).returncode == 0
    (project.results / STORE_NAME).rename(project.root / "kept.sqlite3")
    shutil.rmtree(project.root / "eval_results")
    path = project.root / obstacle
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("in the way")
    run = call(
        evaluate_main,
        "--agent_name=bot",
        "--llm_provider=replay",
        f"--judgments={project.root}/kept.sqlite3",
    )
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("run_eval.py: cannot write to eval_results/bot: ")
    assert run.stderr.count("\n") == 1


def test_a_cache_that_cannot_be_written_is_harmless(project, server):
    (project.root / "cache").write_text("in the way")
    run = evaluate(server, "--dump_cache")
    assert (run.returncode, run.stderr) == (0, "")


def test_all_is_logged_to_the_console_on_request(project, server):
    assert "verified node=first" not in evaluate(server).stderr
    run = evaluate(server, "--overwrite", "--self_debug")
    assert "verified node=first" in run.stderr
    project.add_script_body("raise ValueError('bad luck')")
    assert "Traceback" in evaluate(server, "--self_debug").stderr


def test_odd_names_are_shown_as_they_are(project, server):
    names = ("[red]x", "[link=y]", "a [b] [c", ":cat:")
    for name in names:
        project.add_answer(task=name)
        project.add_script(CLAIMS, task=name)
    run = evaluate(server)
    assert run.returncode == 0
    assert [name for name in names if f"│ {name} " not in run.stdout] == []


def test_help_answers_without_the_heavy_libraries(project):
    code = (
        "import sys; from mind2web2.cli import evaluate_main\n"
        "try: evaluate_main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = 'openai anthropic PIL pypdfium2 googlemaps arxiv genai_prices rich "
        "pydantic'.split()\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=project.root,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.splitlines()[-1] == "[]"


def test_extracted_values_are_shown_for_writing_scripts(project, server):
    project.add_script_body(
        """
        from pydantic import BaseModel
        class Verdict(BaseModel):
            reasoning: str
        await evaluator.extract("Why?", Verdict, "why")
        return evaluator.get_summary()
        """
    )
    run = evaluate(server, "--self_debug")
    value = '{"reasoning":"read"}'
    assert f"extracted name=why url=None declined=None value={value}" in run.stdout + run.stderr
    asked = len(server.requests)
    again = evaluate(server, "--self_debug").stdout.splitlines()
    place = again.index(
        "lake/answer_1.md: reused, so its script did not run. These values are stored:"
    )
    assert again[place + 1 : place + 4] == [
        "  why",
        "    {",
        '      "reasoning": "read"',
    ]
    assert len(server.requests) == asked


def test_unknown_keys_of_a_meta_file_are_named(project, server):
    """A slip would lose the agent's time without a word."""
    (project.root / "answers/bot/lake/answer_1.meta.json").write_text('{"time": 99}')
    told = (
        "lake: ignored unknown keys in .meta.json files: answer_1: time."
        " Known keys: time_seconds and created"
    )
    assert f"Note: {told}" in evaluate(server).stdout


@pytest.mark.usefixtures("project")
def test_the_time_stands_at_the_end(server):
    evaluate(server)
    run = evaluate(server)
    assert re.fullmatch(r"Time: \d+ s\.", run.stdout.splitlines()[-2])
    assert (
        run.stdout.splitlines()[-3]
        == "To see why an answer has its score: mind2web2 show bot TASK ANSWER"
    )
    assert "Judge use" not in run.stdout
