"""A judge that cannot be used ends the run with one line, before answers are worked through."""

import logging
import socket
import threading
import time
from functools import partial

import pytest
from projects import call, entered
from servers.judge_server import VERDICT, JudgeServer, status

from mind2web2.cli import evaluate_main
from mind2web2.judge.spec import JudgeSpec

pytestmark = pytest.mark.usefixtures("project")


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a project with thirty answers in the working folder, and have a key."""
    project = entered(tmp_path, monkeypatch, "a-key-of-mine")
    project.add_script({name: (f"The lake is {name}.", None) for name in ("deep", "cold")})
    for number in range(30):
        project.add_answer(f"answer_{number + 1}", f"Text {number}.")
    return project


def keep_answers(project, count):
    """Leave so many of the thirty answers."""
    for number in range(count, 30):
        (project.root / f"answers/bot/lake/answer_{number + 1}.md").unlink()


def evaluated(address, *options):
    """Evaluate without pages."""
    words = (
        "--agent_name",
        "bot",
        "--judge_base_url",
        address,
        "--no_capture",
        *options,
    )
    return call(evaluate_main, *words)


def free_port():
    """Return a port that no server listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("127.0.0.1", "Connect call failed"),
        ("no-such-host.invalid", "Name or service not known"),
    ],
)
def test_an_unreachable_judge_ends_the_run(host, reason, caplog):
    """One line names address and reason; no answer is worked through."""
    address = f"http://{host}:{free_port()}/v1"
    run = evaluated(address)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
    assert run.returncode == 2
    [line] = run.stderr.splitlines()
    assert line.startswith(f"run_eval.py: cannot connect to the judge at {address}: {reason}")
    assert line.endswith(". Is the server running?")
    assert "no result" not in run.stdout


