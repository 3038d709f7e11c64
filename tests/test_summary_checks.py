"""Summaries held against the results that they sum up."""

import json
import os

import pytest
from projects import AGENT, TASK, ClaimJudge, Project, evaluate, read_json

from mind2web2.results import write_result
from mind2web2.seals import sealed
from mind2web2.summaries import generate_result_summary, merge_all_results
from mind2web2.summary_checks import agent_summary_findings, task_summary_findings


@pytest.fixture
async def project(tmp_path):
    """Return a project with two judged answers, summed up."""
    project = Project(tmp_path)
    project.add_script({"deep": ("deep", None), "cold": ("cold", None), "wet": ("wet", None)})
    for stem in ("answer_1", "answer_2"):
        project.add_answer(stem)
    await evaluate(project, ClaimJudge(lambda claim: claim != "cold"))
    sum_up(project)
    return project


def sum_up(project, task_ids=None):
    """Write the agent's summary and the one of all agents."""
    generate_result_summary(project.paths.eval_results_root, AGENT, task_ids)
    merge_all_results(project.paths.eval_results_root)


def of_task(project):
    """Return kind and text of what is found of the task's summary."""
    return [tuple(found) for found in task_summary_findings(project.paths.eval_results_root, AGENT, TASK)]


def of_agent(project):
    """Return kind and text of what is found of the agent's summary and of the one of all agents."""
    return [tuple(found) for found in agent_summary_findings(project.paths.eval_results_root, AGENT)]


def change(path, change):
    """Change a file of JSON."""
    content = read_json(path)
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def set_entry(number, **fields):
    """Return a change of one entry of a task's summary."""
    return lambda entries: entries[number].update(fields)


async def test_a_run_s_own_summaries_are_right(project):
    """With a list of tasks too, where what is missing counts as 0; and where nothing is to be summed up."""
    assert of_task(project) == of_agent(project) == []
    sum_up(project, [TASK, "pond"])
    assert of_agent(project) == []
    assert list(task_summary_findings(project.paths.eval_results_root, AGENT, "pond")) == []
    project.add_answer("answer_2").unlink()
    await evaluate(project, ClaimJudge())
    sum_up(project)
    assert of_task(project) == of_agent(project) == []


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        (set_entry(0, score=1.0), "score 1.0 of answer_1.md, and by its result it is 0.666"),
        (set_entry(0, score=True), "score True of answer_1.md"),
        (set_entry(1, status="failed"), "status 'failed' of answer_2.md, and by its result it is 'success'"),
        (set_entry(1, success=True), "success True of answer_2.md, and by its result it is False"),
        (lambda entries: entries.pop(), "summary.json lacks answer_2.md"),
        (
            lambda entries: entries.append({**entries[0], "answer_name": "answer_9.md", "score": 2}),
            "answer_9",
        ),
        (lambda entries: entries.append({}), "summary.json is damaged: one of its entries is none"),
    ],
)
def test_a_task_s_summary_that_was_changed_is_wrong(project, edit, text):
    """Each field, an entry too few, an entry too many."""
    change(project.results / TASK / "summary.json", edit)
    [(kind, found)] = of_task(project)
    assert kind == "wrong"
    assert text in found


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        (lambda summary: summary.update(avg_score=0.9), "avg_score 0.9 (by the results 0.666667)"),
        (lambda summary: summary.update(pass_at_2=1.0), "pass_at_2 1.0 (by the results 0.0)"),
        (lambda summary: summary.update(success_rate=None), "success_rate None (by the results 0.0)"),
        (
            lambda summary: summary["per_run"]["answer_1.md"].update(avg_score=0),
            "per_run.answer_1.md.avg_score",
        ),
        (lambda summary: summary["tasks"][TASK].update(best_score=1), f"tasks.{TASK}.best_score 1 (by"),
        (lambda summary: summary["tasks"].update(pond={}), "tasks.pond"),
        (lambda summary: summary.pop("num_tasks"), "num_tasks None (by the results 1)"),
        (lambda summary: summary.update(agent_name="other"), "agent_name 'other' (by the results 'bot')"),
        (lambda summary: summary["judge_models"].update({"judge-1": 9}), "judge_models.judge-1 9"),
    ],
)
def test_an_agent_s_summary_that_was_changed_is_wrong(project, edit, text):
    """It is derived again from the results."""
    change(project.results / "summary.json", edit)
    [(kind, found)] = of_agent(project)
    assert kind == "wrong"
    assert found.startswith("summary.json of the agent is not what the results say: ")
    assert text in found


def test_what_other_versions_say_beside_is_no_fault(project):
    """Or what an earlier one did not say yet; nor what is rounded otherwise."""

    def edit(summary):
        del summary["judge_models"], summary["warnings"]
        summary.update(extra=1, avg_score=summary["avg_score"] + 0.0001)

    change(project.results / "summary.json", edit)
    assert of_agent(project) == []


def test_much_that_differs_is_one_line(project):
    """Short enough to be read."""

    def edit(summary):
        for name in ("avg_score", "success_rate", "num_runs", "num_tasks", "avg_score_std", "agent_name"):
            summary[name] = 7
        summary["avg_answer_word_count"] = 0

    change(project.results / "summary.json", edit)
    [(_, found)] = of_agent(project)
    assert found.endswith(" more")


def test_the_summary_of_all_agents_is_made_of_theirs(project):
    """Where it is not, it says which task."""
    path = project.paths.eval_results_root / "all_results.json"
    change(path, lambda merged: merged[TASK][AGENT][0].update(score=1.0))
    assert of_agent(project) == [("wrong", f"all_results.json does not have what {TASK}/summary.json says")]
    change(path, lambda merged: merged.pop(TASK))
    assert of_agent(project) == [("wrong", f"all_results.json does not have what {TASK}/summary.json says")]


@pytest.mark.parametrize(("content", "kind"), [(None, "missing"), ("{", "wrong"), ("7", "wrong")])
def test_summaries_that_cannot_be_read_are_told(project, content, kind):
    """Each by its name; a missing one comes back with the next run."""
    for path in (
        project.results / TASK / "summary.json",
        project.results / "summary.json",
        project.paths.eval_results_root / "all_results.json",
    ):
        path.unlink() if content is None else path.write_text(content)
    findings = of_task(project) + of_agent(project)
    assert [found for found, _ in findings] == [kind] * 3
    assert [text.split()[-1 if content is None else 0] for _, text in findings] in (
        ["summary.json", "agent", "all_results.json"],
        ["summary.json", "summary.json", "all_results.json"],
    )


def test_a_result_that_is_newer_than_its_summary_makes_it_stale(project):
    """A run that was stopped in between has not summed it up yet."""
    path = project.result_paths()[0]
    content = sealed({**read_json(path), "final_score": 0.0})
    newer = write_result(path.parent, "answer_1.md", content)
    now_ns = (project.results / "summary.json").stat().st_mtime_ns + 1_000_000_000
    os.utime(newer, ns=(now_ns, now_ns))
    assert {kind for kind, _ in of_task(project)} == {"stale"}
    assert [kind for kind, _ in of_agent(project)] == ["stale"]
