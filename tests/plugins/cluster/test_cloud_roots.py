"""Commands with roots in a bucket give what they give with folders."""

import json
import os
import sys
import threading

import pytest
from projects import (
    Project,
    call,
    claim_in,
    entered,
    read_json,
    run_process,
    start_command,
)
from servers.judge_server import JudgeServer, prompt_text
from servers.object_store import BUCKET, object_store

from mind2web2.cli import main
from mind2web2.plugins.cluster import bucket
from mind2web2.utils.retry import Tries

CLAIMS = {
    "deep": ("The lake is deep.", "https://lake.example/deep"),
    "wide": ("The lake is wide.", "https://lake.example/wide"),
    "pdf": ("The lake is cold.", "https://lake.example/cold.pdf"),
}
ROOTS = {
    "answer_folder": "answers",
    "eval_scripts_root": "eval_scripts",
    "eval_results_root": "eval_results",
    "cache_root": "cache",
}


@pytest.fixture(scope="module")
def store():
    """Return an object store for all tests; each has a prefix of its own."""
    with object_store() as store:
        yield store


@pytest.fixture(scope="module")
def server():
    """Return a judge that supports every claim but one."""

    def reply(body):
        return {
            "reasoning": "read",
            "result": claim_in(prompt_text(body)) != "The lake is wide.",
        }

    with JudgeServer(reply) as server:
        yield server


@pytest.fixture
def project(tmp_path, monkeypatch, store):
    """Return a project with two answers and stored pages, and have commands use the store."""
    for name, value in store.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "machine"))
    project = entered(tmp_path, monkeypatch)
    project.add_answer("answer_1")
    project.add_answer("answer_2", "The lake is shallow.")
    project.add_script(CLAIMS)
    for url in ("https://lake.example/deep", "https://lake.example/wide"):
        project.cache().put_web(url, f"The page {url}", None)
    project.cache().put_pdf("https://lake.example/cold.pdf", b"%PDF-1.4 broken")
    return project


def roots(prefix, scheme="s3"):
    """Return the options of a project in the bucket."""
    url = f"{scheme}://{BUCKET}/{prefix}"
    return [word for option, name in ROOTS.items() for word in (f"--{option}", f"{url}/{name}")]


def upload(store, project, prefix):
    """Copy a project's inputs into the bucket."""
    for name in ROOTS.values():
        store.upload(project.root / name, f"{prefix}/{name}")


def evaluate(server, *more):
    """Evaluate without captures."""
    return call(
        main,
        "evaluate",
        "bot",
        "--judge_base_url",
        server.base_url,
        "--no_capture",
        *more,
    )


def scores(store, prefix):
    """Return the scores of all results in the bucket."""
    objects = store.objects(f"{prefix}/eval_results/")
    return [
        json.loads(text)["final_score"]
        for name, text in objects.items()
        if name.endswith(".md.json")
    ]


def content(path):
    """Return a result without the way it was made."""
    return {
        name: value for name, value in read_json(path).items() if name not in ("run", "judge_usage")
    }


@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_a_run_in_a_bucket_equals_one_on_disk(project, store, server, tmp_path, scheme):
    """Trees, scores and summaries are the same; a copy of the bucket on a disk is used as it is."""
    prefix = f"equal_{scheme}"
    upload(store, project, prefix)
    plain = evaluate(server)
    cloud = evaluate(server, *roots(prefix, scheme))

    assert (cloud.returncode, cloud.stderr) == (plain.returncode, plain.stderr) == (0, "")
    copy = Project(tmp_path / "copy")
    store.download(prefix, copy.root)
    for stem in ("answer_1", "answer_2"):
        [own], [copied] = project.result_paths(stem), copy.result_paths(stem)
        assert content(copied) == content(own)
    assert copy.task_summary() == project.task_summary()
    assert {path.name for path in copy.results.rglob("*")} >= {
        "summary.json",
        "logs",
        "answer_1.md",
    }
    asked = len(server.requests)
    words = [word for option, name in ROOTS.items() for word in (f"--{option}", copy.root / name)]
    again = evaluate(server, *words)
    assert again.returncode == 0
    assert len(server.requests) == asked
    assert len(copy.result_paths()) == 1


