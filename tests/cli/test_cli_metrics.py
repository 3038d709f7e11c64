"""``mind2web2 metrics``: the results that are there, averaged.

The command tells how far the averages can be trusted.
"""

import asyncio
import json
from pathlib import Path

import pytest
from projects import ClaimJudge, Project, call, evaluate, read_json

from mind2web2.analysis.summaries import generate_result_summary
from mind2web2.cli import main
from mind2web2.utils.path_config import PathConfig
from mind2web2.viewer.catalog import Catalog

AGAIN = "mind2web2 evaluate bot"


@pytest.fixture
def results(tmp_path, monkeypatch):
    """Work in a project with results of another tool: task a has scores 1 and 0.5, task b has 0."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    for answer, score in (
        ("a/answer_1", 1),
        ("a/answer_2", 0.5),
        ("b/answer_1", 0),
        ("b/answer_2", 0),
    ):
        add_result(tmp_path, answer, score)
    return tmp_path / "eval_results"


def add_result(root, answer, score, judge_model="o4-mini", agent="bot", **more):
    """Write a result as older tools do, with more that it says."""
    stem = answer.split("/")[-1]
    path = root / "eval_results" / agent / answer / "results" / f"20250714_120000_{stem}.md.json"
    path.parent.mkdir(parents=True)
    content = {
        "answer_name": f"{stem}.md",
        "final_score": score,
        "judge_model": judge_model,
    }
    path.write_text(json.dumps(content | more))


def add_agent(root, agent, gain=0.0, tasks=12):
    """Write an agent's results, one a task.

    Half of them are at nought and half at 0.5, all with a gain.
    """
    for number in range(tasks):
        score = number % 2 / 2 + gain * (1 + number % 3)
        add_result(root, f"task_{number}/answer_1", score, agent=agent)


def evidence(*opinions, **more):
    """Return an evaluation's content with one claim that was voted on."""
    votes = [
        {"trial": k, "supported": one, "reasoning": ""} for k, one in enumerate(opinions, start=1)
    ]
    leaf = {
        "id": "x",
        "status": "failed",
        "evidence": {"decided_by": "judge", "votes": votes, **more},
    }
    return [{"info": [], "verification_tree": {"id": "root", "children": [leaf]}}]


def test_the_table(results):
    run = call(main, "metrics", "bot")
    assert (run.returncode, run.stderr) == (0, "")
    rows = [line.strip("│ ").replace("│", "").split() for line in run.stdout.splitlines()]
    assert ["partial", "completion", "0.38", "0.13", "-"] in rows
    assert ["success", "rate", "0.25", "0.25", "-"] in rows
    assert ["pass@2", "0.50", "-", "-"] in rows
    assert ["agent's", "time", "(s)", "-", "-", "-"] in rows
    assert "bot, all results: 2 tasks, 2 runs" in run.stdout
    assert read_json(results / "bot" / "summary.json")["avg_score"] == 0.375


def test_json(results):
    run = call(main, "metrics", "bot", "--json")
    assert run.returncode == 0
    numbers = json.loads(run.stdout)
    unchecked = [
        f"whether results are stale: no answers folder answers in {results.parent}: run the "
        "command in your project's folder, or name another one with --answer_folder"
    ]
    assert {name: numbers.pop(name) for name in ("stale", "unchecked", "removed")} == {
        "stale": {},
        "unchecked": unchecked,
        "removed": [],
    }
    assert numbers.pop("corrected") is None
    assert numbers.pop("cautions") == []
    assert numbers.pop("by_domain") == []
    assert numbers.pop("by_tag") is None
    assert numbers.pop("sentence").startswith("bot reached a partial completion of")
    assert numbers.pop("changed_pages") == []
    assert numbers == read_json(results / "bot" / "summary.json")


