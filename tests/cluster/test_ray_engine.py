"""Evaluations on a Ray cluster: two nodes on this machine, PostgreSQL, moto's S3, and a judge over HTTP."""

import asyncio
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
from types import SimpleNamespace

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
from mind2web2.cluster.crawl import BrowserSetup, ray_capturer
from mind2web2.cluster.engine import RayEngine, with_result
from mind2web2.cluster.node import NodeReport, NodeSetup
from mind2web2.judge.shared_store import JudgmentDatabase
from mind2web2.judge.store import FILE_NAME, JudgmentStore
from mind2web2.judge.transfer import judgments_named
from mind2web2.judge.usage import RunUsage
from mind2web2.llm_client.chat import Retries, Slowdown
from mind2web2.pages.cache import CacheFileSys
from mind2web2.runs.answer import AnswerOutcome
from mind2web2.runs.answers import AnswerFile, AnswerJob
from mind2web2.runs.result_file import ResultFile
from mind2web2.runs.results import latest_results, write_result
from mind2web2.runs.settings import RunSettings
from mind2web2.storage.mirror import Mirror

ANSWERS, CHECKS = 16, 5
# Of 160 requests, two for each check.
KILLED_AFTER = 100
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
        {
            f"leaf_{number}": (f"It is {number} m deep.", None)
            for number in range(CHECKS)
        }
    )
    project.cache().put_web("https://lake.example/", "The lake", None)
    shutil.copytree(project.root, tmp_path / "there")
    return project


def evaluate(root, judge, *more):
    """Evaluate answers below a root by a judge."""
    folders = [
        word
        for option, name in ROOTS.items()
        for word in (f"--{option}", f"{root}/{name}")
    ]
    return call(
        evaluate_main, *OPTIONS, "--judge_base_url", judge.base_url, *folders, *more
    )


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

    The nodes have the database's password from the command's environment, and Ray's metadata have no secret.
    """
    monkeypatch.setenv("PGPASSWORD", database.password)
    without_password = database.url.replace(f":{database.password}", "")
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
    assert re.fullmatch(
        r"warning: Node \S+ \w+ is lost: its answers start again on other nodes\n",
        run.stderr,
    )
    # Only what was in flight, or not yet stored, is asked again.
    assert requests <= len(judge.calls) < requests + KILLED_AFTER // 4
    results = [
        list(latest_results(each.results.parent, AGENT)) for each in (plain, project)
    ]
    assert len(results[0]) == ANSWERS
    for (task_id, name, one), (*same, other) in zip(*results, strict=True):
        assert [task_id, name] == same
        assert one.content.is_same_but_run(other.content)
    named = judgments_named([found.content.document for *_, found in results[1]])
    with (
        JudgmentStore(working_copies[0] / FILE_NAME) as own,
        closing(JudgmentDatabase(database.url)) as shared,
    ):
        assert all(
            named <= {judgment.key for judgment in each.all()} for each in (own, shared)
        )
    log = (working_copies[0] / "run.log").read_text()
    assert log.count("node evaluates answers") == 2
    assert cluster.entrypoints() == {"mind2web2"}


async def test_a_result_that_a_file_system_shows_late_is_waited_for(
    tmp_path, monkeypatch
):
    """An earlier result is not taken for it."""
    monkeypatch.setattr("mind2web2.cluster.engine._LOOK_EVERY_S", 0.0)
    folder = tmp_path / "answer_1"
    answer = AnswerFile("answer_1.md", tmp_path / "answer_1.md")
    job = AnswerJob(
        AGENT, "lake", answer, tmp_path, "v1", CacheFileSys(tmp_path / "cache"), folder
    )
    earlier = write_result(
        folder / "results", answer.name, ResultFile.of({"final_score": 0.0})
    )
    later = write_result(
        folder / "results", answer.name, ResultFile.of({"final_score": 1.0})
    )
    hidden = later.rename(tmp_path / later.name)
    pulls = []

    class Slow(Mirror):
        is_remote = True

        def pull(self, path):
            pulls.append(path)
            if len(pulls) == 3:
                hidden.rename(later)

    monkeypatch.setattr("mind2web2.storage.mirror._mirrors", {folder: Slow()})
    outcome = AnswerOutcome("lake", answer.name, None, None, earlier_result=later.name)
    assert (await with_result(job, outcome)).result.final_score == 1.0
    assert (len(pulls), earlier.exists()) == (3, True)


class Remote:
    """A method of an actor, called as Ray's handles are."""

    def __init__(self, method):
        self.remote = method


