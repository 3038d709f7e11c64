"""Evaluations and captures on a Ray cluster of two nodes, with a real judge server."""

import shutil
import sys
import threading
import time

import certifi
import pytest
from projects import AGENT, Project, call
from servers.judge_server import JudgeServer
from servers.local_http import Answer, LocalHttp
from servers.ray_cluster import RayCluster

from mind2web2.capture.models import CaptureSettings, NetworkSettings
from mind2web2.cli import evaluate_main, main
from mind2web2.judge.store import STORE_NAME, JudgmentStore
from mind2web2.runs.capturing import BrowserSetup
from mind2web2_ray.capturing import ray_capturer

ANSWERS, CHECKS, KILLED_AFTER = 8, 5, 40
ROOTS = {
    "answer_folder": "answers",
    "eval_scripts_root": "eval_scripts",
    "eval_results_root": "eval_results",
    "cache_root": "cache",
}


@pytest.fixture(scope="module")
def cluster():
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("SSL_CERT_FILE", certifi.where())
        with RayCluster(2) as cluster:
            environment.setenv("RAY_ADDRESS", cluster.address)
            yield cluster


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Stand in a project with answers whose checks some support and others do not."""
    monkeypatch.setenv("OPENAI_API_KEY", "dummy")
    monkeypatch.setenv("COLUMNS", "200")
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
    """Evaluate the answers below a root by a judge."""
    folders = [word for option, name in ROOTS.items() for word in (f"--{option}", f"{root}/{name}")]
    options = ("--agent_name", AGENT, "--no_capture", "--judge_base_url", judge.base_url)
    return call(evaluate_main, *options, *folders, *more)


def verdict(body):
    """Support every claim but the third."""
    return {"reasoning": "read", "result": "It is 2 m deep" not in str(body["messages"])}


def scores(project):
    return {name: entry["score"] for name, entry in project.task_summary().items()}


def test_a_node_that_dies_changes_no_result(cluster, project, tmp_path):
    """The other node judges its answers; what the desk has heard of is not asked again."""
    begun = threading.Event()

    def slow(body):
        if len(judge.calls) == KILLED_AFTER:
            begun.set()
        time.sleep(0.2)
        return verdict(body)

    def kill():
        begun.wait()
        cluster.kill_a_node()

    with JudgeServer(slow) as judge:
        plain = Project(tmp_path / "there")
        assert evaluate(plain.root, judge).returncode == 0
        requests = len(judge.calls)
        judge.calls.clear()
        begun.clear()
        killer = threading.Thread(target=kill)
        killer.start()
        run = evaluate(project.root, judge, "--engine", "ray", "--max_llm_requests", "6")
        begun.set()
        killer.join()
        assert run.returncode == 0, run.stdout + run.stderr
        assert requests <= len(judge.calls) < 2 * requests
        asked = len(judge.calls)
        again = evaluate(project.root, judge)
        assert (again.returncode, len(judge.calls)) == (0, asked)
    assert scores(project) == scores(plain)
    assert set(scores(plain).values()) == {(CHECKS - 1) / CHECKS}
    with JudgmentStore(project.results / STORE_NAME) as store:
        assert len(store.all()) == requests
    cluster.add_a_node()


@pytest.mark.usefixtures("cluster")
def test_the_nodes_share_a_budget(project):
    """The run ends below it, and the answers that it left have no result."""
    with JudgeServer(verdict) as judge:
        engine = ("--engine", "ray")
        run = evaluate(
            project.root, judge, *engine, "--max_cost", "0.0000001", "--judge_model", "o4-mini"
        )
    assert run.returncode == 1
    assert "max_cost" in run.stdout


@pytest.mark.usefixtures("cluster")
async def test_pages_are_captured_on_nodes():
    settings = CaptureSettings(network=NetworkSettings(allow_private_network=True))
    with LocalHttp(lambda _: Answer(b"<p>The lake is deep.")) as site:
        async with ray_capturer(BrowserSetup(settings, 2, 0)) as capturer:
            page = await capturer.capture(f"{site.url}/lake")
    assert page.text is not None and "The lake is deep." in page.text


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("address", "words", "message"),
    [
        ("nowhere", (), "RAY_ADDRESS takes HOST:PORT of the cluster's head"),
        ("127.0.0.1:9", (), "no Ray cluster answers at 127.0.0.1:9"),
        ("auto", ("--llm_provider", "replay"), "leave --engine ray out"),
        ("auto", ("--self_debug",), "--self_debug belongs to one machine"),
    ],
)
def test_what_a_cluster_cannot_have_is_refused(monkeypatch, address, words, message):
    monkeypatch.setenv("RAY_ADDRESS", address)
    run = call(
        main,
        "evaluate",
        AGENT,
        "--answer_folder",
        "here/answers",
        "--eval_scripts_root",
        "here/eval_scripts",
        "--engine",
        "ray",
        *words,
    )
    assert (run.returncode, run.stderr.count("\n")) == (2, 1)
    assert message in run.stderr


def test_ray_is_an_extra(project, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.chdir(project.root)
    run = call(main, "evaluate", AGENT, "--engine", "ray")
    assert run.returncode == 2
    assert "pip install 'mind2web2[ray]'" in run.stderr