def test_intervals_are_beside_the_means(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    add_agent(tmp_path, "bot")
    lines = call(main, "metrics", "bot").stdout.splitlines()
    rows = [line.strip("│ ").replace("│", " ").split() for line in lines]
    assert ["partial", "completion", "0.25", "0", "0.08", "to", "0.42"] in rows
    assert ["success", "rate", "0", "0", "0", "to", "0.26"] in rows
    assert (
        "95% interval: BCa bootstrap, 10,000 resamples of the tasks with all their answers."
        in lines
    )
    exact = (
        "95% interval of success rate, pass@1: exact (Clopper-Pearson), as all tasks have the "
        "same value."
    )
    assert exact in lines
    assert all(len(line) <= 80 for line in lines if line.startswith(("│", "┏", "┡")))


@pytest.mark.parametrize("difference", [0.0, 0.5])
def test_equal_answers_say_nothing_of_other_answers(tmp_path, monkeypatch, difference):
    """Where all answers to a task have one score, an interval without width is a false promise."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    for number in range(6):
        for run in (1, 2):
            score = difference * (number % 2) * (run - 1)
            add_result(tmp_path, f"task_{number}/answer_{run}", score)
    shown = " ".join(call(main, "metrics", "bot").stdout.split())
    none = (
        "No interval for new answers to these same tasks: all answers to a task have the same "
        "score."
    )
    assert (none in shown) is (difference == 0)
    assert ("partial completion 0% to 0%" in shown) is False


@pytest.mark.usefixtures("results")
def test_few_tasks_have_no_intervals():
    run = call(main, "metrics", "bot")
    assert (
        "No interval for partial completion, success rate, pass@2: too few tasks: 2, 6 are needed."
        in run.stdout.splitlines()
    )
    assert "95% interval:" not in run.stdout


def test_length_and_time_come_from_the_answers_if_results_lack_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    add_result(tmp_path, "lake/answer_1", 1)
    folder = tmp_path / "answers" / "bot" / "lake"
    folder.mkdir(parents=True)
    (folder / "answer_1.md").write_text("It is deep.")
    (folder / "answer_1.meta.json").write_text('{"time_seconds": 12.5}')
    generate_result_summary("eval_results", "bot")
    written = Path("eval_results/bot/summary.json").read_text()
    numbers = json.loads(call(main, "metrics", "bot", "--json").stdout)
    assert (numbers["avg_answer_word_count"], numbers["avg_time_seconds"]) == (3, 12.5)
    assert Path("eval_results/bot/summary.json").read_text() == written


def test_a_metric_of_few_values_has_no_interval(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    add_agent(tmp_path, "bot")
    add_result(tmp_path, "last/answer_1", 1, time_seconds=60)
    run = call(main, "metrics", "bot")
    assert (
        "No interval for agent's time (s): too few tasks: 1, 6 are needed."
        in run.stdout.splitlines()
    )


def test_what_the_scores_rest_on(results):
    """Scores rest on doubtful claims and split votes.

    The report names the tasks that have most of them, and the answers concerned.
    """
    root = results.parent
    gone = {"url": "u", "outcome": "unavailable", "reason": "HTTP status 404"}
    add_result(root, "c/answer_1", 0, eval_breakdown=evidence(True, False, False))
    add_result(root, "c/answer_2", 0, eval_breakdown=evidence(False, False, pages=[gone]))
    add_result(
        root,
        "d/answer_1",
        0,
        eval_breakdown=evidence(False, False),
        doubts=["u: HTTP status 500"],
        answer_flags=[{"kind": "instruction", "excerpt": "say yes"}],
        extractions=[{"name": "lakes", "declined": "no"}],
    )
    add_result(root, "d/answer_2", 1, eval_breakdown=[{"verification_tree": {"id": "root"}}])
    lines = call(main, "metrics", "bot").stdout.splitlines()
    rows = [" ".join(line.strip("│ ").replace("│", " ").split()) for line in lines]
    assert "Evidence behind the scores: 3 judged claims" in rows
    assert "failed: page unavailable 1 33% c 1 of 2" in rows
    assert "page looks wrong 0 0%" in rows
    assert "votes differ, of 3 1 33% c 1 of 2" in rows
    assert "Warning: extractions: 1 empty, because the judge refused to answer" in rows
    assert "Warning: answers that try to instruct the judge: 1 (d/answer_1.md)" in rows
    assert "Warning: results in doubt, which the next run judges again: 1 (d/answer_1.md)" in rows
    assert any(row.startswith("Warning: results without evidence") for row in rows)
    assert any(row.startswith("Warning: scores without a rubric tree") for row in rows)


def test_cautions_of_the_run_are_shown_again(results):
    gone = evidence(
        False,
        False,
        pages=[{"url": "u", "outcome": "unavailable", "reason": "HTTP status 404"}],
    )
    fault = "lake.py, line 3: leaf 'depth' is never judged, and counts 0"
    add_result(results.parent, "c/answer_1", 0, eval_breakdown=gone, script_faults=[fault])
    lines = call(main, "metrics", "bot").stdout.splitlines()
    assert "Warning: 1 cited page unavailable (c 1); claims on them are not supported" in lines
    assert f"Warning: {fault} (c/answer_1.md)" in lines
    of_others = call(main, "metrics", "bot", "--task_id", "a").stdout
    assert "unavailable (" not in of_others and "depth" not in of_others


def test_stale_results_and_answers_without_any(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    project = Project(tmp_path)
    project.add_answer()
    project.add_script({"depth": ("It is deep.", None)})
    asyncio.run(evaluate(project, ClaimJudge()))
    assert "out of date" not in call(main, "metrics", "bot").stdout.lower()
    project.add_answer(text="Another text.")
    project.add_answer("answer_2")
    run = call(main, "metrics", "bot")
    assert run.returncode == 1
    assert [
        line for line in run.stdout.splitlines() if line.startswith(("Warning", "Out", "Note"))
    ] == [
        "Warning: answers without a score: 1, not counted in the averages",
        f"Warning: 1 result out of date. To judge again: {AGAIN}",
        "Out of date: lake/answer_1.md: its script, answer, pages, judge or this toolkit has changed",
        f"Warning: 1 answer never evaluated (lake/answer_2.md). To judge them: {AGAIN}",
        "Note: not checked: whether pages have changed: no folder cache/bot",
    ]
    assert "(1 answer, 1 without a score left out)" in run.stdout
    missing = json.loads(call(main, "metrics", "bot", "--json").stdout)["missing"]
    assert [each["reason"] for each in missing] == ["never evaluated"]


def test_a_folder_that_cannot_be_written_still_has_its_numbers(results):
    (results / "bot" / ".summing_up.lock").mkdir()
    run = call(main, "metrics", "bot")
    assert "partial completion" in run.stdout
    assert "Warning: the numbers were not stored: cannot write to eval_results/bot: " in run.stdout
    assert call(main, "metrics", "bot", "--json").returncode == run.returncode


@pytest.mark.parametrize("has_seal", [True, False])
def test_a_result_changed_by_hand_enters_no_average(tmp_path, monkeypatch, has_seal):
    monkeypatch.chdir(tmp_path)
    project = Project(tmp_path)
    project.add_answer()
    project.add_script({"depth": ("It is deep.", None)})
    asyncio.run(evaluate(project, ClaimJudge()))
    [path] = tmp_path.glob("eval_results/bot/*/*/results/*.json")
    content = read_json(path)
    if has_seal:
        content["final_score"] = 1 - content["final_score"]
    else:
        del content["run"]["content_sha256"]
    path.write_text(json.dumps(content))
    run = call(main, "metrics", "bot")
    assert run.returncode == 1
    lines = run.stdout.splitlines()
    assert lines[0] == "No answer of bot has a score."
    assert (
        f"No result: lake/answer_1.md: its newest result {path.name} was changed after it was "
        "written: evaluate it again"
    ) in lines
    assert read_json(tmp_path / "eval_results" / "bot" / "summary.json")["avg_score"] is None


def test_answers_that_do_not_exist_are_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number in range(5):
        add_result(tmp_path, f"t{number}/answer_1", 1)
    for answer, score in (
        ("t0/answer_2", 1),
        ("t1/answer_2", 1),
        ("t2/answer_2", 1),
        ("t0/answer_3", None),
    ):
        add_result(tmp_path, answer, score)
    lines = call(main, "metrics", "bot").stdout.splitlines()
    assert "Warning: answers without a score: 1, not counted in the averages" in lines
    assert any(text.startswith("Warning: missing answers: 6 (t1 answer_3, ") for text in lines)
    assert [line.split(":")[1] for line in lines if line.startswith("No result")] == [
        " t0/answer_3.md"
    ]


def test_several_agents_as_json(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for agent, gain in (("bot", 0.0), ("better", 0.1), ("best", 0.15)):
        add_agent(tmp_path, agent, gain)
    content = json.loads(call(main, "metrics", "bot", "better", "best", "--json").stdout)
    assert [agent["agent_name"] for agent in content["agents"]] == [
        "bot",
        "better",
        "best",
    ]


def test_a_task_list_may_be_a_link(results):
    (results.parent / "all.txt").write_text("a\n")
    (results.parent / "tasks.txt").symlink_to("all.txt")
    run = call(main, "metrics", "bot", "--task_list", "tasks.txt")
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize("as_json", [False, True])
def test_a_task_list_counts_missing_tasks(results, as_json):
    (results.parent / "tasks.txt").write_text("\ufeff# ours\na\n\n  c  \r\n", encoding="utf-8")
    run = call(
        main,
        "metrics",
        "bot",
        "--task-list=tasks.txt",
        *(["--json"] if as_json else []),
    )
    assert run.returncode == 1
    if as_json:
        numbers = json.loads(run.stdout)
        assert (
            numbers["avg_score"],
            numbers["num_tasks"],
            numbers["missing"][0]["task_id"],
        ) == (
            0.375,
            2,
            "c",
        )
    else:
        assert "Warning: tasks without any answer: 1 (c), counted as 0" in run.stdout.splitlines()
        assert "Warning: tasks that were not asked for, left out: b" in run.stdout.splitlines()
        assert "bot, chosen tasks: 2 tasks, 2 runs" in run.stdout
        assert "on 2 tasks (2 answers, 2 without a score counted as 0)" in run.stdout


def test_results_of_several_judges_are_not_averaged_in_silence(results):
    """A warning names them."""
    add_result(results.parent, "c/answer_1", 1, judge_model="gpt-4o")
    run = call(main, "metrics", "bot")
    [warning] = [line for line in run.stdout.splitlines() if "different judge models" in line]
    assert "gpt-4o (1 answer), o4-mini (4 answers)" in warning


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["bot", "bot"], "an agent is named twice: name each one once"),
        (
            ["nobody"],
            "no results of agent nobody under eval_results: run mind2web2 evaluate nobody first",
        ),
        (["../bot"], "agent '../bot' begins with a dot"),
        (["bot", "--task_list", "gone.txt"], "cannot read the task list gone.txt: "),
        (
            ["bot", "--task_list", "empty.txt"],
            "the task list empty.txt names no task: write one task id a line",
        ),
        (["bot", "--task_list", "no_scripts"], "the task list no_scripts names no task"),
        (
            ["bot", "--task_list", "binary.txt"],
            "cannot read the task list binary.txt: ",
        ),
        (
            ["bot", "--eval_version", "foo"],
            "no eval version foo under eval_scripts. Found: none",
        ),
        (["bot", "--eval_results_root", "gone"], "no results of agent bot under gone"),
    ],
)
def test_commands_that_cannot_be_averaged(results, words, message):
    (results.parent / "empty.txt").write_text("# nothing\n")
    (results.parent / "no_scripts").mkdir()
    add_result(results.parent, "c/answer_1", 1, agent="scout")
    (results.parent / "binary.txt").write_bytes(b"\xff\xfe\x00")
    run = call(main, "metrics", *words)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("mind2web2: ")
    assert message in run.stderr
    assert run.stderr.count("\n") == 1


@pytest.mark.usefixtures("results")
def test_figures_by_the_domain_of_a_task_list(tmp_path):
    listed = "task_id,domain\na,Travel\nb,Travel\nc,Science\n"
    (tmp_path / "tasks.csv").write_text(listed, encoding="utf-8")
    words = ("metrics", "bot", "--task_list", "tasks.csv")
    shown = call(main, *words).stdout
    assert "bot, domain Travel: partial completion 0.38, pass@2 0.50 (2 tasks)" in shown
    numbers = json.loads(call(main, *words, "--json").stdout)
    science, travel = numbers["by_domain"]
    assert science == {"domain": "Science", "avg_score": 0, "pass_at_k": 0, "tasks": 1}
    assert (travel["avg_score"], travel["tasks"]) == (0.375, 2)


@pytest.mark.usefixtures("results")
def test_figures_by_tag(tmp_path):
    assert "no leaf has a tag" in call(main, "metrics", "bot", "--by_tag").stdout
    leaves = [{"id": name, "status": "passed", "tags": ["price"], "children": []} for name in "xy"]
    leaves[1]["status"] = "failed"
    tree = [{"info": [], "verification_tree": {"id": "root", "children": leaves}}]
    add_result(tmp_path, "c/answer_1", 0.5, eval_breakdown=tree)
    shown = call(main, "metrics", "bot", "--by_tag").stdout
    assert "bot, tag price: 50% of its leaves passed (2 leaves of 1 answer, 1 task)" in shown
    add_result(tmp_path, "d/answer_1", 1, eval_breakdown=tree)
    empty = {"answer_name": "answer_2.md", "score": 0, "status": "failed", "success": False}
    entry = empty | {"reason": "empty", "earlier_result": "20250714_120000_answer_2.md.json"}
    add_result(tmp_path, "c/answer_2", 1, eval_breakdown=tree)
    (tmp_path / "eval_results/bot/c/summary.json").write_text(json.dumps([entry]))
    one_task = ("metrics", "bot", "--by_tag", "--task_id", "c")
    assert "(2 leaves of 1 answer, 1 task)" in call(main, *one_task).stdout
    [figure] = json.loads(call(main, *one_task, "--json").stdout)["by_tag"]
    assert (figure["tag"], figure["passed"]) == ("price", 0.5)


def test_a_task_without_results_is_no_zero(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for agent in ("bot", "other"):
        add_agent(tmp_path, agent)
    for words in (["metrics", "bot"], ["compare", "bot", "other"]):
        run = call(main, *words, "--task_id", "no_such_task")
        assert (run.returncode, "no results of task no_such_task; found: " in run.stderr) == (
            2,
            True,
        )


def test_a_link_to_nothing_does_not_hide_the_other_results(results):
    (results / "bot/a/answer_1/results/copy.json").symlink_to("gone.json")
    assert call(main, "metrics", "bot").returncode == 0
    (shown,) = Catalog(PathConfig(results.parent), ["bot"]).overview()["agents"]
    assert shown["metrics"]["num_tasks"] == 2


def test_figures_of_one_task_are_not_shown_as_the_agents(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    add_agent(tmp_path, "bot")
    assert call(main, "metrics", "bot").returncode == 0
    whole = Catalog(PathConfig(tmp_path), ["bot"]).overview()["agents"][0]["metrics"]
    assert call(main, "metrics", "bot", "--task_id", "task_1").returncode == 0
    assert Catalog(PathConfig(tmp_path), ["bot"]).overview()["agents"][0]["metrics"] == whole
