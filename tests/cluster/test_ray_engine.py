"""Evaluations on a Ray cluster: two nodes on this machine, PostgreSQL, and a judge over HTTP."""

import re
import shutil
import socket
import threading
import time
from contextlib import closing

import pytest
from projects import AGENT, Project, call
from servers.judge_server import JudgeServer
from servers.postgres_server import PostgresServer
from servers.ray_cluster import RayCluster

from mind2web2.cli import evaluate_main
from mind2web2.judge.shared_store import JudgmentDatabase
from mind2web2.judge.store import FILE_NAME, JudgmentStore
from mind2web2.judge.transfer import judgments_named
from mind2web2.runs.results import latest_results, same_but_run

ANSWERS, CHECKS = 16, 5
# Of 160 requests, two for each check.
KILLED_AFTER = 120
OPTIONS = ("--agent_name", AGENT, "--no_capture")


@pytest.fixture(scope="module")
def cluster():
    """A cluster of two nodes."""
    with RayCluster(2) as cluster:
        yield cluster


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
    monkeypatch.chdir(tmp_path)
    project = Project(tmp_path / "here")
    for number in range(ANSWERS):
        project.add_answer(f"answer_{number}", f"The lake is {number} m deep.")
    project.add_script({f"leaf_{number}": (f"It is {number} m deep.", None) for number in range(CHECKS)})
    (project.root / "cache").mkdir()
    shutil.copytree(project.root, tmp_path / "there")
    return project


def evaluate(project, judge, *more):
    """Evaluate a project's answers by a judge."""
    roots = {"answer_folder": "answers", "eval_scripts_root": "eval_scripts"}
    roots |= {"eval_results_root": "eval_results", "cache_root": "cache"}
    folders = [word for name, root in roots.items() for word in (f"--{name}", project.root / root)]
    return call(evaluate_main, *OPTIONS, "--judge_base_url", judge.base_url, *folders, *more)


def verdict(body):
    """Support every claim but the third."""
    return {"reasoning": "read", "result": "It is 2 m deep" not in str(body["messages"])}


def test_a_node_that_dies_changes_no_result(cluster, database, project, tmp_path):
    """The other node evaluates its answers; only requests that it had in flight are sent again."""
    begun = threading.Event()

    def counted(body):
        if len(judge.calls) == KILLED_AFTER:
            begun.set()
        time.sleep(0.05)
        return verdict(body)

    def kill():
        begun.wait()
        cluster.kill_a_node()

    with JudgeServer(counted) as judge:
        plain = Project(tmp_path / "there")
        assert evaluate(plain, judge).returncode == 0
        requests = len(judge.calls)
        judge.calls.clear()
        begun.clear()
        killer = threading.Thread(target=kill)
        killer.start()
        engine = ("--engine", "ray", "--ray_address", cluster.address, "--judgments", database.url)
        run = evaluate(project, judge, *engine, "--max_llm_requests", "6")
        killer.join()
    assert run.returncode == 0, run.stdout
    assert re.fullmatch(
        r"warning: Node \S+ \w+ is lost: its answers start again on other nodes\n", run.stderr
    )
    # Only what was in flight, or not yet stored, is asked again.
    assert requests <= len(judge.calls) < requests + KILLED_AFTER // 4
    results = [list(latest_results(each.results.parent, AGENT)) for each in (plain, project)]
    assert len(results[0]) == ANSWERS
    for (task_id, name, one), (*same, other) in zip(*results, strict=True):
        assert [task_id, name] == same
        assert same_but_run(one.content, other.content)
    named = judgments_named([found.content for *_, found in results[1]])
    with JudgmentStore(project.results / FILE_NAME) as own, closing(JudgmentDatabase(database.url)) as shared:
        for store in (own, shared):
            assert named <= {judgment.key for judgment in store.all()}
    log = (project.results / "run.log").read_text()
    assert log.count("node evaluates answers") == 2
    assert "answer starts again" in log


def test_a_cluster_that_does_not_answer_is_named(database, project):
    """Exit status 2 and one line."""
    with socket.socket() as unused, JudgeServer() as judge:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        engine = ("--engine", "ray", "--judgments", database.url)
        reasons = {address: f"no Ray cluster answers at {address}", "ray://a:1": "takes HOST:PORT"}
        for given, reason in reasons.items():
            run = evaluate(project, judge, *engine, "--ray_address", given)
            assert (run.returncode, run.stderr.count("\n")) == (2, 1)
            assert reason in run.stderr
