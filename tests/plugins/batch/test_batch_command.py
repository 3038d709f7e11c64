"""``run_eval.py --batch``: the same scores at half the price.

This holds also after the run was killed in between.
"""

import json
import math
import re
from functools import partial

import pytest
from projects import (
    REPOSITORY,
    Project,
    call,
    claim_in,
    read_json,
    run_command,
    start_command,
)
from servers.batch_server import BatchServer, Ending
from servers.judge_server import JudgeServer, prompt_text, status
from servers.recorded_replies import RecordedReplies

from mind2web2.cli import evaluate_main
from mind2web2.judge.store import FILE_NAME, JudgmentStore
from mind2web2.plugins.batch import sender

CLAIMS = {name: (f"The lake is {name}.", None) for name in ("deep", "cold", "wide")}
IN_TWO_ROUNDS = """
leaves = {name: evaluator.add_leaf(name, name) for name in ("deep", "cold", "wide")}
if await evaluator.verify(claim="The lake is deep.", node=leaves["deep"]):
    for name in ("cold", "wide"):
        await evaluator.verify(claim=f"The lake is {name}.", node=leaves[name])
return evaluator.get_summary()
"""
QUICKLY = ("--batch", "--batch_poll", "0.01", "--no_capture")


@pytest.fixture(autouse=True)
def _quick_pace(monkeypatch):
    """Send a job soon after the last question, instead of a second or more later."""
    quickly = partial(sender.BatchPace, pause_s=0.1)
    monkeypatch.setattr(sender, "BatchPace", quickly)


@pytest.fixture
def project(tmp_path):
    """Return a project with two answers of three claims each."""
    project = Project(tmp_path)
    project.add_answer("answer_1")
    project.add_answer("answer_2", "The lake is shallow.")
    project.add_script(CLAIMS)
    return project


def supported(body):
    """Support every claim but one."""
    return {
        "reasoning": "read",
        "result": claim_in(prompt_text(body)) != "The lake is wide.",
    }


def options_for(server, *more):
    """Return the command's options."""
    return [
        "--agent_name",
        "bot",
        "--judge_base_url",
        server.base_url,
        *QUICKLY,
        *more,
    ]


def evaluate(project, server, *more, **place):
    """Run the command as a user does."""
    return run_command(*options_for(server, *more, **place), cwd=project.root)


def scores(project):
    """Return the scores of the newest results."""
    return [
        read_json(project.result_paths(stem)[-1])["final_score"]
        for stem in ("answer_1", "answer_2")
    ]


def test_a_batched_run_reports_its_jobs(project):
    """Its batches, that it may be stopped, and half the price; nothing is left behind."""
    with BatchServer(supported) as server:
        run = evaluate(project, server)
        assert len(server.asked) == len(set(server.asked)) == 12
    assert (run.returncode, run.stderr) == (0, "")
    assert scores(project) == [2 / 3, 2 / 3]
    lines = run.stdout.splitlines()
    assert any(re.fullmatch(r"batch 1: \d+ requests, submitted \d\d:\d\d", line) for line in lines)
    assert any(re.fullmatch(r"batch 1: completed, (\d+) of \1 replies", line) for line in lines)
    assert sum("You may stop this command at any time (Ctrl-C)" in line for line in lines) == 1
    left = project.results / "batches"
    assert [path.name for path in left.iterdir() if path.name != ".lock"] == []
    price = 12 * (40 * 1.10 + 60 * 0.275 + 10 * 4.40) / 1e6 / 2
    assert f"${price:.4f}" in run.stdout
    usage = read_json(project.result_paths()[-1])["judge_usage"]
    assert usage["cost_usd"] == pytest.approx(price / 2, abs=1e-6)
    with JudgmentStore(project.results / FILE_NAME) as store:
        assert {kept.batch for kept in store.all() if kept.purpose != "gate"} == {True}