class FakeActor:
    """Takes any number of answers, which end when a test lets them."""

    def __init__(self, may_open, may_end):
        self.jobs = []
        self._may_open, self._may_end = may_open, may_end
        for name in ("open", "admit", "evaluate", "report", "close"):
            setattr(self, name, Remote(getattr(self, f"_{name}")))

    async def _open(self, _setup):
        await self._may_open.wait()

    async def _admit(self):
        pass

    async def _evaluate(self, job):
        self.jobs.append(job.answer.name)
        await self._may_end.wait()
        return AnswerOutcome(job.task_id, job.answer.name, None, "not judged here")

    async def _report(self, _news):
        return NodeReport({}, Slowdown(), Retries(), [], [], {})

    async def _close(self):
        return await self._report(None)


async def test_the_first_node_to_open_leaves_the_others_their_share(
    tmp_path, monkeypatch
):
    """A node that opens later, as alive ones do, finds half of the answers."""
    opened, slow, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
    opened.set()
    actors = {"a": FakeActor(opened, ended), "b": FakeActor(slow, ended)}
    monkeypatch.setattr(
        "mind2web2.cluster.engine.placed_actor",
        lambda _ray, _kind, node_id: actors[node_id],
    )
    nodes = [
        {"NodeID": name, "NodeManagerHostname": "host", "Alive": True}
        for name in actors
    ]
    ray = SimpleNamespace(nodes=lambda: nodes, kill=lambda _: None)
    setup = NodeSetup(RunSettings(), None, None, AGENT, (), {}, {}, {})
    engine = RayEngine(ray, setup, 8, RunUsage(), None, "endpoint")
    cache = CacheFileSys(tmp_path)
    files = [AnswerFile(f"answer_{number}.md", tmp_path) for number in range(8)]
    jobs = [
        AnswerJob(AGENT, "lake", file, tmp_path, "v1", cache, tmp_path)
        for file in files
    ]

    async def evaluated(job):
        async with engine:
            return await engine.evaluate(job)

    async with engine.opened():
        evaluations = [asyncio.create_task(evaluated(job)) for job in jobs]
        while len(actors["a"].jobs) < 4:
            await asyncio.wait(evaluations, timeout=0.01)
        slow.set()
        while len(actors["a"].jobs) + len(actors["b"].jobs) < 8:
            await asyncio.wait(evaluations, timeout=0.01)
        assert len(actors["b"].jobs) == 4
        ended.set()
        outcomes = await asyncio.gather(*evaluations)
    assert [outcome.answer_name for outcome in outcomes] == [
        file.name for file in files
    ]


async def test_a_node_that_gives_no_news_loses_its_answers_to_the_others(
    tmp_path, monkeypatch
):
    """Ray finds out only later that a machine vanished; its calls have neither reply nor error till then."""
    yes, no = asyncio.Event(), asyncio.Event()
    yes.set()

    class Vanished(FakeActor):
        async def _report(self, news):
            if self.jobs:
                await no.wait()
            return await super()._report(news)

    actors = {"a": Vanished(yes, no), "b": FakeActor(yes, yes)}
    monkeypatch.setattr(
        "mind2web2.cluster.engine.placed_actor",
        lambda _ray, _kind, node_id: actors[node_id],
    )
    monkeypatch.setattr("mind2web2.cluster.engine.SILENT_AFTER_S", 0.2)
    monkeypatch.setattr("mind2web2.cluster.engine._REPORT_EVERY_S", 0.01)
    nodes = [
        {"NodeID": name, "NodeManagerHostname": "host", "Alive": True}
        for name in actors
    ]
    ray = SimpleNamespace(nodes=lambda: nodes, kill=lambda _: None)
    engine = RayEngine(
        ray,
        NodeSetup(RunSettings(), None, None, AGENT, (), {}, {}, {}),
        4,
        RunUsage(),
        None,
        "endpoint",
    )
    files = [AnswerFile(f"answer_{number}.md", tmp_path) for number in range(4)]
    cache = CacheFileSys(tmp_path)

    async def evaluated(file):
        async with engine:
            return await engine.evaluate(
                AnswerJob(AGENT, "lake", file, tmp_path, "v1", cache, tmp_path)
            )

    async with asyncio.timeout(60), engine.opened():
        outcomes = await asyncio.gather(*map(evaluated, files))
    assert [outcome.reason for outcome in outcomes] == ["not judged here"] * 4
    assert actors["a"].jobs
    assert set(actors["b"].jobs) == {file.name for file in files}


