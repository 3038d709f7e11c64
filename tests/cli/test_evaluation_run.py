"""Runs as processes of their own: stopped, killed, held up by scripts."""

import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest
from projects import (
    REPOSITORY,
    Project,
    claim_in,
    clean_environment,
    read_json,
    run_command,
    run_process,
    start_command,
)
from servers.judge_server import JudgeServer, prompt_text

from mind2web2.judge.store import STORE_NAME, JudgmentStore

CLAIMS = {
    "first": ("The lake is deep.", None),
    "second": ("The lake is cold.", None),
    "third": ("The lake is wide.", None),
}
PATIENCE_S = 60


@pytest.fixture
def project(tmp_path):
    """Return a project with one answer and three claims."""
    project = Project(tmp_path)
    project.add_answer()
    project.add_script(CLAIMS)
    return project


class HoldingJudge:
    """Supports every claim, but holds requests about the last one back as long as it is told."""

    def __init__(self):
        """Hold from the start."""
        self.arrived = threading.Semaphore(0)
        self.released = threading.Event()

    def __call__(self, body):
        """Answer, after the release where it concerns the last claim."""
        if claim_in(prompt_text(body)) == "The lake is wide.":
            self.arrived.release()
            self.released.wait(PATIENCE_S)
        return {"reasoning": "read", "result": True}

    def wait(self):
        """Wait until both trials of the last claim have arrived."""
        assert self.arrived.acquire(timeout=PATIENCE_S)
        assert self.arrived.acquire(timeout=PATIENCE_S)


def stored_claims(project):
    """Return the claims that have stored judgments, one a judgment."""
    with JudgmentStore(project.results / STORE_NAME) as store:
        return sorted(judgment.claim for judgment in store.all())


def wait_until_stored(project, count):
    """Wait until so many judgments are stored."""
    deadline_s = time.monotonic() + PATIENCE_S
    while len(stored_claims(project)) < count:
        assert time.monotonic() < deadline_s


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_stopped_goes_on_where_it_was(project, end):
    """Two of six requests are with the judge when the run stops; no other is asked again."""
    judge = HoldingJudge()
    with JudgeServer(judge) as server:
        options = ["--agent_name", "bot", "--judge_base_url", server.base_url]
        # No line is broken where a program or a file takes it.
        with start_command(*options, cwd=project.root, COLUMNS="80") as process:
            judge.wait()
            # All six are asked at the same time: the end may come before the replies to the others
            # are kept.
            wait_until_stored(project, 4)
            process.send_signal(end)
            stdout, stderr = process.communicate(timeout=PATIENCE_S)
        judge.released.set()
        if end is signal.SIGINT:
            assert (process.returncode, stderr) == (130, "")
            stopped, under_way = stdout.splitlines()[-2:]
            assert stopped == (
                "Stopped. 0 of 1 answer done, and every judgment so far is kept. The same command "
                "continues from here."
            )
            assert re.match(
                r".* the server did not report the tokens of [12] requests, ", under_way
            )
        else:
            assert process.returncode == -signal.SIGKILL
        assert stored_claims(project) == ["The lake is cold."] * 2 + ["The lake is deep."] * 2
        assert list(project.root.rglob("*.md.json")) == []
        asked_before = len(server.requests)
        run = run_command(*options, cwd=project.root)
        assert (run.returncode, run.stderr) == (0, "")
        asked = [claim_in(prompt_text(body)) for body in server.requests[asked_before:]]
    assert asked == ["The lake is wide."] * 2
    assert "2 judgments asked, 4 reused" in run.stdout
    [path] = project.result_paths()
    assert read_json(path)["final_score"] == 1.0
    assert list(project.root.rglob(".writing-*")) == []


def test_results_that_are_done_stay_when_a_run_is_stopped(project):
    """The one that was under way is evaluated by the next run, the other is reused."""
    judge = HoldingJudge()
    project.add_script({"only": ("The lake is deep.", None)}, task="early")
    project.add_answer(task="early")
    with JudgeServer(judge) as server:
        options = [
            "--agent_name",
            "bot",
            "--judge_base_url",
            server.base_url,
            "--max_concurrent_tasks",
            "1",
        ]
        with start_command(*options, cwd=project.root) as process:
            judge.wait()
            process.send_signal(signal.SIGINT)
            stdout, _ = process.communicate(timeout=PATIENCE_S)
        judge.released.set()
        assert "[1/2] early/answer_1.md: 1\n" in stdout
        assert "Stopped. 1 of 2 answers done" in stdout
        run = run_command(*options, cwd=project.root)
    assert run.returncode == 0
    assert re.search(r"^\[1/2\] early/answer_1\.md: 1, reused", run.stdout, re.MULTILINE)
    assert len(project.result_paths(task="early")) == 1