def test_a_batched_run_is_reused_by_a_direct_one(project):
    """Their judgments are the same, so that nothing is asked again."""
    with BatchServer(supported) as server:
        assert evaluate(project, server).returncode == 0
        for stem in ("answer_1", "answer_2"):
            project.result_paths(stem)[0].unlink()
        asked = len(server.calls)
        run = run_command(
            "--agent_name", "bot", "--judge_base_url", server.base_url, cwd=project.root
        )
        assert len(server.calls) == asked
    assert "0 judgments asked, 12 reused" in run.stdout
    assert scores(project) == [2 / 3, 2 / 3]


def test_a_direct_run_tells_of_open_batches(project):
    with BatchServer(supported) as server, JudgeServer(supported) as other:
        server.held_from = 1
        with start_command(*options_for(server), cwd=project.root) as process:
            server.wait_until_looked_at(1)
            process.kill()
        [record] = (project.results / "batches").glob("*.json")
        assert len(read_json(record)["questions"]) == 12
        elsewhere = run_command(
            "--agent_name", "bot", "--judge_base_url", other.base_url, cwd=project.root
        )
        assert "with --batch" not in elsewhere.stdout
        direct = run_command(
            *options_for(server, "--overwrite")[:4], "--overwrite", cwd=project.root
        )
        [line] = [line for line in direct.stdout.splitlines() if "with --batch" in line]
        server.held_from = math.inf
        after = run_command(*options_for(server)[:4], cwd=project.root)
    assert line == (
        "Warning: an earlier run with --batch left 12 requests in open batches, which are paid "
        "for. This run asks again what it needs, and pays again. To fetch the results of the "
        "batches instead, run the same command with --batch and without --overwrite."
    )
    assert "with --batch" not in after.stdout


def test_a_short_answer_timeout_does_not_end_a_wait(project):
    """A batch takes as long as it takes."""
    with BatchServer(supported) as server:
        run = evaluate(project, server, "--answer_timeout", "0.9")
    assert run.returncode == 0, run.stdout
    assert scores(project) == [2 / 3, 2 / 3]


def test_a_script_that_hangs_is_ended_all_the_same(project):
    """Its time counts once no batch is waited for."""
    project.add_script_body("await asyncio.Event().wait()", task="pond")
    project.add_answer(task="pond")
    with BatchServer(supported) as server:
        run = evaluate(project, server, "--answer_timeout", "0.5")
    assert run.returncode == 1
    assert "pond/answer_1.md: script pond.py did not return within 0.5 s" in run.stdout


def test_a_batch_that_fails_for_good_leaves_answers_without_a_result(project):
    """Each reason once, with the provider's words; the next run asks again."""
    ending = Ending("failed", error=("model_not_found", "No batches for o4-mini."))
    with BatchServer(supported, endings=[ending] * 2) as server:
        run = evaluate(project, server)
        assert run.returncode == 1
        [reason] = re.findall(r"^No result: (.+)$", run.stdout, re.MULTILINE)
        assert reason.startswith("lake/answer_1.md, lake/answer_2.md: ")
        assert "No batches for o4-mini." in reason
        server._endings = []
        assert evaluate(project, server).returncode == 0


def test_a_failing_server_is_reported_at_once(project):
    """With its words in the first warning; every request of every round is counted."""
    with BatchServer(faults=lambda _: status(500, "out of order")) as server:
        run = evaluate(project, server)
        sent = len(server.asked)
    assert (run.returncode, sent) == (1, 4 * 12)
    warnings = run.stderr.splitlines()
    assert (
        warnings[0] == "warning: batch 1 completed, replies to 0 of 12 requests: 500 out of order"
    )
    assert f"Judge use: asked 0, requests {sent}, " in run.stdout
    assert f"{sent - 12} requests tried again (500: {sent - 12})" in run.stdout
    assert "unavailable: 500 out of order" in run.stdout


