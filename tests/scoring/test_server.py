"""``mind2web2 serve``: scores over HTTP, from a real process and from a server in a thread."""

import gzip
import json
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import httpx2 as httpx
import pytest
import uvicorn
from projects import Project, call, clean_environment
from scoring.test_scorer import DEEP, PatientJudge, scorer_of
from servers.judge_server import JudgeServer

from mind2web2.cli import main
from mind2web2.errors import UsageError
from mind2web2.scoring import server as server_module
from mind2web2.scoring.server import TimedProtocol, application
from mind2web2.viewer.server import listen

CALL = {"task": "lake", "answer": "The lake is deep."}


@contextmanager
def served(scorer, token=None):
    """Serve a scorer in a thread; yield a client."""
    listener = listen("127.0.0.1", 0)
    server = uvicorn.Server(
        uvicorn.Config(
            application(scorer, token),
            http=TimedProtocol,
            log_level="error",
            lifespan="off",
        )
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        with (
            scorer,
            httpx.Client(
                base_url=f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=60
            ) as client,
        ):
            yield client
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Return a project with two tasks, of which one's script fails."""
    project = Project(tmp_path_factory.mktemp("project"))
    project.add_script({"deep": (DEEP, None)})
    project.add_script_body("raise ValueError('a bug')", task="broken")
    return project


@pytest.fixture(scope="module")
def client(project):
    """Serve a scorer of the project."""
    with served(scorer_of(project)) as client:
        yield client


def test_an_answer_is_scored(client):
    reply = client.post("/score", json=CALL)
    assert (
        reply.status_code,
        reply.json()["score"],
        reply.json()["tree"]["score"],
    ) == (200, 1.0, 1.0)
    assert reply.json()["evidence"]["deep"]["decided_by"] == "judge"
    assert reply.json().keys() == {"score", "tree", "evidence", "cost_usd"}


@pytest.mark.parametrize("path", ["/health", "/score"])
def test_another_name_of_the_server_is_refused(client, path):
    """A site can let a name of its own lead to this machine, and read what its pages then get."""
    ask = client.post if path == "/score" else client.get
    body = {"json": CALL} if path == "/score" else {}
    for host, status in (
        ("rebound.example:80", 421),
        ("[", 421),
        ("localhost:1", 200),
        ("[::1]:80", 200),
    ):
        assert ask(path, headers={"host": host}, **body).status_code == status


def test_a_server_with_a_token_has_any_name(project):
    with served(scorer_of(project), "secret") as client:
        host = {"host": "scores.internal:8000"}
        assert client.post("/score", json=CALL, headers=host).status_code == 401
        known = {**host, "authorization": "Bearer secret"}
        assert client.post("/score", json=CALL, headers=known).status_code == 200


def test_a_failure_of_the_harness_has_a_status_of_its_own(client):
    reply = client.post("/score", json={**CALL, "task": "broken"})
    assert (reply.status_code, reply.json()["kind"]) == (503, "script")
    assert "a bug" in reply.json()["reason"]


def test_a_batch_is_answered_in_order(client):
    answers = [
        *({**CALL, "task": task} for task in ("lake", "broken", "sea")),
        {"task": "lake"},
        "x",
        CALL,
    ]
    reply = client.post("/scores", json={"answers": answers})
    assert reply.status_code == 200
    outcomes = [{"score", "kind", "error"} & outcome.keys() for outcome in reply.json()["outcomes"]]
    assert outcomes == [{"score"}, {"kind"}, {"error"}, {"error"}, {"error"}, {"score"}]


@pytest.mark.parametrize(
    ("parts", "tree"),
    [
        ("5", {}),
        ("['x']", {}),
        (
            "[{'verification_tree': {'id': '\\ud800', 'children': [1]}}]",
            {"id": "\ud800", "children": [1]},
        ),
    ],
)
def test_a_result_in_a_scripts_own_form_costs_no_other_answer(client, project, parts, tree):
    """The score counts; the tree is empty where it is none."""
    project.add_script_body(f"return {{'final_score': 0.5, 'eval_breakdown': {parts}}}", task="odd")
    reply = client.post("/scores", json={"answers": [{**CALL, "task": "odd"}, CALL]})
    odd, usual = reply.json()["outcomes"]
    assert (odd["score"], odd["tree"], odd["evidence"], usual["score"]) == (
        0.5,
        tree,
        {},
        1.0,
    )


@pytest.mark.parametrize(
    ("path", "body", "code", "error"),
    [
        ("/score", b"{", 400, "not JSON"),
        ("/score", gzip.compress(b"{}", mtime=0), 400, "not JSON, uncompressed"),
        ("/score", b"\xef\xbb\xbf[]", 400, "not a JSON object"),
        ("/score", b"[" * 100_000, 400, "not JSON"),
        ("/score", b"[]", 400, "not a JSON object"),
        ("/score", json.dumps({"task": "lake"}), 400, "'answer' is missing"),
        (
            "/score",
            json.dumps({"task": 3, "answer": "x"}),
            400,
            "'task' is missing or no text",
        ),
        (
            "/score",
            json.dumps({"task": "sea", "answer": "x"}),
            400,
            "no script for task sea",
        ),
        ("/score", json.dumps({"task": "../lake", "answer": "x"}), 400, "task"),
        ("/score", json.dumps({"task": "lake", "answer": "\ud800"}), 400, "surrogate"),
        (
            "/score",
            json.dumps({"task": "lake", "answer": "x" * 10_001}),
            413,
            "send fewer",
        ),
        ("/scores", b"{}", 400, "'answers' is missing"),
        ("/score", json.dumps({**CALL, "model": "x"}), 400, "unknown key 'model'"),
        ("/score", '{"task": "lake", "task": "a", "answer": ""}', 400, "'task' more"),
        ("/scores", json.dumps({"answers": [], "n": 1}), 400, "unknown key 'n'"),
        ("/scores", json.dumps({"answers": [0] * 1001}), 413, "send 1,000 at most"),
    ],
)
def test_bad_input_is_refused_in_one_line(client, monkeypatch, path, body, code, error):
    monkeypatch.setattr(server_module, "MAX_BODY_BYTES", 10_000 if error == "send fewer" else 10**6)
    reply = client.post(path, content=body)
    assert reply.status_code == code
    assert error in reply.json()["error"]
    assert "\n" not in reply.json()["error"]


def test_the_sum_of_bodies_in_work_is_bounded(project, monkeypatch):
    monkeypatch.setattr(server_module, "MAX_BODIES_BYTES", 100_000)
    judge = PatientJudge()
    long = {**CALL, "answer": "x" * 60_000}
    with served(scorer_of(project, judge)) as client, ThreadPoolExecutor(1) as threads:
        first = threads.submit(client.post, "/score", json=long)
        assert judge.is_asked.wait(60)
        refused = client.post("/score", json=long)
        judge.release.set()
        assert first.result().status_code == 200
        again = client.post("/score", json=long)
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "5")
    assert "try again" in refused.json()["error"]
    assert again.status_code == 200


