"""The benchmark in Inspect: its task and scorer, and results as a log that its viewer opens."""

import json
import os
import re
import socket
import subprocess
import sys
from contextlib import contextmanager

import pytest
from patchright.async_api import async_playwright, expect
from projects import REPOSITORY, Project, call, claim_in
from servers.judge_server import JudgeServer, prompt_text, status

from mind2web2.capture.browser_program import find_browser
from mind2web2.cli import evaluate_main, main

ANSWER = REPOSITORY / "answers/example/museum_saturday/answer_1.md"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Evaluate the example once."""
    folder = tmp_path_factory.mktemp("results")
    options = ["--agent_name", "example", "--llm_provider", "replay"]
    options += ["--judgments", REPOSITORY / "examples/judgments.jsonl"]
    options += ["--answer_folder", REPOSITORY / "answers"]
    options += ["--eval_scripts_root", REPOSITORY / "eval_scripts"]
    options += ["--cache_root", REPOSITORY / "cache", "--eval_results_root", folder]
    assert call(evaluate_main, *options).returncode == 0
    return folder


@pytest.fixture(scope="module")
def log(root, tmp_path_factory):
    """Write the example's results as a log."""
    path = tmp_path_factory.mktemp("logs") / "example.eval"
    outcome = exported(root, path)
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert outcome.stdout == f"9 samples written to {path}\n"
    return path


def read_log(path):
    """Return the content of a log."""
    # At the top, every process that collects the tests would load it, for two seconds.
    from inspect_ai.log import read_eval_log

    return read_eval_log(str(path))


def exported(root, path, *more):
    """Export the example's results as a log."""
    words = ["export", "example", "--eval_results_root", root, "--inspect", path]
    return call(main, *words, *more)


def test_a_run_is_an_epoch_and_a_leaf_is_in_the_metadata(log):
    read = read_log(log)
    assert read.status == "success"
    assert (read.eval.task, read.eval.model) == ("mind2web2", "example")
    assert read.eval.config.epochs == 3
    [figures] = read.results.scores
    assert (figures.scored_samples, figures.unscored_samples) == (9, 0)
    assert figures.metrics["mean"].value == pytest.approx(0.6034, abs=1e-3)
    scores = {(sample.id, sample.epoch): sample.scores["rubric_tree"] for sample in read.samples}
    score = scores["museum_saturday", 1]
    assert score.value == pytest.approx(0.4444, abs=1e-3)
    assert "**failed** `" in score.explanation
    leaf = next(leaf for leaf in score.metadata["leaves"] if leaf["leaf"] == "tour_start_supported")
    assert leaf["verdict"] == "passed"
    assert "guided tour" in leaf["claim"]
    [sample] = [one for one in read.samples if (one.id, one.epoch) == ("museum_saturday", 1)]
    assert sample.output.completion == ANSWER.read_text(encoding="utf-8")


def test_an_answer_without_a_result_is_unscored(root, tmp_path):
    copy = tmp_path / "eval_results"
    subprocess.run(["cp", "-r", root, copy], check=True)
    for result in (copy / "example/museum_saturday/answer_1/results").glob("*.json"):
        result.unlink()
    summary = copy / "example/museum_saturday/summary.json"
    entries = json.loads(summary.read_text())
    entries[0] |= {"score": None, "reason": "the judge was away"}
    summary.write_text(json.dumps(entries))
    path = tmp_path / "example.json"
    assert exported(copy, path).returncode == 0
    read = read_log(path)
    [figures] = read.results.scores
    assert (figures.scored_samples, figures.unscored_samples) == (8, 1)
    [sample] = [one for one in read.samples if one.id == "museum_saturday" and one.epoch == 1]
    score = sample.scores["rubric_tree"]
    assert score.value != score.value  # Inspect's sign for a score that there is not
    assert score.explanation == "the judge was away"


@pytest.mark.parametrize(
    ("name", "more", "message"),
    [
        ("log.csv", [], "ends in .eval or .json"),
        ("log.eval", ["--answers"], "--answers and --anonymous go with -o FILE"),
    ],
)
def test_other_exports_are_refused(root, tmp_path, name, more, message):
    outcome = exported(root, tmp_path / name, *more)
    assert outcome.returncode == 2
    assert message in outcome.stderr


_SOLVER = """\
from inspect_ai.model import ModelOutput
from inspect_ai.solver import solver

@solver
def my_agent():
    async def solve(state, generate):
        text = "The lake is deep." if state.epoch == 1 else "The lake is hidden."
        state.output = ModelOutput.from_content("my_agent", text)
        return state
    return solve
"""
CLAIMS = {"deep": ("The lake is deep.", None), "wide": ("The lake is wide.", None)}


def test_inspect_runs_the_task_by_its_name(tmp_path):
    Project(tmp_path).add_script(CLAIMS)
    (tmp_path / "tasks.csv").write_text("task_id,task_description\nlake,How deep?\n")
    (tmp_path / "agent.py").write_text(_SOLVER)

    def fault(body):
        return status(400, "asleep") if "hidden" in prompt_text(body) else None

    def reply(body):
        return {
            "reasoning": "read",
            "result": "wide" not in claim_in(prompt_text(body)),
        }

    with JudgeServer(reply, faults=fault) as judge:
        command = [sys.executable, "-m", "inspect_ai", "eval", "mind2web2/mind2web2"]
        command += ["--solver", "agent.py", "--model", "mockllm/model"]
        command += ["--epochs", "2", "--log-dir", "logs", "--display", "none"]
        server = f"judge_base_url={judge.base_url}"
        judged = (server, "judge_model=own", "max_cost=5", "task_list=tasks.csv")
        for given in judged:
            command += ["-T", given]
        (tmp_path / "mind2web2.toml").write_text("[prices.own]\ninput = 1\noutput = 2\n")
        outcome = subprocess.run(
            command,
            cwd=tmp_path,
            env=os.environ | {"OPENAI_API_KEY": "dummy"},
            capture_output=True,
            text=True,
            check=False,
        )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert "Traceback" not in outcome.stdout + outcome.stderr
    [path] = (tmp_path / "logs").glob("*.eval")
    read = read_log(path)
    assert read.status == "success", read.error
    first, second = sorted(read.samples, key=lambda sample: sample.epoch)
    score = first.scores["rubric_tree"]
    assert (first.input, score.value) == ("How deep?", 0.5)
    assert "- **failed** `wide`: The lake is wide." in score.explanation
    assert [leaf["verdict"] for leaf in score.metadata["leaves"]] == [
        "passed",
        "failed",
    ]
    unscored = second.scores["rubric_tree"]
    assert unscored.value != unscored.value
    assert unscored.metadata["kind"] == "judge"
    assert "asleep" in unscored.explanation
    [figures] = read.results.scores
    assert figures.metrics["mean"].value == 0.5


@contextmanager
def viewed(log):
    """Serve a folder of logs by ``inspect view``."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "inspect_ai", "view", "start"]
    command += ["--log-dir", str(log.parent), "--port", str(port)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as server:
        for line in server.stdout:
            if re.search(r"running|Running", line):
                break
        try:
            yield f"http://127.0.0.1:{port}/"
        finally:
            server.terminate()
            server.stdout.read()


async def test_inspect_view_opens_the_log(log):
    """A browser shows the tasks, and the evidence of an answer."""
    with viewed(log) as address:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(
                executable_path=find_browser(headless=True).path
            )
            page = await browser.new_page()
            await page.goto(f"{address}#/logs/{log.name}")
            await expect(page.get_by_text("museum_saturday").first).to_be_visible(timeout=60_000)
            await browser.close()
