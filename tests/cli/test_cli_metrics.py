"""``mind2web2 metrics``: the results that are there, averaged."""

import json

import pytest
from projects import call, read_json

from mind2web2.cli import main


@pytest.fixture
def results(tmp_path, monkeypatch):
    """Work in a project with results of another tool: task a has scores 1 and 0.5, task b has 0."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    for answer, score in (("a/answer_1", 1), ("a/answer_2", 0.5), ("b/answer_1", 0), ("b/answer_2", 0)):
        add_result(tmp_path, answer, score)
    return tmp_path / "eval_results"


def add_result(root, answer, score, judge_model="o4-mini"):
    """Write a result as older tools do."""
    stem = answer.split("/")[-1]
    path = root / "eval_results" / "bot" / answer / "results" / f"20250714_120000_{stem}.md.json"
    path.parent.mkdir(parents=True)
    content = {"answer_name": f"{stem}.md", "final_score": score, "judge_model": judge_model}
    path.write_text(json.dumps(content))


def test_the_table(results):
    """What is known is shown, and written to the agent's summary."""
    run = call(main, "metrics", "bot")
    assert (run.returncode, run.stderr) == (0, "")
    rows = [line.strip("│ ").replace("│", "").split() for line in run.stdout.splitlines()]
    assert ["partial", "completion", "0.375", "0.125"] in rows
    assert ["success", "rate", "0.25", "0.25"] in rows
    assert ["pass@2", "0.5", "-"] in rows
    assert ["agent's", "time", "(s)", "-", "-"] in rows
    assert "bot, all results: 2 tasks, 2 runs" in run.stdout
    assert read_json(results / "bot" / "summary.json")["avg_score"] == 0.375


def test_json(results):
    """The numbers of the summary, for other programs."""
    run = call(main, "metrics", "bot", "--json")
    assert run.returncode == 0
    assert json.loads(run.stdout) == read_json(results / "bot" / "summary.json")


@pytest.mark.parametrize("as_json", [False, True])
def test_a_task_list_counts_what_is_missing(results, as_json):
    """As 0, by name, and with exit status 1; comments and empty lines are no tasks."""
    (results.parent / "tasks.txt").write_text("\ufeff# ours\na\n\n  c  \r\n", encoding="utf-8")
    run = call(main, "metrics", "bot", "--task-list=tasks.txt", *(["--json"] if as_json else []))
    assert run.returncode == 1
    if as_json:
        numbers = json.loads(run.stdout)
        assert (numbers["avg_score"], numbers["num_tasks"], numbers["missing"][0]["task_id"]) == (
            0.375,
            2,
            "c",
        )
    else:
        assert "No result: c: no answer at all" in run.stdout.splitlines()
        assert "Warning: tasks not in the task list, left out: b" in run.stdout.splitlines()


def test_results_of_several_judges_are_not_averaged_in_silence(results):
    """A warning names them."""
    add_result(results.parent, "c/answer_1", 1, judge_model="gpt-4o")
    run = call(main, "metrics", "bot")
    [warning] = [line for line in run.stdout.splitlines() if "different judge models" in line]
    assert "gpt-4o (1 answers), o4-mini (4 answers)" in warning


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nobody"], "no results of agent nobody under eval_results: run mind2web2 evaluate nobody first"),
        (["../bot"], "agent '../bot' begins with a dot"),
        (["bot", "--task_list", "gone.txt"], "cannot read the task list gone.txt: "),
        (
            ["bot", "--task_list", "empty.txt"],
            "the task list empty.txt names no task: write one task id a line",
        ),
        (["bot", "--task_list", "binary.txt"], "cannot read the task list binary.txt: "),
        (["bot", "--eval_results_root", "gone"], "no results of agent bot under gone"),
    ],
)
def test_what_cannot_be_averaged(results, words, message):
    """Exit status 2 and one line."""
    (results.parent / "empty.txt").write_text("# nothing\n")
    (results.parent / "binary.txt").write_bytes(b"\xff\xfe\x00")
    run = call(main, "metrics", *words)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("mind2web2: ")
    assert message in run.stderr
    assert run.stderr.count("\n") == 1
