"""An agent with two answers to each of some tasks.

One judge has judged the answers, and another is to judge them again.
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from projects import AGENT, ANSWER, KEY_VARIABLES, Project, call
from servers.judge_server import JudgeServer

from mind2web2.cli import evaluate_main

CLAIMS = {f"leaf_{number}": (f"Fact {number} of the lake.", None) for number in range(4)}


@contextmanager
def judged_agent(
    root: Path, tasks: Sequence[str], reply: Callable[[Any], Any], model: str
) -> Iterator[JudgeServer]:
    """Evaluate the answers in a folder and keep the judge's server open."""
    project = Project(root)
    for task in tasks:
        project.add_script(CLAIMS, task)
        for run in (1, 2):
            project.add_answer(f"answer_{run}", f"{ANSWER} {task} {run}", task)
    with JudgeServer(reply=reply) as server, pytest.MonkeyPatch.context() as patch:
        for name in KEY_VARIABLES:
            patch.delenv(name, raising=False)
        patch.setenv("OPENAI_API_KEY", "dummy")
        patch.setenv("OPENAI_BASE_URL", server.base_url)
        patch.chdir(root)
        run = call(evaluate_main, AGENT, "--judge_model", model)
        assert run.returncode == 0, run.stderr
        yield server


def stand_in(root: Path, base_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in the folder, without what other tests judged again."""
    shutil.rmtree(root / "rejudged", ignore_errors=True)
    monkeypatch.chdir(root)
    monkeypatch.setenv("OPENAI_API_KEY", "dummy")
    monkeypatch.setenv("OPENAI_BASE_URL", base_url)
    # The intervals of the judge's own score, which these tests do not look at.
    monkeypatch.setattr("mind2web2.analysis.metrics.RESAMPLES", 1000)