def test_another_machine_verifies_the_results(project, store, server, tmp_path, monkeypatch):
    """It reads the summaries of the bucket, and needs the judgments of the first machine."""
    upload(store, project, "verified")
    own_roots = roots("verified")
    assert evaluate(server, *own_roots).returncode == 0
    call(
        main,
        "judgments",
        "export",
        "bot",
        "j.jsonl",
        "--eval_results_root",
        own_roots[5],
    )
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another_machine"))
    run = call(main, "verify-results", "bot", "--judgments", "j.jsonl", *own_roots)
    assert (run.returncode, run.stderr) == (0, "")
    assert "2 answers: 2 correct and up to date" in run.stdout


def test_pages_that_only_a_script_reads_are_verified(
    project, store, server, tmp_path, monkeypatch, caplog
):
    """No claim names them; another machine fetches them from the bucket."""
    project.add_script_body(
        """
        text, _ = cache.get_web("https://lake.example/deep")
        found = len(cache.get_all_urls()) == 3
        evaluator.add_custom_node(result=found and text.endswith("deep"), id="read", desc="read")
        return evaluator.get_summary()
        """
    )
    upload(store, project, "read_only")
    own_roots = roots("read_only")
    assert evaluate(server, *own_roots).returncode == 0
    call(
        main,
        "judgments",
        "export",
        "bot",
        "j.jsonl",
        "--eval_results_root",
        own_roots[5],
    )
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another_machine"))
    run = call(main, "verify-results", "bot", "--judgments", "j.jsonl", *own_roots)
    assert (run.returncode, run.stderr) == (0, "")
    assert "2 answers: 2 correct and up to date" in run.stdout
    assert "file is gone" not in caplog.text


