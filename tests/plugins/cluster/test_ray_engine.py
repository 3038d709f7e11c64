"""Evaluations on a Ray cluster of two nodes, with PostgreSQL, moto's S3 and a judge."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing

import certifi
import pytest
from projects import AGENT, Project, call
from servers.judge_server import JudgeServer
from servers.local_http import Answer, LocalHttp
from servers.object_store import object_store
from servers.postgres_server import PostgresServer
from servers.ray_cluster import RayCluster

from mind2web2.capture.models import CaptureSettings, NetworkSettings
from mind2web2.cli import evaluate_main, main
from mind2web2.judge.store import FILE_NAME, JudgmentStore
from mind2web2.judge.transfer import judgments_named
from mind2web2.plugins.cluster.crawl import BrowserSetup, ray_capturer
from mind2web2.plugins.cluster.postgres import JudgmentDatabase
from mind2web2.results.stored_results import latest_results

ANSWERS, CHECKS = 8, 5
# There are 80 requests, two for each check.
KILLED_AFTER = 40
ROOTS = {
    "answer_folder": "answers",
    "eval_scripts_root": "eval_scripts",
    "eval_results_root": "eval_results",
    "cache_root": "cache",
}
OPTIONS = ("--agent_name", AGENT, "--no_capture")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A cluster of two nodes, which keep working copies of buckets in a folder of their own."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("nodes")))
        environment.setenv("SSL_CERT_FILE", certifi.where())
        cluster = RayCluster(2)
        cluster.__enter__()
    yield cluster
    cluster.__exit__()


@pytest.fixture
def store(monkeypatch):
    """An object store, of which every tenth request fails."""
    with object_store() as store:
        for name, value in store.variables.items():
            monkeypatch.setenv(name, value)
        yield store


@pytest.fixture(scope="module")
def database():
    """A database server."""
    with PostgresServer() as server:
        yield server


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Stand in a project with answers whose checks some support and others do not."""
    monkeypatch.setenv("OPENAI_API_KEY", "dummy")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "machine"))
    monkeypatch.chdir(tmp_path)
    project = Project(tmp_path / "here")
    for number in range(ANSWERS):
        project.add_answer(f"answer_{number + 1}", f"The lake is {number} m deep.")
    project.add_script(
        {f"leaf_{number}": (f"It is {number} m deep.", None) for number in range(CHECKS)}
    )
    project.cache().put_web("https://lake.example/", "The lake", None)
    shutil.copytree(project.root, tmp_path / "there")
    return project


def evaluate(root, judge, *more):
    """Evaluate answers below a root by a judge."""
    folders = [word for option, name in ROOTS.items() for word in (f"--{option}", f"{root}/{name}")]
    return call(evaluate_main, *OPTIONS, "--judge_base_url", judge.base_url, *folders, *more)


def verdict(body):
    """Support every claim but the third."""
    return {
        "reasoning": "read",
        "result": "It is 2 m deep" not in str(body["messages"]),
    }


def test_a_node_that_dies_changes_no_result(
    cluster, database, store, project, tmp_path, monkeypatch
):
    """The other node evaluates its answers; only requests in flight are sent again.

    The nodes have the database's password from the command's environment, and Ray's metadata have
    no secret.
    """
    monkeypatch.setenv("PGPASSWORD", database.password)
    without_password = database.url.replace(f":{database.password}", "")
    begun = threading.Event()

    def counted(body):
        if len(judge.calls) == KILLED_AFTER:
            begun.set()
        time.sleep(0.2)
        return verdict(body)

    def kill():
        begun.wait()
        cluster.kill_a_node()

    with JudgeServer(counted) as judge:
        plain = Project(tmp_path / "there")
        assert evaluate(plain.root, judge).returncode == 0
        for name in ("answers", "eval_scripts", "cache"):
            store.upload(project.root / name, f"lab/{name}")
        store.fail = lambda number, *_: "refused" if number % 10 == 0 else None
        requests = len(judge.calls)
        judge.calls.clear()
        begun.clear()
        killer = threading.Thread(target=kill)
        killer.start()
        engine = (
            "--engine",
            "ray",
            "--ray_address",
            cluster.address,
            "--judgments",
            without_password,
        )
        run = evaluate(f"{store.url}/lab", judge, *engine, "--max_llm_requests", "6")
        begun.set()
        killer.join()
    store.fail = lambda *_: None
    store.download("lab/eval_results", project.root / "eval_results")
    working_copies = [path.parent for path in tmp_path.glob("machine/**/run.log")]
    assert run.returncode == 0, run.stdout
    lost = r"warning: Shard \d/2 starts again on another node, as \S+ \w+ is lost: .*\n"
    assert re.fullmatch(f"({lost})+", run.stderr)
    # Only what was in flight, or not yet stored, is asked again.
    assert requests <= len(judge.calls) < requests + KILLED_AFTER // 4
    results = [list(latest_results(each.results.parent, AGENT)) for each in (plain, project)]
    assert len(results[0]) == ANSWERS
    for (task_id, name, one), (*same, other) in zip(*results, strict=True):
        assert [task_id, name] == same
        assert one.content.is_same_but_run(other.content)
    named = judgments_named([found.content.document for *_, found in results[1]])
    with (
        JudgmentStore(working_copies[0] / FILE_NAME) as own,
        closing(JudgmentDatabase(database.url)) as shared,
    ):
        assert all(named <= {judgment.key for judgment in each.all()} for each in (own, shared))
    log = (working_copies[0] / "run.log").read_text()
    assert len(set(re.findall(r"shard begins .* node=.* (\w+)", log))) == 2
    assert cluster.entrypoints() == {"mind2web2"}