@pytest.mark.parametrize("sent", [b"", b"GET /health", b"\x07" * 4000])
def test_a_connection_without_a_whole_head_is_closed(project, monkeypatch, sent):
    monkeypatch.setattr(server_module, "HEAD_TIMEOUT_S", 0.2)
    with served(scorer_of(project)) as client:
        address = (client.base_url.host, client.base_url.port)
        with socket.create_connection(address, timeout=60) as connection:
            whole = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
            connection.sendall(whole + sent)
            reply = b"".join(iter(partial(connection.recv, 4096), b""))
    assert reply.startswith(b"HTTP/1.1 200")


def test_a_body_that_does_not_come_is_not_waited_for(project, monkeypatch):
    monkeypatch.setattr(server_module, "BODY_TIMEOUT_S", 0.2)
    with served(scorer_of(project)) as client:
        address = (client.base_url.host, client.base_url.port)
        with socket.create_connection(address, timeout=60) as connection:
            connection.sendall(
                b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{"
            )
            assert connection.recv(4096).startswith(b"HTTP/1.1 408")


def test_a_port_that_does_not_exist_is_named():
    with pytest.raises(
        UsageError,
        match=r"cannot listen at 127\.0\.0\.1:70000: .*0-65535.*; try --port 0",
    ):
        listen("127.0.0.1", 70000)


def test_pages_of_other_sites_cannot_ask(client):
    """A browser sends the site's address along."""
    assert (
        client.post("/score", json=CALL, headers={"Origin": "https://evil.example"}).status_code
        == 403
    )


def test_a_token_is_asked_for_where_there_is_one(project):
    with served(scorer_of(project), "secret") as client:
        headers = [
            {},
            {"Authorization": "Bearer wrong"},
            {"Authorization": "Bearer secret"},
        ]
        assert [client.post("/score", json=CALL, headers=each).status_code for each in headers] == [
            401,
            401,
            200,
        ]
        assert client.get("/health").status_code == 200


def test_a_client_that_goes_away_stops_its_evaluation(project):
    """The next call takes its place."""
    judge = PatientJudge()
    with served(scorer := scorer_of(project, judge, max_answers=1)) as client:
        with pytest.raises(httpx.TimeoutException):
            client.post("/score", json=CALL, timeout=0.2)
        judge.release.set()
        assert client.post("/score", json={**CALL, "answer": "another"}).status_code == 200
        assert scorer.counts.scores == 1


def started(project, judge, *words):
    """Start the command and return it with its address."""
    command = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "mind2web2",
            "serve",
            "--judge_base_url",
            judge.base_url,
            *words,
        ],
        cwd=project.root,
        env=clean_environment(OPENAI_API_KEY="dummy"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    line = next(line for line in command.stdout if line.startswith("Scoring at"))
    address, _, about = line.removeprefix("Scoring at ").partition(" until Ctrl-C. ")
    return command, address, about.strip()


@pytest.mark.parametrize(
    ("number", "words", "expected"),
    [
        ("SIGTERM", ["--stop_timeout", "60"], 200),
        ("SIGINT", ["--stop_timeout", "0.01"], 503),
    ],
)
def test_a_stopped_server_answers_the_calls_in_flight(project, number, words, expected):
    (project.root / "mind2web2.toml").write_text('judge_model = "judge-2"\n')
    is_asked, release = threading.Event(), threading.Event()

    def slow(_body):
        is_asked.set()
        release.wait(60)
        return {"reasoning": "yes", "result": True}

    with JudgeServer(slow) as judge, ThreadPoolExecutor(1) as threads:
        command, address, about = started(project, judge, *words)
        assert (
            about
            == f"Judge: judge-2 (openai {judge.base_url}). Pages: none (--missing_pages no_score). "
            "Scripts: eval_scripts."
        )
        reply = threads.submit(httpx.post, f"{address}/score", json=CALL, timeout=60)
        assert is_asked.wait(60)
        command.send_signal(getattr(signal, number))
        if expected == 200:
            release.set()
        assert reply.result().status_code == expected
        if expected == 503:
            assert reply.result().headers["connection"] == "close"
        release.set()
        output, errors = command.communicate(timeout=60)
    assert (command.returncode, errors) == (0, "")
    assert "Stopped." in output
    assert judge.requests[0]["model"] == "judge-2"


def test_a_judge_that_is_not_there_yet_is_reported(project):
    with JudgeServer() as judge:
        pass
    command, address, _ = started(project, judge)
    warning = next(line for line in command.stderr if "judge" in line)
    assert f"cannot connect to the judge at {judge.base_url}" in warning
    assert httpx.get(f"{address}/health", timeout=60).status_code == 200
    command.send_signal(signal.SIGTERM)
    _, errors = command.communicate(timeout=60)
    assert (command.returncode, errors) == (0, "")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--host", "0.0.0.0"], "set MIND2WEB2_TOKEN"),
        (["--port", "99999"], "'99999' is not a port from 0 (a free one) to 65535"),
        (["--port", "-1"], "'-1' is not a port"),
        (["--pages", "nowhere"], "there is no folder nowhere"),
        (["--eval_scripts_root", "nowhere"], "there is no folder nowhere"),
    ],
)
def test_a_server_that_cannot_serve_says_why(project, monkeypatch, words, error):
    monkeypatch.chdir(project.root)
    monkeypatch.setenv("OPENAI_API_KEY", "dummy")
    outcome = call(main, "serve", *words)
    assert outcome.returncode == 2
    assert error in outcome.stderr
    assert outcome.stderr.count("\n") == 1
