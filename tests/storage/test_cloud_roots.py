"""Commands with roots in a bucket give what they give with folders."""

import json

import pytest
from projects import Project, call, claim_in, entered, read_json
from servers.judge_server import JudgeServer, prompt_text
from servers.object_store import object_store

from mind2web2.cli import main

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
        return {"reasoning": "read", "result": claim_in(prompt_text(body)) != "The lake is wide."}

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


def roots(store, prefix):
    """Return the options of a project in the bucket."""
    return [
        word for option, name in ROOTS.items() for word in (f"--{option}", f"{store.url}/{prefix}/{name}")
    ]


def upload(store, project, prefix):
    """Copy a project's inputs into the bucket."""
    for name in ROOTS.values():
        store.upload(project.root / name, f"{prefix}/{name}")


def evaluate(server, *more):
    """Evaluate without captures."""
    return call(main, "evaluate", "bot", "--judge_base_url", server.base_url, "--no_capture", *more)


def scores(store, prefix):
    """Return the scores of all results in the bucket."""
    objects = store.objects(f"{prefix}/eval_results/")
    return [json.loads(text)["final_score"] for name, text in objects.items() if name.endswith(".md.json")]


def content(path):
    """Return a result without the way it was made."""
    return {name: value for name, value in read_json(path).items() if name not in ("run", "judge_usage")}


def test_a_run_in_a_bucket_equals_one_on_disk(project, store, server, tmp_path):
    """Trees, scores and summaries are the same; a copy of the bucket on a disk is used as it is."""
    upload(store, project, "equal")
    plain = evaluate(server)
    cloud = evaluate(server, *roots(store, "equal"))

    assert (cloud.returncode, cloud.stderr) == (plain.returncode, plain.stderr) == (0, "")
    copy = Project(tmp_path / "copy")
    store.download("equal", copy.root)
    for stem in ("answer_1", "answer_2"):
        [own], [copied] = project.result_paths(stem), copy.result_paths(stem)
        assert content(copied) == content(own)
    assert copy.task_summary() == project.task_summary()
    assert {path.name for path in copy.results.rglob("*")} >= {"summary.json", "logs", "answer_1.md"}
    asked = len(server.requests)
    words = [word for option, name in ROOTS.items() for word in (f"--{option}", copy.root / name)]
    again = evaluate(server, *words)
    assert again.returncode == 0
    assert len(server.requests) == asked
    assert len(copy.result_paths()) == 1


def test_scripts_read_pages_that_are_in_the_bucket_only(project, store, server):
    """The run fetches them for the script's process, which has no keys."""
    project.add_script_body(
        """
        import asyncio
        text, _ = cache.get_web("https://lake.example/deep")
        same, _ = await asyncio.to_thread(cache.get_web, "https://lake.example/wide")
        evaluator.add_custom_node(
            result=text.endswith("deep") and same.endswith("wide") and cache.has_pdf(
                "https://lake.example/cold.pdf"), id="read", desc="read")
        return evaluator.get_summary()
        """
    )
    upload(store, project, "scripts")
    run = evaluate(server, *roots(store, "scripts"))
    assert (run.returncode, run.stderr) == (0, "")
    assert scores(store, "scripts") == [1.0, 1.0]
