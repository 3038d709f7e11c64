"""Rehearsals of scripts that never end."""

import os
import signal
import subprocess
import sys

import pytest
from fixtures.process_tree import wait_for_end
from projects import Project, call, clean_environment

from mind2web2.cli import main

HEAD = """\
import asyncio, os, subprocess, time
from pathlib import Path
from mind2web2 import Evaluator


async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger):
"""
LOOPS = {
    "blocks": f"{HEAD}    while True:\n        pass\n",
    "sleeps": f"{HEAD}    time.sleep(1000)\n",
    "gives_way": f"{HEAD}    while True:\n        await asyncio.sleep(0)\n",
    "in_its_import": f"while True:\n    pass\n{HEAD}    pass\n",
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_script_without_end_is_named_with_the_option(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    project = Project(tmp_path)
    project.add_raw_script(LOOPS[name], task=name)
    project.add_script({"leaf": ("The lake is deep.", "https://lake.example/")})
    outcome = call(main, "rehearse", "--strict", "--timeout", "0.5")
    expected = f"script {name}.py did not end within 0.5 s on one answer"
    if name == "in_its_import":
        expected = f"script {name}.py did not load within 3 s with what it imports"
    assert outcome.returncode == 1
    assert expected in outcome.stdout
    assert "--timeout S" in outcome.stdout
    assert "lake" in outcome.stdout


def test_a_rehearsal_that_is_stopped_leaves_no_process_behind(tmp_path):
    os.mkfifo(tmp_path / "started")
    text = f"{HEAD}    child = subprocess.Popen(['sleep', '1000'])\n"
    text += f"    with open('{tmp_path}/started', 'w') as file:\n"
    text += "        file.write(f'{os.getpid()} {child.pid}')\n    while True:\n        pass\n"
    Project(tmp_path).add_raw_script(text)
    with subprocess.Popen(
        [sys.executable, "-m", "mind2web2", "rehearse", "--timeout", "1000"],
        cwd=tmp_path,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        processes = (tmp_path / "started").read_text(encoding="utf-8").split()
        process.send_signal(signal.SIGTERM)
        stdout, stderr = process.communicate(timeout=60)
    wait_for_end(processes)
    assert (process.returncode, stdout) == (130, "")
    assert stderr == "Stopped: name tasks to rehearse these alone.\n"


@pytest.mark.parametrize(("line", "reason"), [("breakpoint()", "BdbQuit"), ("input()", "EOFError")])
def test_a_script_that_waits_for_a_person_ends_there(tmp_path, monkeypatch, line, reason):
    monkeypatch.chdir(tmp_path)
    Project(tmp_path).add_raw_script(f"{HEAD}    {line}\n")
    outcome = call(main, "rehearse")
    assert reason in outcome.stdout
    assert "did not end" not in outcome.stdout


def test_the_time_to_load_a_script_does_not_count(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    project = Project(tmp_path)
    path = project.add_script({"leaf": ("The lake is deep.", "https://lake.example/")})
    path.write_text(f"import time\ntime.sleep(1)\n{path.read_text()}")
    outcome = call(main, "rehearse", "--strict", "--timeout", "0.9")
    assert (outcome.returncode, "1 task: 1 sound" in outcome.stdout) == (0, True)
