"""``mind2web2 trust``, and what an evaluation says of scripts."""

import os
from hashlib import sha256

import pytest
from projects import AGENT, Project, call, read_json
from servers.judge_server import JudgeServer

from mind2web2.cli import evaluate_main, main


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a project with scripts of two versions, in the working directory."""
    project = Project(tmp_path)
    project.add_answer()
    project.add_script({"deep": ("deep", None)}, version="2025_07_14")
    project.add_script({"deep": ("deep", None)}, version="2026_01_01")
    project.add_script({}, task="pond", version="2025_07_14")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "dummy")
    return project


def trust(*words):
    """Run the command; return its status, and its lines by script."""
    run = call(main, "trust", *words)
    lines = [line.split("  ") for line in run.stdout.splitlines()]
    return run.returncode, {line[1]: (line[0], line[2]) for line in lines if len(line) == 3}, run


def test_every_script_is_shown_with_its_hash(project):
    """The newest version first, as they are looked for."""
    status, scripts, run = trust()
    assert status == 1
    assert list(scripts) == ["2026_01_01/lake.py", "2025_07_14/lake.py", "2025_07_14/pond.py"]
    for name, (digest, words) in scripts.items():
        assert digest == sha256((project.paths.eval_scripts_root / name).read_bytes()).hexdigest()
        assert words == "new, neither run nor accepted yet"
    assert run.stdout.splitlines()[-2:] == [
        "Scripts: 3; new: 3; changed: 0",
        "Next, when you have read them: mind2web2 trust --accept",
    ]
    assert not project.paths.eval_results_root.exists()


def test_what_is_accepted_is_fine_until_it_changes(project):
    """Then the command says so, and exits with 1."""
    status, scripts, _ = trust("--accept")
    assert status == 0
    assert {words for _, words in scripts.values()} == {"accepted (it was new, neither run nor accepted yet)"}
    assert trust()[0] == 0
    project.add_script({"deep": ("deeper", None)}, version="2026_01_01")
    status, scripts, run = trust()
    assert status == 1
    assert "changed since accepted" in scripts["2026_01_01/lake.py"][1]
    assert "Scripts: 3; new: 0; changed: 1" in run.stdout
    assert trust("--task_id", "pond")[0] == trust("--eval-version", "2025_07_14")[0] == 0
    trust("--accept", "--task_id", "lake", "--eval_version", "2026_01_01")
    assert trust()[0] == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--task_id", "sea"], "no scripts for tasks sea under eval_scripts"),
        (["--eval_version", "v9"], "no eval version v9"),
        (["--eval_scripts_root", "nowhere"], "no scripts for any task under nowhere"),
        (["--task_id", "../x"], "task '../x' begins with a dot"),
    ],
)
def test_scripts_that_are_not_there(project, words, message):  # noqa: ARG001 (the working directory)
    """One line, exit status 2."""
    status, _, run = trust(*words)
    assert status == 2
    assert message in run.stderr
    assert run.stderr.count("\n") == 1


def test_scripts_that_cannot_be_read_hide_no_others(project):
    """A broken link and a pipe are listed, and cannot be accepted."""
    folder = project.paths.eval_scripts_root / "2026_01_01"
    (folder / "link.py").symlink_to("nowhere.py")
    os.mkfifo(folder / "pipe.py")
    for words in ([], ["--accept"], []):
        status, scripts, run = trust(*words)
        assert status == 1
        unreadable = [name for name, entry in scripts.items() if entry == ("-" * 64, "cannot be read")]
        assert unreadable == ["2026_01_01/link.py", "2026_01_01/pipe.py"]
        assert len(scripts) == 5
    assert "Scripts: 5; new: 0; changed: 0; cannot be read: 2" in run.stdout


def test_an_evaluation_says_which_scripts_have_changed(project):
    """In one line, the first time; the result names the hash that it was made with."""
    with JudgeServer() as server:
        words = ["--agent_name", AGENT, "--judge_base_url", server.base_url, "--no_capture"]
        assert "have changed" not in call(evaluate_main, *words).stdout
        path = project.add_script({"deep": ("deeper", None)}, version="2026_01_01")
        changed = call(evaluate_main, *words, "--estimate")
        assert "have changed" not in changed.stdout
        changed = call(evaluate_main, *words)
        [line] = [line for line in changed.stdout.splitlines() if "have changed" in line]
        assert line.startswith(
            "Scripts that have changed since they were accepted or last ran: 2026_01_01/lake.py;"
        )
        assert "have changed" not in call(evaluate_main, *words).stdout
    result = read_json(project.result_paths()[-1])
    assert result["provenance"]["script_sha256"] == sha256(path.read_bytes()).hexdigest()
    assert [name for name, (_, words) in trust()[1].items() if "unchanged since last run" in words] == [
        "2026_01_01/lake.py"
    ]
