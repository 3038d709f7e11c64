"""``mind2web2 validate`` and ``submit``, and the way from download to submission."""

import os

import pytest
from projects import AGENT, Project, call

from mind2web2.cli import main


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Stand in a project with a task list of two tasks and three runs of one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "tasks.csv").write_text("task_id\nlake\nmill\n")
    made = Project(tmp_path)
    for task in ("lake", "mill"):
        for number in (1, 2, 3):
            made.add_answer(f"answer_{number}", "Deep: https://lake.example/depth", task)
    return made


def validate(*options):
    """Return status and findings of the command."""
    run = call(main, "validate", AGENT, "--task_list", "tasks.csv", *options)
    return run.returncode, run.stdout.splitlines()


@pytest.mark.usefixtures("project")
def test_answers_in_order():
    """Nothing is found."""
    assert validate() == (0, ["2 tasks: 0 errors, 0 warnings"])


@pytest.mark.parametrize(
    ("name", "content", "status", "finding"),
    [
        (
            "lake/answer_1.md",
            b"\xff",
            1,
            "Error: answer answers/bot/lake/answer_1.md is not UTF-8",
        ),
        (
            "lake/answer_1.meta.json",
            b"{",
            1,
            "Error: answers/bot/lake/answer_1.meta.json: Invalid JSON",
        ),
        ("lake/answer_1.meta.json", b"[]", 1, "Input should be an object"),
        ("lake/answer_1.meta.json", b"\xef\xbb\xbf{}", 0, "2 tasks: 0 errors"),
        (
            "lake/answer_1.meta.json",
            b'{"time_seconds": "x"}',
            1,
            "time_seconds: Input should be a valid number",
        ),
        ("lake/answer_2.md", b" \n", 0, "Warning: answers/bot/lake/answer_2.md: empty"),
        (
            "lake/answer_2.md",
            b"Deep.",
            0,
            "Warning: answers/bot/lake/answer_2.md: it cites no URL",
        ),
        ("lake/answer_2.md", None, 0, "Warning: answers/bot/lake/answer_2.md: missing"),
        ("lake/answer_4.md", b"https://a.example", 0, "answer_4.md: beyond 3 runs"),
        ("lake/answer_01.md", b"https://a.example", 0, "answer_01.md: stray file"),
        ("lake/answer_0.md", b"https://a.example", 0, "answer_0.md: stray file"),
        ("lake/answer_9.meta.json", b"{}", 0, "answer_9.meta.json: there is no answer"),
        ("lake/notes.txt", b"x", 0, "Warning: answers/bot/lake/notes.txt: stray file"),
        (
            "sea/answer_1.md",
            b"https://a.example",
            0,
            "Warning: answers/bot: not in the task list: sea",
        ),
    ],
)
def test_findings(project, name, content, status, finding):
    """Errors prevent a submission, warnings do not."""
    path = project.root / "answers/bot" / name
    path.parent.mkdir(exist_ok=True)
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    found, lines = validate()
    assert found == status
    assert finding in lines[0]
    submitted = call(main, "submit", AGENT, "--task_list", "tasks.csv")
    assert submitted.returncode == status
    assert (project.root / "bot.zip").exists() == (status == 0)


@pytest.mark.usefixtures("project")
def test_answers_without_a_result_are_named():
    """They are packed, with or without a list of tasks."""
    for words in ((), ("--task_list", "tasks.csv")):
        run = call(main, "submit", AGENT, *words)
        assert run.returncode == 0
        assert "Warning: without a result: lake/answer_1, lake/answer_2, " in run.stdout
        assert "; run mind2web2 evaluate bot\n" in run.stdout
        assert "no entry for the leaderboard: answers have no result" in run.stdout


def test_a_file_whose_name_is_not_utf8_is_named(project):
    (project.root / "answers/bot" / os.fsdecode(b"lake/notes\xff.txt")).write_text("ignored")
    run = call(main, "submit", AGENT)
    assert run.returncode == 2
    assert "cannot pack bot.zip: 'answers/bot/lake/notes\\udcff.txt' is not UTF-8" in run.stderr
    assert not (project.root / "bot.zip").exists()