async def test_answers_may_end_while_judgments_are_kept():
    """Each adds to the keys of its node."""
    keys, copied = {"k1"}, []

    class Store:
        async def get(self, key, _endpoint):
            copied.append(key)
            keys.add("k2")

    setup = NodeSetup(RunSettings(), None, None, AGENT, (), {}, {}, {})
    engine = RayEngine(SimpleNamespace(), setup, 1, RunUsage(), Store(), "endpoint")
    await engine._keep(keys)
    assert copied == ["k1"]


async def test_the_end_of_a_run_loses_no_report(tmp_path, monkeypatch):
    """The command copies judgments of results from the database where a report was still on its way."""
    folder = tmp_path / "answer_1"
    result = write_result(
        folder / "results", "answer_1.md", ResultFile.of({"judgment": "k1"})
    )
    job = AnswerJob(
        AGENT,
        "lake",
        AnswerFile("answer_1.md", folder),
        folder,
        "v1",
        CacheFileSys(tmp_path),
        folder,
    )
    copied = []

    class Store:
        async def get(self, key, _endpoint):
            copied.append(key)

    class Actor(FakeActor):
        reports, has_begun = 0, asyncio.Event()

        async def _evaluate(self, job):
            return AnswerOutcome(
                job.task_id, job.answer.name, None, None, earlier_result=result.name
            )

        async def _report(self, news):
            self.reports += 1
            if self.reports == 2:
                self.has_begun.set()
                await asyncio.Event().wait()
            return await super()._report(news)

    opened = asyncio.Event()
    opened.set()
    actor = Actor(opened, opened)
    monkeypatch.setattr("mind2web2.cluster.engine.placed_actor", lambda *_: actor)
    monkeypatch.setattr("mind2web2.cluster.engine._REPORT_EVERY_S", 0.0)
    nodes = [{"NodeID": "a", "NodeManagerHostname": "host", "Alive": True}]
    ray = SimpleNamespace(nodes=lambda: nodes, kill=lambda _: None)
    setup = NodeSetup(RunSettings(), None, None, AGENT, (), {}, {}, {})
    engine = RayEngine(ray, setup, 1, RunUsage(), Store(), "endpoint")
    async with engine.opened():
        await actor.has_begun.wait()
        async with engine:
            assert (await engine.evaluate(job)).result.document == {"judgment": "k1"}
    assert copied == ["k1"]


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


async def test_actors_that_end_are_replaced(cluster):
    """Pages are captured on, also if all nodes lost theirs."""
    page = Answer(b"<h1>Lake</h1><p>It is deep, and has a ferry and a museum.</p>")
    setup = BrowserSetup(
        CaptureSettings(network=NetworkSettings(allow_private_network=True)), 2, 0
    )
    with LocalHttp(lambda _: page) as site:
        async with ray_capturer(cluster.address, setup) as capturer:
            assert (await capturer.capture(f"{site.url}/deep")).record.kind == "web"
            ended = cluster.actor_pids()
            for pid in ended:
                os.kill(pid, signal.SIGKILL)
            assert (await capturer.capture(f"{site.url}/wide")).record.kind == "web"
    assert ended


def test_a_terminated_command_prints_no_stack_of_ray(cluster):
    """As at the time limit of a Slurm job."""
    code = """
import asyncio, os, signal, sys
from mind2web2.cluster.engine import ray_connected

async def terminate_itself():
    async with ray_connected(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGTERM)

asyncio.run(terminate_itself())
"""
    words = [sys.executable, "-c", code, cluster.address]
    run = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode != 0
    assert "SIGTERM" not in run.stdout + run.stderr


def test_pages_are_captured_on_nodes(cluster, project):
    """The command stores them; a page that is missing is listed as failed."""
    page = b"<!doctype html><title>Lake</title><h1>Lake</h1><p>It is deep, and has a ferry and a museum.</p>"
    replies = {"/lake": Answer(page, headers={"Content-Type": "text/html"})}
    with LocalHttp(
        lambda request: replies.get(request.path, Answer(status=404))
    ) as site:
        urls = [f"{site.url}/lake", f"{site.url}/none"]
        project.add_answer(
            "answer_1", " ".join(f"[here]({url})" for url in urls), "one"
        )
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