def test_a_cluster_that_does_not_answer_is_named(database, project):
    """Exit status 2 and one line; no folder of results is left behind."""
    with socket.socket() as unused, JudgeServer() as judge:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        engine = ("--engine", "ray", "--judgments", database.url)
        reasons = {
            address: f"no Ray cluster answers at {address}",
            "ray://a:1": "takes HOST:PORT",
        }
        for given, reason in reasons.items():
            run = evaluate(project.root, judge, *engine, "--ray_address", given)
            assert (run.returncode, run.stderr.count("\n")) == (2, 1)
            assert reason in run.stderr
            assert not (project.root / "eval_results").exists()


@pytest.mark.long
async def test_actors_that_end_are_replaced(cluster):
    """Pages are captured on, also if all nodes lost theirs."""
    page = Answer(b"<h1>Lake</h1><p>It is deep, and has a ferry and a museum.</p>")
    setup = BrowserSetup(CaptureSettings(network=NetworkSettings(allow_private_network=True)), 2, 0)
    with LocalHttp(lambda _: page) as site:
        async with ray_capturer(cluster.address, setup) as capturer:
            assert (await capturer.capture(f"{site.url}/deep")).record.kind == "web"
            ended = cluster.worker_pids("CaptureActor")
            for pid in ended:
                os.kill(pid, signal.SIGKILL)
            assert (await capturer.capture(f"{site.url}/wide")).record.kind == "web"
    assert ended


def test_a_terminated_command_prints_no_stack_of_ray(cluster):
    """As at the time limit of a Slurm job."""
    code = """
import asyncio, os, signal, sys
from mind2web2.plugins.cluster.connection import connect_ray

async def terminate_itself():
    async with connect_ray(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGTERM)

asyncio.run(terminate_itself())
"""
    words = [sys.executable, "-c", code, cluster.address]
    run = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode != 0
    assert "SIGTERM" not in run.stdout + run.stderr


def test_pages_are_captured_on_nodes(cluster, project):
    """The command stores them; a page that is missing is listed as failed."""
    page = (
        b"<!doctype html><title>Lake</title><h1>Lake</h1><p>It is deep, and has a ferry and a "
        b"museum.</p>"
    )
    replies = {"/lake": Answer(page, headers={"Content-Type": "text/html"})}
    with LocalHttp(lambda request: replies.get(request.path, Answer(status=404))) as site:
        urls = [f"{site.url}/lake", f"{site.url}/none"]
        project.add_answer("answer_1", " ".join(f"[here]({url})" for url in urls), "one")
        answers = (
            "--answer_folder",
            project.root / "answers",
            "--cache_root",
            project.root / "cache",
        )
        engine = (
            "--engine",
            "ray",
            "--ray_address",
            cluster.address,
            "--allow_private_network",
        )
        run = call(
            main,
            "cache",
            AGENT,
            "--task_id",
            "one",
            "--max_retries",
            "0",
            *answers,
            *engine,
        )
    assert run.returncode == 1, run.stderr
    assert project.cache("one").has(urls[0]) == "web", run.stdout
    assert "ferry" in project.cache("one").get_web(urls[0])[0]
    assert f"Failed: the server sent an empty file\n  {urls[1]}" in run.stdout
