"""The settings of a script's process: ``script_memory``, ``--script_env``, its own number."""

import os
import subprocess
import sys

import pytest
from projects import AGENT, TASK, ClaimJudge, call, entered, read_json
from servers.judge_server import JudgeServer

from mind2web2.cli import evaluate_main
from mind2web2.eval_runner import evaluate_task
from mind2web2.runs import session

# Tells whether it runs in the process of the run, and what it is told of the region.
TELLING = """
import os
await evaluator.verify("The lake is deep.", evaluator.add_leaf("leaf", "leaf"))
seen = {"pid": os.getpid(), "region": os.environ.get("LAKE_REGION")}
return {**evaluator.get_summary(), "seen": seen}
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a project whose script tells where it runs."""
    project = entered(tmp_path, monkeypatch)
    project.add_answer()
    project.add_script_body(TELLING)
    return project


def seen_by(project, server, *more):
    """Evaluate and return what the script has told."""
    run = call(
        evaluate_main,
        "--agent_name",
        "bot",
        "--judge_base_url",
        server.base_url,
        "--overwrite",
        *more,
    )
    assert (run.returncode, run.stderr) == (0, "")
    return read_json(project.result_paths()[-1])["seen"]


def test_each_script_runs_in_a_process_of_its_own(project, own_pid):
    """The evaluation is called from Python."""
    with JudgeServer() as server:
        pids = [seen_by(project, server)["pid"] for _ in range(2)]
    assert len({own_pid, *pids}) == 3


async def test_a_task_evaluated_from_python_has_processes_too(project, own_pid):
    """A script changes nothing in the program that calls ``evaluate_task``."""
    folders = [project.root / name for name in ("answers", "cache", "results")]
    [result] = await evaluate_task(
        ClaimJudge(),
        TASK,
        AGENT,
        *folders,
        project.paths.find_script(TASK).path,
    )
    assert result["seen"]["pid"] != own_pid


def test_memory_is_limited(project, monkeypatch):
    monkeypatch.setattr(session, "DEFAULT_MEMORY_BYTES", 200 * 1024**2)
    project.add_script_body("held = b'x' * 2**28\nawait asyncio.Event().wait()\n")
    with JudgeServer() as server:
        run = call(
            *(
                evaluate_main,
                "--agent_name",
                "bot",
                "--judge_base_url",
                server.base_url,
            ),
            *("--answer_timeout", "100"),
        )
    assert run.returncode == 1
    assert "script lake.py took more than 200 MB of memory" in " ".join(run.stdout.split())


def test_a_run_hides_its_keys_from_other_processes_of_its_user():
    code = "import ctypes; from mind2web2.utils.hidden_keys import hide_memory; hide_memory(); "
    code += "print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "0\n"


@pytest.fixture
def own_pid():
    """Return the number of this process."""
    return os.getpid()
