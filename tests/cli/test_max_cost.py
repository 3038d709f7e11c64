"""``--max_cost``: a run stops when the budget is reached, keeps what is done and can go on."""

import re
import signal
import threading

import pytest
from projects import TASK, call, entered, overridden, read_json, start_command
from servers.judge_server import JudgeServer

from mind2web2.cli import evaluate_main

COUNT = 40
# gpt-4o: 2,000 tokens in at $2.50 and 500 out at $10 a million.
PRICE_USD = 0.01
MODEL = ("--judge_model", "gpt-4o")
OPTIONS = ("--agent_name", "bot", "--no_capture")
# Every answer is under way at once.
AT_ONCE = ("--max_llm_requests", "200", "--max_concurrent_answers", str(COUNT))


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a project with many answers, each of which takes two requests."""
    project = entered(tmp_path, monkeypatch)
    for number in range(COUNT):
        project.add_answer(f"answer_{number + 1}", f"Text {number}.")
    project.add_script({"leaf": ("The lake is deep.", None)})
    return project


@pytest.fixture
def hill(project):
    """Return a project with another task, of one answer, and the options that evaluate it alone."""
    project.add_answer(task="hill")
    project.add_script({"leaf": ("The lake is deep.", None)}, task="hill")
    return project, ("--task_id", "hill")


@pytest.fixture
def server():
    """Return a judge whose every reply costs a hundredth of a dollar."""
    with JudgeServer(input_tokens=2000, cached_tokens=0, output_tokens=500) as server:
        yield server


def evaluate(server, *more):
    """Evaluate with this judge."""
    words = overridden((*MODEL, *AT_ONCE, "--judge_base_url", server.base_url), more)
    return call(evaluate_main, *OPTIONS, *words)


def test_a_run_stops_at_its_budget_and_goes_on(project, server):
    """Finished answers have their scores, the others none; nothing is asked twice."""
    scored = []
    for limit_usd in ("0.30", "0.30", "5"):
        before = len(server.calls)
        run = evaluate(server, "--max_cost", limit_usd)
        assert (len(server.calls) - before) * PRICE_USD <= float(limit_usd) + PRICE_USD
        summary = project.task_summary()
        assert {entry["score"] for entry in summary.values()} <= {1.0, None}
        scored.append(sum(entry["score"] == 1.0 for entry in summary.values()))
        if limit_usd == "0.30":
            assert len(server.calls) - before >= 28
            assert (run.returncode, run.stderr) == (1, "")
            no_result = r"^No result: .*lake/answer_\d+\.md(?: and \d+ more)?: (.+)$"
            [reason] = re.findall(no_result, run.stdout, re.M)
            assert reason == "max_cost 0.3 is reached; the judge's replies so far are stored"
            assert re.search(
                r"^Budget: \$0\.\d+ of --max_cost 0\.3 spent, so the run asked nothing more",
                run.stdout,
                re.M,
            )
            assert "The same command continues with another $0.3" in run.stdout
    assert run.returncode == 0
    assert re.search(r"^Budget: \$\d\.\d+ of --max_cost 5 spent\.$", run.stdout, re.M)
    assert scored[0] <= scored[1] < scored[2] == COUNT
    assert len(server.calls) == 2 * COUNT


def test_an_unknown_price_is_a_usage_error(project, server):
    """Nothing is asked or written."""
    run = evaluate(server, "--max_cost", "1", "--judge_model", "judge-1")
    assert (run.returncode, run.stdout) == (2, "")
    assert "no price is known for model judge-1; write the price into mind2web2.toml" in run.stderr
    assert (server.calls, project.results.exists()) == ([], False)


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("amount", ["0", "-1", "much", "nan", "inf"])
def test_a_budget_is_a_positive_amount(amount):
    run = call(evaluate_main, "--agent_name", "bot", f"--max_cost={amount}")
    assert run.returncode == 2
    assert "is not a positive number of dollars" in run.stderr


def test_a_budget_below_a_single_request_says_so(hill, server):
    """The same command would not get any further."""
    run = evaluate(server, "--max_cost", "0.000001", *hill[1])
    assert (run.returncode, server.calls) == (1, [])
    assert "more than all of max_cost 0.000001: give a higher one" in run.stdout


def test_a_replay_needs_no_price(hill, server):
    project, options = hill
    assert evaluate(server, "--judge_model", "judge-1", *options).returncode == 0
    options = (
        *options,
        "--judge_model=judge-1",
        "--llm_provider=replay",
        "--max_cost=1",
    )
    run = call(evaluate_main, *OPTIONS, *options)
    assert run.returncode == 0
    assert project.results.exists()


def test_the_use_of_a_run_is_printed_and_kept(hill, server):
    project, options = hill
    assert evaluate(server, *options).returncode == 0
    [result] = project.result_paths(task="hill")
    result.unlink()
    run = evaluate(server)
    assert "80 judgments asked, 2 reused, 200,000 tokens, $0.8000." in run.stdout
    kept = read_json(project.results / "usage.json")
    assert [one["asked"]["judgments"] for one in kept["runs"]] == [2, 80]
    assert kept["newest_run"]["tasks"].keys() == {"hill", TASK}
    assert kept["newest_run"]["tasks"]["hill"]["reused"]["cost_usd"] == pytest.approx(0.02)
    assert kept["runs"][1]["asked"] == {
        "judgments": 80,
        "requests": 80,
        "untold_requests": 0,
        "input_tokens": 160_000,
        "cached_tokens": 0,
        "output_tokens": 40_000,
        "cost_usd": pytest.approx(0.8),
    }


@pytest.mark.parametrize("content", [b'["not ours"', b"\xff\x00", b"[]", b'{"runs": 3}'])
def test_a_damaged_usage_file_is_replaced(hill, server, content, caplog):
    project, options = hill
    project.results.mkdir(parents=True)
    path = project.results / "usage.json"
    path.write_bytes(content)
    assert evaluate(server, *options).returncode == 0
    assert len(read_json(path)["runs"]) == 1
    [told] = [
        record.getMessage() for record in caplog.records if "usage.json" in record.getMessage()
    ]
    lost = "is damaged and is replaced: the judge use of earlier runs is lost, nothing else"
    assert told.startswith(f"eval_results/bot/usage.json {lost} (")
    assert "\n" not in told


def test_a_stopped_run_keeps_its_usage(project):
    """Ctrl-C while a request is with the judge: those before it were paid for."""
    arrived, released = threading.Event(), threading.Event()

    def reply(_body):
        if len(server.calls) > 2:
            arrived.set()
            released.wait(60)
        return {"reasoning": "read", "result": True}

    with JudgeServer(reply) as server:
        options = [
            *OPTIONS,
            *MODEL,
            "--judge_base_url",
            server.base_url,
        ]
        options += ["--max_concurrent_answers", "1"]
        with start_command(*options, cwd=project.root) as process:
            assert arrived.wait(60)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
        released.set()
    [run] = read_json(project.results / "usage.json")["runs"]
    assert run["asked"]["judgments"] == 2


@pytest.mark.usefixtures("project")
def test_a_budget_learns_from_replies():
    """A first guess of 1,000 output tokens takes all of it; a reply has 10."""
    with JudgeServer(input_tokens=100, cached_tokens=0, output_tokens=10) as cheap:
        run = evaluate(cheap, "--max_cost", "0.014")
        assert len(cheap.calls) > 10
    assert "more than all of max_cost" not in run.stdout
