"""``metrics --fail_under``."""

from pathlib import Path

import pytest
from projects import Project, call, run_command
from servers.judge_server import JudgeServer

from mind2web2.cli import main


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    """Return a project with answers, and with a run in which the agent failed.

    Some answers pass, some fail, and some cannot be read.
    """
    project = Project(tmp_path_factory.mktemp("limits"))
    project.add_script({"first": ("Deep & <cold>.\x08", None), "second": ("It is flat.", None)})
    project.add_answer("answer_1", "Good.")
    project.add_answer("answer_2", "Bad.")
    project.add_answer("answer_3", b"\xff")
    project.add_answer("answer_4", "")
    (project.root / "answers/bot/lake/answer_1.meta.json").write_text('{"time_seconds": 12.5}')
    with JudgeServer(lambda body: {"reasoning": "r", "result": "Good." in str(body)}) as judge:
        words = [
            "--agent_name",
            "bot",
            "--judge_base_url",
            judge.base_url,
            "--no_capture",
        ]
        assert run_command(*words, cwd=project.root).returncode == 1
    project.add_answer("answer_1", "New.", task="mill")
    (project.root / "tasks.txt").write_text("lake\nsea\n")
    return project


@pytest.fixture
def metrics(evaluated, monkeypatch):
    """Return the command, run in the project."""
    monkeypatch.chdir(evaluated.root)
    return lambda *options: call(main, "metrics", "bot", *options)


@pytest.mark.parametrize(
    ("options", "status"),
    [
        (("--fail_under", "0.3"), 1),
        (("--fail_under", "0.34"), 5),
        (("--fail_under", "0.3", "--task_list", "tasks.txt"), 5),
        (("--fail_under", "0.34", "--json"), 5),
        (("--fail_under", "0"), 1),
        (("--fail_under", "50"), 2),
        (("--fail_under", "much"), 2),
    ],
)
def test_a_limit_has_its_own_exit_status(metrics, options, status):
    """Partial completion is 1/3 over three scored answers, 1/8 if missing ones count as 0."""
    run = metrics(*options)
    assert run.returncode == status
    assert (f"'{options[1]}' is not a score from 0 to 1" in run.stderr) == (status == 2)
    assert ("Below --fail_under" in run.stdout) == (status == 5 and "--json" not in options)


def test_an_agent_without_a_score_is_not_below_the_limit(tmp_path, monkeypatch):
    """A failure of the evaluation does not score 0: the status says that results are missing."""
    monkeypatch.chdir(tmp_path)
    folder = Path("eval_results/bot/lake")
    folder.mkdir(parents=True)
    folder.joinpath("summary.json").write_text("[]")
    entry = '[{"answer_name": "answer_1.md", "score": null, "reason": "the judge failed"}]'
    folder.joinpath("unscored.json").write_text(entry)
    assert call(main, "metrics", "bot", "--fail_under", "0.5").returncode == 1
