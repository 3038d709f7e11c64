"""Files and folders that a command cannot use: one line names what failed and where."""

import os

import pytest
from projects import REPOSITORY, Project, call, run_command
from servers.judge_server import JudgeServer

from mind2web2.cli import main

MUSEUM = REPOSITORY / "examples/rubrics/example/museum_saturday.yaml"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Work in a project with an answer, a script, an empty ``file``, a ``text``, a ``folder``."""
    monkeypatch.chdir(tmp_path)
    project = Project(tmp_path)
    project.add_answer()
    project.add_script({"leaf": ("The lake is deep.", None)})
    (tmp_path / "file").touch()
    (tmp_path / "text").write_text("words")
    (tmp_path / "folder").mkdir()
    return project


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (f"rehearse {MUSEUM} --write_script file/x.py", "cannot use file/x.py: "),
        ("import judgments bot folder", "judgments from folder: Is a directory"),
        ("submit bot --num_runs 1 -o folder", "cannot pack folder: Is a directory"),
        ("rehearse lake --junit folder", "cannot use folder: Is a directory"),
        ("rehearse lake --cases nowhere", "--cases: there is no folder nowhere"),
        ("rehearse lake --pages folder", "--pages is for a real judge: add --judge_m"),
        ("rehearse lake --missing_pages capture", "--missing_pages is for a real"),
        (
            "import answers bot a.csv --tasks_root nowhere",
            "--tasks_root: there is no folder nowhere",
        ),
        ("import answers bot a.csv --tasks_root file", "--tasks_root: there is no folder file"),
        ("new sea --cases file", "cannot use file/sea: Not a directory"),
    ],
)
@pytest.mark.usefixtures("project")
def test_a_file_that_cannot_be_used_is_named(words, message):
    """Exit status 2, and nothing about other names under which it was to be written."""
    run = call(main, *words.split())
    assert run.returncode == 2
    assert run.stderr.count("\n") == 1
    assert message in run.stderr
    assert ".writing-" not in run.stderr and "Errno" not in run.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rehearse", ""], "unknown task ''. Found: lake"),
        (["new", "a b"], "cannot make task 'a b': task: String should match pattern"),
        (
            ["new", "sea", "--question", ""],
            "cannot make task 'sea': question: String should have at least 1 character",
        ),
    ],
)
@pytest.mark.usefixtures("project")
def test_a_name_that_is_none_is_refused(words, message):
    run = call(main, *words)
    assert (run.returncode, run.stderr.count("\n")) == (2, 1)
    assert message in run.stderr


def test_a_file_in_the_place_of_the_results_is_named_alone(project):
    """No record of a judge is looked for in it."""
    words = ("--llm_provider", "replay", "--judgments")
    recorded = REPOSITORY / "examples" / "judgments.jsonl"
    root = ("--eval_results_root", "file")
    run = run_command("--agent_name", "bot", *words, recorded, *root, cwd=project.root)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == "run_eval.py: cannot write to file/bot: Not a directory\n"


OUTPUTS = (
    "submit bot --num_runs 1 -o pipe.json",
    "rehearse lake --junit pipe.xml",
    "report bot -o pipe.html",
    "export bot --judgments pipe.jsonl",
)


def test_no_device_or_pipe_is_replaced_by_a_file(project, monkeypatch):
    """Root could replace /dev/null; a pipe stands for it here."""
    monkeypatch.setenv("OPENAI_API_KEY", "dummy")
    project.cache().put_web("https://lake.example/", "The lake is deep.", None)
    with JudgeServer() as server:
        words = ("evaluate", "bot", "--judge_base_url", server.base_url)
        assert call(main, *words).returncode == 0
    for words in OUTPUTS:
        pipe = project.root / words.split()[-1]
        os.mkfifo(pipe)
        run = call(main, *words.split())
        assert (words, run.returncode) == (words, 2)
        assert run.stderr.endswith(f"{pipe.name}: it is not a regular file\n")
        assert pipe.is_fifo()