STUCK = """
while True:
    try:
        await asyncio.Event().wait()
    except BaseException:
        pass
"""
STUCK_CHILD = """
async def child():
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass
await asyncio.gather(child(), child())
"""
EXITING_CHILD = """
async def child():
    sys.exit(0)
await asyncio.gather(child(), asyncio.sleep(1))
"""
STUCK_THREAD = "await asyncio.to_thread(time.sleep, 3600)"
BLOCKING = "while True: pass"
ORPHAN = """
asyncio.ensure_future(asyncio.sleep(3600))
return {"final_score": 0.5}
"""


# Bodies of scripts, with how the reason begins why there is no result.
LATE = "did not return within 3 s (--answer_timeout)"
ENDLESS = {
    "stuck": (STUCK, LATE),
    "stuck_child": (STUCK_CHILD, LATE),
    "stuck_thread": (STUCK_THREAD, LATE),
    "blocking": (BLOCKING, ""),
}
ENDING = {
    "exiting_child": (EXITING_CHILD, "called sys.exit(0)"),
    "raising": ("raise ValueError('no such lake')", "raised ValueError: no such lake (line "),
    "recursing": ("def down(n): return down(n + 1)\ndown(0)", "raised RecursionError: "),
    "left_thread": (
        "import threading\nthreading.Thread(target=time.sleep, args=(3600,)).start()\n1 / 0",
        "raised ZeroDivisionError: ",
    ),
}


@pytest.mark.parametrize(
    ("bodies", "scores", "more"),
    [
        (ENDLESS, {}, ("--answer_timeout", "3")),
        (ENDING, {"lake": 1.0, "orphan": 0.5}, ()),
    ],
)
def test_no_script_ends_a_run_or_keeps_it_from_ending(project, bodies, scores, more):
    """Each costs its own answer, with the reason."""
    others = {"orphan": (ORPHAN, "")} if scores else {}
    for task, (body, _) in {**bodies, **others}.items():
        project.add_answer(task=task)
        project.add_script_body(body, task=task)
    given = ("--agent_name", "bot", "--max_concurrent_tasks", "12", *more)
    with JudgeServer() as server:
        run = run_process(*given, "--judge_base_url", server.base_url, cwd=project.root)
    assert (run.returncode, run.stderr) == (1, "")
    reason = r"^No result: (\w+)/answer_1\.md: script \w+\.py (.+)$"
    reasons = dict(re.findall(reason, run.stdout, re.MULTILINE))
    assert [task for task in bodies if not reasons[task].startswith(bodies[task][1])] == []
    results = read_json(project.root / "eval_results" / "all_results.json")
    found = {task: entries["bot"][0]["score"] for task, entries in results.items()}
    assert {task: found[task] for task in scores} == scores


def test_ctrl_c_at_any_other_moment_is_one_line(tmp_path):
    fifo = tmp_path / "judgments.jsonl"
    os.mkfifo(fifo)
    # A job in a shell's background starts with the signal ignored.
    code = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    code += "from mind2web2.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "import", "judgments", "bot", str(fifo)]
    settings = {
        "cwd": tmp_path,
        "env": clean_environment(),
        "stderr": subprocess.PIPE,
        "text": True,
    }
    # Opening it waits for the reader.
    with subprocess.Popen(command, **settings) as process, fifo.open("w"):
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, stderr) == (130, "mind2web2: stopped\n")


def test_a_reader_that_has_gone_is_no_error(project):
    with JudgeServer() as server:
        options = ["--agent_name", "bot", "--judge_base_url", server.base_url]
        assert run_command(*options, cwd=project.root).returncode == 0
    reading_end, writing_end = os.pipe()
    os.close(reading_end)
    try:
        code = "import sys; from mind2web2.cli import main; sys.exit(main())"
        run = subprocess.run(
            [sys.executable, "-c", code, "metrics", "bot", "--json"],
            cwd=project.root,
            env=clean_environment(),
            stdout=writing_end,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(writing_end)
    assert (run.returncode, run.stderr) == (1, "")


def test_the_root_script_is_a_command_of_its_own():
    run = run_process("--help", cwd=REPOSITORY.parent)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith("usage: run_eval.py ")