def test_an_unreachable_judge_ends_the_run_before_pages_are_captured(project):
    """A capture may take minutes, and nothing could be judged on it."""
    project.add_script({"deep": ("The lake is deep.", f"http://127.0.0.1:{free_port()}/page")})
    run = call(
        evaluate_main,
        "--agent_name",
        "bot",
        "--judge_base_url",
        f"http://127.0.0.1:{free_port()}/v1",
    )
    assert (run.returncode, run.stderr.count("\n")) == (2, 1)
    assert "cannot connect to the judge" in run.stderr
    assert not (project.root / "cache").exists()


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_certificates_that_cannot_be_read_are_named(project, monkeypatch, content):
    path = project.root / "authority.pem"
    if content is not None:
        path.write_text(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    run = evaluated("https://127.0.0.1:9/v1")
    assert (run.returncode, run.stderr.count("\n")) == (2, 1)
    assert "the trusted certificates cannot be read (SSL_CERT_FILE=/" in run.stderr


def test_stored_judgments_need_no_server(project):
    """A server that is down ends the run only if a judgment is missing."""
    keep_answers(project, 5)
    with JudgeServer(VERDICT) as server:
        assert evaluated(server.base_url).returncode == 0
    for path in project.results.glob("lake/*/results/*"):
        path.unlink()
    run = evaluated(server.base_url)
    assert (run.returncode, run.stderr) == (0, "")
    assert len(list(project.results.glob("lake/*/results/*"))) == 5
    project.add_answer("answer_60", "Another text.")
    run = evaluated(server.base_url)
    assert run.returncode == 2
    [line] = run.stderr.splitlines()
    assert "cannot connect to the judge" in line


@pytest.mark.parametrize(
    ("denial", "models", "words"),
    [
        (
            status(401, "Incorrect API key"),
            None,
            "the key is refused, check OPENAI_API_KEY",
        ),
        (
            status(404, "no such model"),
            ["local-judge"],
            "has no model o4-mini; it has local-judge",
        ),
        (
            status(404, "no such model"),
            ["o4-mimi", "x", "y"],
            "has no model o4-mini; did you mean o4-mimi?",
        ),
        (
            status(404, "no such model"),
            ["big", "small"],
            "has no model o4-mini; it has big, small",
        ),
    ],
)
def test_a_judge_that_rejects_every_request_ends_the_run(denial, models, words):
    """The line says what to correct."""
    with JudgeServer(faults=lambda _: denial, models=models) as server:
        run = evaluated(server.base_url)
        assert len(server.requests) <= 30
    assert run.returncode == 2
    assert run.stderr.count("\n") == 1 and words in run.stderr


@pytest.mark.parametrize(
    ("models", "words"),
    [
        (["o4-mimi", "x"], "did you mean o4-mimi?"),
        (["big", "small"], "it has big, small"),
        (["o4-mini", "x"], None),
        (["models/o4-mini"], None),
        (["o4-mini-2025-04-16"], None),
        (["o4-mini:latest"], None),
        (None, None),
    ],
)
def test_a_model_that_the_server_does_not_list_is_warned_about(project, models, words):
    """The server may have answered as another model. A server without a list says nothing."""
    keep_answers(project, 2)
    with JudgeServer(VERDICT, models=models) as server:
        run = evaluated(server.base_url, "--judge_model", "o4-mini")
    assert run.returncode == 0
    unlisted = f"openai {server.base_url} does not list the model o4-mini"
    lines = [line for line in run.stderr.splitlines() if unlisted in line]
    assert [words in line for line in lines] == [True] * (words is not None)


def test_a_rejection_after_the_first_judgments_keeps_them():
    """The run ends with status 1 and names the reason once for all answers."""
    with JudgeServer(
        faults=lambda _: status(401, "revoked") if len(server.requests) > 40 else None
    ) as server:
        run = evaluated(server.base_url, "--max_llm_requests", "2")
    assert run.returncode == 1
    assert run.stdout.count("401 revoked") == 2


def wait_for_outages(monkeypatch, seconds):
    """Let commands wait for a server that went away for so long, not for two minutes."""
    judge = partial(JudgeSpec, outage_wait_s=seconds)
    monkeypatch.setattr("mind2web2.runs.named_judge.JudgeSpec", judge)


def test_a_short_outage_costs_no_answer():
    """A gateway without its server is waited for, however many requests that takes."""
    down_until_s, lock = [0.0], threading.Lock()

    def fault(_):
        with lock:
            if len(server.requests) == 50:
                down_until_s[0] = time.monotonic() + 3
            return status(503, "restarting") if time.monotonic() < down_until_s[0] else None

    with JudgeServer(VERDICT, faults=fault) as server:
        run = evaluated(server.base_url)
    assert run.returncode == 0


def test_an_outage_that_lasts_ends_the_run_soon(monkeypatch):
    """All answers that are left have the one reason, and a result is never made of it."""
    with JudgeServer(
        faults=lambda _: status(503, "down") if len(server.requests) > 50 else None
    ) as server:
        started_s = time.monotonic()
        wait_for_outages(monkeypatch, 2)
        run = evaluated(server.base_url)
    assert time.monotonic() - started_s < 30
    assert run.returncode == 1
    assert run.stdout.count("503 down") == 2


@pytest.mark.parametrize("code", [500, 501, 503])
def test_a_server_that_only_fails_ends_the_run(project, monkeypatch, code):
    """No further answer is started, and the same command continues."""
    keep_answers(project, 20)
    wait_for_outages(monkeypatch, 2)
    few = (
        "--max_concurrent_tasks",
        "1",
        "--max_concurrent_answers",
        "4",
    )
    with JudgeServer(faults=lambda _: status(code, "broken")) as server:
        started_s = time.monotonic()
        run = evaluated(server.base_url, *few)
        assert len(server.requests) <= 30
    assert time.monotonic() - started_s < 30
    assert run.returncode == 1
    assert run.stdout.count(f"{code} broken") == 2, "as it happens, and for all answers"
    assert len(list(project.results.glob("lake/*/logs"))) <= 8
    with JudgeServer(VERDICT) as server:
        assert evaluated(server.base_url).returncode == 0


def test_an_answer_that_breaks_the_server_costs_itself_only(project, monkeypatch):
    project.add_script(
        {f"c{number}": (f"The lake has {number} fish.", None) for number in range(6)}
    )
    keep_answers(project, 3)

    def fault(body):
        return status(500, "crash") if "Text 0." in str(body["messages"]) else None

    with JudgeServer(VERDICT, faults=fault) as server:
        wait_for_outages(monkeypatch, 1)
        run = evaluated(server.base_url, "--max_concurrent_answers", "1")
    assert run.returncode == 1
    entries = project.task_summary()
    assert [entry["score"] for entry in entries.values()].count(None) == 1
    assert "500 crash" in entries["answer_1.md"]["reason"]
