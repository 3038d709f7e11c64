"""``--isolate``, ``--no_isolate``, ``--script_memory`` and ``--script_env``."""

import os
import subprocess
import sys

import pytest
from projects import call, entered, read_json
from servers.batch_server import BatchServer
from servers.judge_server import VERDICT, JudgeServer

from mind2web2.cli import evaluate_main
from mind2web2.scripts.isolation import processes

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


def test_scripts_are_isolated_unless_told_otherwise(project, own_pid):
    """Each answer has a process."""
    with JudgeServer() as server:
        for options in ([], ["--isolate"]):
            assert seen_by(project, server, *options)["pid"] != own_pid
        assert seen_by(project, server, "--no_isolate")["pid"] == own_pid


def test_memory_is_limited(project):
    """As the reason says."""
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
            *("--script_memory", "200M", "--answer_timeout", "100"),
        )
    assert run.returncode == 1
    assert (
        "script lake.py took more than 200 MB of memory (--script_memory)"
        in " ".join(run.stdout.split())
    )


def test_variables_are_handed_on_by_name(project, monkeypatch):
    """No others."""
    monkeypatch.setenv("LAKE_REGION", "north")
    with JudgeServer() as server:
        assert seen_by(project, server)["region"] is None
        assert (
            seen_by(project, server, "--script_env", "LAKE_REGION")["region"] == "north"
        )


def test_scripts_that_wait_for_batches_are_isolated_too(project, own_pid):
    """Answers do not change each other's modules."""
    with BatchServer(lambda _body: VERDICT) as server:
        seen = seen_by(project, server, "--batch", "--batch_poll", "0.05")
    assert seen["pid"] != own_pid


def test_a_run_hides_its_keys_from_other_processes_of_its_user():
    """Such as those of scripts, which may look for them under /proc."""
    code = "import ctypes; from mind2web2.utils.own_memory import hide_memory; hide_memory(); "
    code += "print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "0\n"


def test_a_system_that_cannot_fork_does_without(project, own_pid, monkeypatch):
    """It is an error only where it was asked for."""
    monkeypatch.setattr(processes, "IS_POSSIBLE", False)
    with JudgeServer() as server:
        assert seen_by(project, server)["pid"] == own_pid
        run = call(
            evaluate_main,
            "--agent_name",
            "bot",
            "--judge_base_url",
            server.base_url,
            "--isolate",
        )
    assert run.returncode == 2
    assert (
        "--isolate needs a system that can fork processes: evaluate without it"
        in run.stderr
    )


@pytest.fixture
def own_pid():
    """Return the number of this process."""
    return os.getpid()