def test_an_outage_of_the_batch_endpoints_is_reported_at_once(project):
    """Although it is waited for, for an hour if need be."""
    answers = iter([status(503, "down for a moment")] * 2)
    refusals = lambda method, path: next(answers, None) if path == "/files" else None  # noqa: ARG005, E731
    with BatchServer(supported, refusals=refusals) as server:
        run = evaluate(project, server)
    assert run.returncode == 0
    [warning] = run.stderr.splitlines()
    assert warning.startswith("warning: batch endpoints failed, trying again wait_s=")
    assert warning.endswith("reason=503 down for a moment")


def test_an_address_without_a_server_is_reported_at_once(project, monkeypatch):
    """It is most likely wrong, so that no hour is waited for it."""
    monkeypatch.chdir(project.root)
    monkeypatch.setenv("OPENAI_API_KEY", "dummy")
    with BatchServer(supported) as server:
        address = server.base_url
    run = call(evaluate_main, "--agent_name=bot", *QUICKLY, "--judge_base_url", address)
    assert run.returncode == 2
    assert run.stderr.count("\n") == 1
    assert address in run.stderr
    assert "connection error: " in run.stderr


@pytest.mark.parametrize("provider", ["bedrock_anthropic", "replay"])
def test_other_providers_are_refused(project, monkeypatch, provider):
    """Exit status 2 and one line with the cure."""
    monkeypatch.chdir(project.root)
    run = call(evaluate_main, "--agent_name", "bot", "--llm_provider", provider, "--batch")
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (2, "", 1)
    assert "--batch goes with --llm_provider openai or azure_openai" in run.stderr


def test_a_server_without_batches_is_refused(project, monkeypatch):
    """Before anything is asked."""
    monkeypatch.chdir(project.root)
    monkeypatch.setenv("OPENAI_API_KEY", "dummy")
    with JudgeServer() as server:
        run = call(evaluate_main, *options_for(server))
        assert server.calls == []
    assert (run.returncode, run.stderr.count("\n")) == (2, 1)
    assert "has no batch endpoints" in run.stderr and "evaluate without --batch" in run.stderr
    assert not project.result_paths()


def test_the_example_has_its_scores(tmp_path):
    with BatchServer(RecordedReplies()) as server:
        options = [
            "--agent_name",
            "example",
            "--judge_base_url",
            server.base_url,
            *QUICKLY,
        ]
        options += ["--ahead", "values"]
        run = run_command(*options, "--eval_results_root", tmp_path, cwd=REPOSITORY)
        assert (run.returncode, run.stderr) == (0, "")
        assert len(server.asked) == len(set(server.asked)) == 142
    for task, answers in read_json(REPOSITORY / "examples" / "expected_scores.json").items():
        for name, score in answers.items():
            folder = tmp_path / "example" / task / name.removesuffix(".md") / "results"
            [path] = folder.iterdir()
            assert read_json(path)["final_score"] == pytest.approx(score)


def test_replies_that_were_stored_before_a_stop_are_forgotten(project):
    """A run was stopped after it had stored them, and leaves its jobs to the next run.

    The next run needs none of the jobs.
    """
    with BatchServer(supported) as server:
        assert evaluate(project, server).returncode == 0
        keys, endpoint = server.asked, f"openai {server.base_url}"
        record = {
            "number": 1,
            "name": "x",
            "endpoint": endpoint,
            "created_s": 1.0,
            "is_over": True,
        }
        record["questions"] = dict.fromkeys(keys, "body")
        line = {"response": {"status_code": 200, "body": {}}}
        folder = project.results / "batches"
        (folder / "00001.json").write_text(json.dumps(record))
        (folder / "00001.results.jsonl").write_text(
            "".join(json.dumps({"custom_id": key, **line}) + "\n" for key in keys)
        )
        for path in (
            *project.result_paths("answer_1"),
            *project.result_paths("answer_2"),
        ):
            path.unlink()
        assert evaluate(project, server).returncode == 0
        assert server.asked == keys
    assert [path.name for path in folder.iterdir() if path.name != ".lock"] == []
