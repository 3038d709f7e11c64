"""Results whose pages were deleted: said before the run, and no fault of the result."""

import json
import shutil

import pytest
from projects import REPOSITORY, call

from mind2web2.cli import evaluate_main, main

REPLAY = ("--llm_provider", "replay", "--judgments", str(REPOSITORY / "examples/judgments.jsonl"))
FERRY = "http://ferry.ottermoss.example/downloads/summer-timetable.pdf"


@pytest.fixture
def example(tmp_path, monkeypatch):
    """Stand in a project with the example and its results."""
    for name in ("answers", "cache", "eval_scripts"):
        shutil.copytree(REPOSITORY / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    assert call(evaluate_main, "--agent_name", "example", *REPLAY).returncode == 0
    return tmp_path


@pytest.mark.usefixtures("example")
def test_a_run_says_first_that_its_pages_are_gone():
    shutil.rmtree("cache/example")
    run = call(evaluate_main, "--agent_name", "example", *REPLAY)
    assert "cited pages not cached" in run.stdout.splitlines()[0]


@pytest.mark.parametrize("gone", ["cache/example", "cache/example/museum_saturday"])
@pytest.mark.usefixtures("example")
def test_a_result_whose_pages_are_gone_is_not_wrong(gone):
    """The cure is to bring the pages back, not to judge without them."""
    shutil.rmtree(gone)
    run = call(main, "verify-results", "example", "--judgments", REPLAY[-1])
    assert run.returncode == 3, run.stdout
    told = " ".join(run.stdout.split())
    assert f"its pages are gone from cache/example/museum_saturday: {FERRY}" in told
    assert "bring the pages back" in told
    assert "evaluate example" not in told


@pytest.mark.usefixtures("example")
def test_a_submission_takes_no_result_that_was_changed_by_hand(example):
    path = next(example.glob("eval_results/example/*/*/results/*.json"))
    path.write_text(json.dumps(json.loads(path.read_text()) | {"final_score": 0.9}))
    run = call(main, "submit", "example", "--num_runs", "3")
    assert (run.returncode, "was changed after it was written" in run.stderr) == (2, True)
