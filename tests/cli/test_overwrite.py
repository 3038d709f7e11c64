"""``evaluate --overwrite`` that ends early.

Results, stored judgments and messages agree again afterwards.
"""

import signal
import threading

import pytest
from projects import AGENT, call, entered, start_command
from servers.judge_server import JudgeServer, status

from mind2web2.cli import evaluate_main, main

ANSWERS = 3
CLAIMS = {
    "first": ("The lake is deep.", None),
    "second": ("The lake is cold.", None),
}
MODEL = "gpt-4o"
PATIENCE_S = 60
# One request a claim, one after the other: the fourth one is about the second claim on the second
# answer.
OPTIONS = ("--agent_name", AGENT, "--judge_model", MODEL)
OPTIONS += ("--votes", "1", "--max_llm_requests", "1", "--max_concurrent_answers", "1")
# With three requests.
MIXED = {"answer_1.md": 0.0, "answer_2.md": 0.5, "answer_3.md": 1.0}
CONTINUED = (
    "The same command asks everything again from the start. Answers without a new result keep "
    "their earlier one."
)


class TurningJudge:
    """Supports every claim, until it turns: then none, and it may hold requests back."""

    def __init__(self):
        """Support every claim."""
        self.verdict = True
        self.left, self.failure = None, None
        self.arrived, self.released = threading.Event(), threading.Event()

    def turn(self, answered=None, failure=None):
        """Support no claim from now on; after so many requests fail, or hold further ones back."""
        self.verdict, self.left, self.failure = False, answered, failure

    def fault(self, _body):
        """Fail where no more requests are to be answered."""
        return self.failure if self.left == 0 else None

    def __call__(self, _body):
        """Answer, after the release where no more are to be answered."""
        if self.left == 0:
            self.arrived.set()
            self.released.wait(PATIENCE_S)
        elif self.left is not None:
            self.left -= 1
        return {"reasoning": "read", "result": self.verdict}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a project with some answers, each of which takes two requests."""
    project = entered(tmp_path, monkeypatch)
    for number in range(1, ANSWERS + 1):
        project.add_answer(f"answer_{number}", f"Text {number}.")
    project.add_script(CLAIMS)
    return project


@pytest.fixture
def judge():
    """Return a judge that can turn."""
    return TurningJudge()


@pytest.fixture
def server(project, judge):
    """Return its server, after it has judged all answers, for a hundredth of a dollar a reply."""
    tokens = {"input_tokens": 2000, "cached_tokens": 0, "output_tokens": 500}
    with JudgeServer(judge, faults=judge.fault, **tokens) as server:
        assert evaluate(server).returncode == 0
        assert scores(project) == dict.fromkeys(MIXED, 1.0)
        yield server
        judge.released.set()


def evaluate(server, *more):
    """Evaluate with this judge."""
    return call(evaluate_main, *OPTIONS, "--judge_base_url", server.base_url, *more)


def scores(project):
    """Return the score of each answer, as the task's files have it."""
    return {name: entry["score"] for name, entry in project.task_summary().items()}


def stopped(project, server, judge, end):
    """Judge all again, end the process after three replies, and return what it printed."""
    judge.turn(answered=3)
    words = (*OPTIONS, "--judge_base_url", server.base_url, "--overwrite")
    with start_command(*words, cwd=project.root, COLUMNS="300") as process:
        assert judge.arrived.wait(PATIENCE_S)
        process.send_signal(end)
        stdout, _ = process.communicate(timeout=PATIENCE_S)
    judge.released.set()
    return stdout


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_answers_that_a_stopped_run_has_not_judged_keep_their_results(project, server, judge, end):
    stdout = stopped(project, server, judge, end)
    if end is signal.SIGINT:
        assert f"every judgment so far is kept. {CONTINUED}" in stdout
    before = len(server.calls)
    run = evaluate(server)
    assert (run.returncode, len(server.calls)) == (0, before)
    assert scores(project) == {"answer_1.md": 0.0, "answer_2.md": 1.0, "answer_3.md": 1.0}
    replay = call(main, "evaluate", AGENT, "--llm_provider", "replay", "--votes", "1")
    assert (replay.returncode, scores(project)) == (0, MIXED)


def test_a_budget_that_does_not_suffice_says_what_the_same_command_does(project, server, judge):
    judge.turn()
    before = len(server.calls)
    run = evaluate(server, "--overwrite", "--max_cost", "0.035")
    assert (run.returncode, len(server.calls) - before) == (1, 3)
    assert CONTINUED in run.stdout
    assert "so the run asked nothing more. With --overwrite, set" in run.stdout
    assert "continues with another" not in run.stdout
    assert scores(project) == {**dict.fromkeys(MIXED), "answer_1.md": 0.0}


def test_a_judge_that_takes_no_request_leaves_all_results(project, server, judge):
    listed = project.task_summary()
    judge.turn(answered=0, failure=status(401))
    assert evaluate(server, "--overwrite").returncode == 2
    assert project.task_summary() == listed
