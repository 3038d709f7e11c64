"""Full disks and folders that cannot be written.

A message names them, and nothing that was earned is lost.
"""

import subprocess
import sys
from contextlib import contextmanager

import pytest
from projects import (
    REPOSITORY,
    Project,
    call,
    clean_environment,
    read_json,
    run_command,
)
from servers.judge_server import JudgeServer, status
from servers.local_http import Answer, LocalHttp

from mind2web2.cli import main
from mind2web2.judge.store import STORE_NAME, JudgmentStore

CLAIMS = {
    f"leaf{number}": (f"The lake has {number} islands. {'So it is. ' * 200}", None)
    for number in range(24)
}
JUDGMENTS = 2 * len(CLAIMS)
# Root writes everywhere unless it gives up that privilege (CAP_DAC_OVERRIDE); others have none to
# give up.
AS_ANYBODY = """
import ctypes, os, resource, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)
if int(sys.argv[1]):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""
MAIN = "from mind2web2.cli import main; raise SystemExit(main())"


@pytest.fixture
def project(tmp_path):
    """Return a project with an answer and a claim."""
    project = Project(tmp_path)
    project.add_answer()
    project.add_script({"leaf": ("The lake has islands.", None)})
    return project


@pytest.fixture
def judge():
    """Serve a judge."""
    with JudgeServer() as judge:
        yield judge


def run_as_anybody(project, *words, file_bytes=0):
    """Run a command as a user without privileges, whose files may not grow beyond a size."""
    environment = clean_environment(OPENAI_API_KEY="dummy")
    # "make coverage" counts in such processes as well, into a file that could not grow either.
    environment.pop("COVERAGE_PROCESS_CONFIG", None)
    return subprocess.run(
        [
            sys.executable,
            "-c",
            AS_ANYBODY,
            str(file_bytes),
            "-c",
            MAIN,
            *map(str, words),
        ],
        cwd=project.root,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def evaluation(judge):
    """Return the words of the command."""
    return (
        "evaluate",
        "bot",
        "--judge_base_url",
        judge.base_url,
        "--allow_private_network",
    )


def stored(project):
    """Return how many judgments are stored."""
    with JudgmentStore(project.results / STORE_NAME) as store:
        return sum(judgment.purpose == "verify" for judgment in store.all())


@contextmanager
def read_only(folder):
    """Make a folder one that cannot be written."""
    folder.chmod(0o555)
    try:
        yield
    finally:
        folder.chmod(0o755)


def test_an_evaluation_on_a_full_disk_goes_on_when_there_is_room(project, judge):
    project.add_script(CLAIMS)
    run = run_as_anybody(project, *evaluation(judge), "--max_llm_requests", "2", file_bytes=100_000)
    assert run.returncode == 1, run.stderr
    [reason] = [line for line in run.stdout.splitlines() if line.startswith("No result: ")]
    assert f"judgments in eval_results/bot/{STORE_NAME} cannot be used: " in reason
    assert "room" in reason
    assert "Traceback" not in run.stderr
    asked, kept = len(judge.requests), stored(project)
    assert 0 < kept < JUDGMENTS
    # Two questions were with the judge when the disk became full, and two replies were to be
    # written. None of the four could be stored.
    assert kept <= asked <= kept + 4
    assert " not stored, to be requested again: " in run.stdout
    run = run_command(*evaluation(judge)[1:], cwd=project.root)
    assert (run.returncode, run.stderr) == (0, "")
    assert len(judge.requests) - asked == JUDGMENTS - kept
    assert read_json(project.result_paths()[-1])["final_score"] == 1.0


def test_a_results_folder_that_cannot_be_written_costs_nothing(project, judge):
    """One line that names it, before anything is asked."""
    folder = project.root / "eval_results"
    folder.mkdir()
    with read_only(folder):
        run = run_as_anybody(project, *evaluation(judge))
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.count("\n") == 1
    assert "eval_results" in run.stderr
    assert judge.requests == []


@pytest.mark.parametrize("place", ["answers", "answers/bot", "answers/bot/lake"])
def test_an_agents_folder_that_cannot_be_written_is_named(project, place):
    """One line; no other name of a file in it."""
    (project.root / "a.jsonl").write_text('{"task_id": "lake", "answer": "x", "run": 7}')
    script = project.root / "eval_scripts" / "example" / "lake.py"
    script.write_text(f"TASK_DESCRIPTION = 'Which?'\n{script.read_text()}")
    agent = "bot" if place != "answers" else "new_bot"
    with read_only(project.root / place):
        run = run_as_anybody(project, "import", "answers", agent, "a.jsonl")
    assert (run.returncode, run.stderr.count("\n")) == (2, 1), run.stderr
    assert "mind2web2: cannot write to " in run.stderr
    assert f"{place if agent == 'bot' else 'answers/new_bot'}: Permission" in run.stderr


def test_an_answer_folder_that_cannot_be_written_costs_its_answer_only(project, judge):
    project.add_answer("answer_2", "The lake is shallow.")
    project.folder("answer_2").mkdir(parents=True)
    with read_only(project.folder("answer_2")):
        run = run_as_anybody(project, *evaluation(judge))
    assert run.returncode == 1, run.stderr
    assert "No result: lake/answer_2.md: cannot write to " in run.stdout
    assert "bot/lake/answer_2: Permission denied" in run.stdout
    assert len(judge.requests) == 2
    assert project.task_summary()["answer_1.md"]["score"] == 1.0


def test_a_cache_that_cannot_be_written_is_no_page_that_cannot_be_had(project, judge):
    """The answer has no result, for a reason that names the folder; the claim is not failed."""
    with LocalHttp(
        lambda _: Answer(b"<p>The lake is deep.", headers={"Content-Type": "text/html"})
    ) as site:
        project.add_script({"deep": ("The lake is deep.", f"{site.url}/lake")})
        folder = project.root / "cache" / "bot" / "lake"
        folder.mkdir(parents=True)
        with read_only(folder):
            run = run_as_anybody(project, *evaluation(judge))
        assert run.returncode == 1, run.stderr
        assert (
            "No result: lake/answer_1.md: cannot write cache folder cache/bot/lake: " in run.stdout
        )
        assert "Permission denied" in run.stdout
    assert judge.requests == []


def test_a_log_that_cannot_be_written_costs_no_result(project):
    """One line says so, and not one for each that would have been logged."""
    project.results.mkdir(parents=True)
    (project.results / "run.log").symlink_to("/dev/full")
    with JudgeServer(faults=[status(500), status(500)]) as judge:
        run = run_command(*evaluation(judge)[1:], cwd=project.root)
    assert run.returncode == 0
    [line] = [line for line in run.stderr.splitlines() if "request failed, retrying" not in line]
    assert line.startswith("warning: cannot write the log ")
    assert line.endswith("run.log: No space left on device")
    assert project.task_summary()["answer_1.md"]["score"] == 1.0


def test_an_export_that_finds_no_room_leaves_the_older_one(project):
    recorded = REPOSITORY / "examples" / "judgments.jsonl"
    root = ("--eval_results_root", project.root / "r")
    assert call(main, "import", "judgments", "bot", recorded, *root).returncode == 0
    target = project.root / "out" / "older.jsonl"
    target.parent.mkdir()
    target.write_text("older\n")
    run = run_as_anybody(project, "export", "bot", "--judgments", target, *root, file_bytes=60_000)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith(f"mind2web2: cannot use {target}: ")
    assert run.stderr.count("\n") == 1
    assert [path.name for path in target.parent.iterdir()] == ["older.jsonl"]
    assert target.read_text() == "older\n"


def test_a_summary_that_cannot_be_written_costs_no_table(project, judge):
    """The scores are shown with the reason; exit status 1."""
    (project.results / "summary.json").mkdir(parents=True)
    run = run_command(*evaluation(judge)[1:], cwd=project.root)
    assert (run.returncode, run.stderr) == (1, "")
    assert "1: 1" in run.stdout
    assert "Warning: cannot write to eval_results/bot/summary.json: " in run.stdout
