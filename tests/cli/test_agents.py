"""Commands that read results of an agent who has none, one, or nothing but reasons."""

import json

import pytest
from projects import AGENT, TASK, ClaimJudge, Project, call, evaluate

from mind2web2.cli import main


@pytest.fixture
async def project(tmp_path, monkeypatch):
    """Return a project with one result, in the working directory."""
    monkeypatch.chdir(tmp_path)
    project = Project(tmp_path)
    project.add_answer()
    project.add_script({"leaf": ("The lake is deep.", None)})
    await evaluate(project, ClaimJudge())
    return project


@pytest.mark.parametrize("command", ["metrics", "verify-results"])
@pytest.mark.parametrize("folders", [None, "", "lake", "lake/answer_1/results", "batches"])
def test_no_results_are_one_line_that_names_whose_there_are(project, command, folders):
    if folders is not None:
        (project.results.parent / "boot" / folders).mkdir(parents=True)
        project.add_answer().rename(project.root / "answers" / "boot")
    run = call(main, command, "boot")
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == (
        "mind2web2: no results of agent boot under eval_results: did you mean bot? Otherwise run "
        "mind2web2 "
        "evaluate boot first. "
        f"There are results of {AGENT}\n"
    )


@pytest.mark.usefixtures("project")
def test_unknown_agents_are_named_by_every_command():
    reading = ("metrics", "verify-results", "show", "view", "rejudge")
    commands = [(name, "nobody") for name in reading]
    commands += [(name, "nobody", "-o", "out.html") for name in ("report", "probe")]
    commands += [("export", "nobody", "-o", "out.csv")]
    commands += [("probe", "nobody", "--judge_model", "rule")]
    for command in commands:
        run = call(main, *command)
        assert (run.returncode, run.stderr.count("\n")) == (2, 1), command
        assert "no results of agent nobody under eval_results: run" in run.stderr


def test_without_any_results_no_agent_is_named(project):
    """The line has the command to run, the folder where we looked, and the option."""
    project.results.rename(project.root / "away")
    for command in ("metrics", "verify-results"):
        run = call(main, command, AGENT)
        assert f"run mind2web2 evaluate {AGENT} first. If there are some" in run.stderr
        assert f"from {project.root} to" in run.stderr
        assert run.stderr.endswith("with --eval_results_root\n")


def test_one_result_is_enough(project):
    assert call(main, "metrics", AGENT).returncode == 0
    assert "1 answer: 1 correct and up to date" in call(main, "verify-results", AGENT).stdout
    assert project.result_paths()


def test_without_a_score_the_reasons_are_printed_and_no_tables(project):
    project.result_paths()[0].unlink()
    entry = {
        "answer_name": "answer_1.md",
        "score": None,
        "status": "unscored",
        "success": False,
    }
    summary = project.results / TASK / "summary.json"
    summary.write_text(json.dumps([entry | {"reason": "the key was refused"}]))
    run = call(main, "metrics", AGENT)
    assert run.returncode == 1
    assert run.stdout.splitlines()[:2] == [
        f"No answer of {AGENT} has a score.",
        f"No result: {TASK}/answer_1.md: the key was refused",
    ]
    assert "┃" not in run.stdout