def test_every_tenth_request_fails(project, store, server):
    """Scores are right; each kind of failure comes up several times."""
    upload(store, project, "faults")
    kinds = ("refused", "dropped", "lost")
    with store.failing(lambda number, *_: kinds[number // 10 % 3] if number % 10 == 3 else None):
        run = evaluate(server, *roots("faults"))
    assert (run.returncode, run.stderr) == (0, "")
    assert scores(store, "faults") == pytest.approx([2 / 3, 2 / 3], abs=0.35)


def test_the_next_command_publishes_after_an_outage(project, store, server, monkeypatch):
    """It asks nothing again."""
    monkeypatch.setattr(bucket, "_TRIES", Tries(1, first_wait_s=0))
    monkeypatch.setattr(bucket, "_MAX_RETRIES", 0)
    upload(store, project, "outage")
    with store.failing(
        lambda _, method, path: "refused" if method == "PUT" and "/results/" in path else None
    ):
        run = evaluate(server, *roots("outage"))
    assert run.returncode == 1
    assert "the object store failed" in run.stderr
    assert scores(store, "outage") == []
    asked = len(server.requests)
    assert evaluate(server, *roots("outage")).returncode == 0
    assert len(scores(store, "outage")) == 2
    assert len(server.requests) == asked


@pytest.mark.parametrize("part", [".md.json", "summary.json"])
def test_a_killed_run_leaves_whole_objects(project, store, server, part):
    """A process killed while it publishes continues by the same command, and asks nothing twice."""
    prefix = f"killed{part}".replace("/", "")
    upload(store, project, prefix)
    reached = threading.Event()

    def fail(_, method, path):
        if method == "PUT" and "eval_results" in path and path.endswith(part):
            reached.set()
            return "late"
        return None

    words = [
        "--agent_name",
        "bot",
        "--judge_base_url",
        server.base_url,
        "--no_capture",
        *roots(prefix),
    ]
    with store.failing(fail), start_command(*words, cwd=project.root) as process:
        assert reached.wait(60)
        process.kill()
    for name, content in store.objects(f"{prefix}/eval_results/").items():
        assert content, name
        if name.endswith(".json"):
            json.loads(content)
    asked = len(server.requests)
    run = evaluate(server, *roots(prefix))
    assert (run.returncode, run.stderr) == (0, "")
    assert len(scores(store, prefix)) == 2
    assert len(server.requests) <= asked + 2


def test_two_machines_may_evaluate_at_the_same_time(project, store, tmp_path):
    """The second one to end says so if the other wrote the same file, and sums up again."""
    upload(store, project, "shared")
    words = ("--agent_name", "bot", "--no_capture", *roots("shared"))
    others = []

    def reply(body):
        if not others:
            others.append("runs")
            there = {name: os.environ[name] for name in store.variables}
            there["XDG_CACHE_HOME"] = str(tmp_path / "another_machine")
            others.append(
                run_process(*words, "--judge_base_url", server.base_url, cwd=tmp_path, **there)
            )
        return {
            "reasoning": "read",
            "result": claim_in(prompt_text(body)) != "The lake is wide.",
        }

    with JudgeServer(reply) as server:
        run = evaluate(server, *roots("shared"))
        assert others[1].returncode == 0, others[1].stderr
        # Results of different seconds have different names.
        assert (run.returncode == 1) == ("another machine has changed" in run.stderr)
        assert run.returncode in (0, 1)
        assert evaluate(server, *roots("shared")).returncode == 0
    assert len(set(scores(store, "shared"))) == 1


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("s3://no-such-bucket/answers", "the bucket does not exist"),
        ("ftp://bucket/answers", "is not a folder"),
        ("s3://", "is no root: give a folder"),
    ],
)
@pytest.mark.usefixtures("project")
def test_a_root_that_cannot_be_used_ends_the_run_at_once(server, url, words):
    """One line names the URL."""
    run = evaluate(server, "--answer_folder", url)
    assert run.returncode == 2
    assert url in run.stderr
    assert words in run.stderr


@pytest.mark.parametrize(
    ("url", "variables", "words"),
    [
        (
            "s3://b/x",
            {"AWS_ENDPOINT_URL": "127.0.0.1:9000"},
            "AWS_ENDPOINT_URL takes an address such as https://",
        ),
        ("s3://b/x", {"AWS_ALLOW_HTTP": ""}, "set AWS_ALLOW_HTTP=true"),
        ("gs://b/x", {"AWS_ALLOW_HTTP": ""}, "set AWS_ALLOW_HTTP=true"),
        (
            "az://b/x",
            {
                "AWS_ALLOW_HTTP": "",
                "AZURE_STORAGE_ENDPOINT": "http://localhost/account",
            },
            "set AWS_ALLOW_HTTP=true",
        ),
        (
            "az://container/x",
            {},
            "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
        ),
    ],
)
@pytest.mark.usefixtures("project")
def test_the_environment_of_a_store_is_checked(server, monkeypatch, url, variables, words):
    """One line names the variable."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    run = evaluate(server, "--answer_folder", url)
    assert run.returncode == 2
    assert words in run.stderr
    assert len(run.stderr.splitlines()) == 1


@pytest.mark.usefixtures("project")
def test_a_cache_root_without_pages_is_no_reason_to_fail_claims(store, server):
    """A typing error in the URL ends a run that captures nothing."""
    run = evaluate(server, "--cache_root", f"{store.url}/mistyped")
    assert run.returncode == 2
    assert f"--cache_root {store.url}/mistyped has no pages of bot" in run.stderr


@pytest.mark.usefixtures("project")
def test_a_root_needs_the_extra(server, monkeypatch):
    """The line says how to install it."""
    monkeypatch.setitem(sys.modules, "obstore", None)
    run = evaluate(server, "--answer_folder", "s3://bucket/not_opened_yet")
    assert run.returncode == 2
    assert "uv sync --extra cloud" in run.stderr
