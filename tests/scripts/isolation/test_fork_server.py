"""The processes behind scripts' processes: nothing outlives the run, and nothing ends it."""

import asyncio
import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fixtures.process_tree import PATIENCE_MS, wait_for_end
from projects import AGENT, TASK, ClaimJudge, Project, evaluate, start_command
from servers.judge_server import VERDICT, JudgeServer

from mind2web2.errors import JudgeUnavailableError
from mind2web2.scripts.isolation.homes import ScriptHomes
from mind2web2.scripts.isolation.messages import ScriptCall
from mind2web2.scripts.isolation.run import Isolation, home_of
from mind2web2.utils.files import file_sha256
from mind2web2.utils.hidden_keys import scrubbed_environment
from mind2web2.utils.processes import ForkServer

# Says which processes there are, its own, its parent (the fork server) and one that it starts; then
# asks.
TELLING = """
import os, subprocess
child = subprocess.Popen(["sleep", "1000"])
with open({path!r}, "w") as file:
    file.write(f"{{os.getpid()}} {{os.getppid()}} {{child.pid}}")
await evaluator.verify("The lake is deep.", evaluator.add_leaf("leaf", "leaf"))
return evaluator.get_summary()
"""


@pytest.fixture
def project(tmp_path):
    """Return a project whose script says which processes there are and then asks the judge."""
    project = Project(tmp_path)
    project.add_answer()
    project.add_script_body(TELLING.format(path=str(tmp_path / "pids")))
    return project


@pytest.fixture
def homes(server):
    """Return the loaded scripts of a test's own."""
    homes = ScriptHomes(server)
    yield homes
    homes.close()


@pytest.fixture
def server():
    """Return a fork server of a test's own."""
    server = ForkServer("mind2web2.scripts.isolation.worker")
    yield server
    server.close()


def processes_of(project):
    """Return the processes that the script has noted: itself, its parent and its child."""
    return list(map(int, (project.root / "pids").read_text().split()))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nothing_outlives_a_run_that_is_ended(project, number):
    is_asked, is_over = threading.Event(), threading.Event()

    def never(_body):
        is_asked.set()
        is_over.wait(PATIENCE_MS / 1000)
        return VERDICT

    with JudgeServer(never) as judge:
        with start_command(
            "--agent_name", "bot", "--judge_base_url", judge.base_url, cwd=project.root
        ) as run:
            assert is_asked.wait(PATIENCE_MS / 1000)
            pids = processes_of(project)
            run.send_signal(number)
            run.communicate(timeout=PATIENCE_MS / 1000)
        wait_for_end(pids)
        is_over.set()


async def test_a_killed_fork_server_costs_no_answer(project, homes):
    """The scripts go on and end with their answers; another fork server serves later runs."""
    pids = []

    def kill(_claim):
        if not pids:
            pids.extend(processes_of(project))
            # Without the fork server, the child of a script lives on.
            _, starter, child = pids
            os.kill(child, signal.SIGKILL)
            os.kill(starter, signal.SIGKILL)
        return True

    judge = ClaimJudge(kill)
    [outcome] = await evaluate(project, judge, isolation=Isolation(homes=homes))
    assert (outcome.score, outcome.reason) == (1.0, None)
    asked = len(judge.claims)
    await asyncio.to_thread(wait_for_end, pids)
    [outcome] = await evaluate(project, judge, isolation=Isolation(homes=homes), reuse=False)
    assert (outcome.score, len(judge.claims)) == (1.0, asked)


async def test_a_judge_that_fails_while_the_fork_server_dies_is_the_reason(project, homes):
    """The end of the fork server is not the reason."""

    def kill_and_fail(_claim):
        for pid in processes_of(project)[:0:-1]:
            os.kill(pid, signal.SIGKILL)
        raise JudgeUnavailableError("the judge is out")

    [outcome] = await evaluate(project, ClaimJudge(kill_and_fail), isolation=Isolation(homes=homes))
    assert outcome.reason == "the judge is out"


async def test_a_fork_server_that_cannot_start_is_a_reason(project, homes, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    [outcome] = await evaluate(project, ClaimJudge(), isolation=Isolation(homes=homes))
    assert outcome.reason.startswith("no process could be started: ")


def test_a_proxy_with_a_password_is_told_of(server, monkeypatch, caplog):
    """A script that needs it would fail for no reason that shows."""
    monkeypatch.setenv("HTTPS_PROXY", "http://me:word@proxy.example:3128")
    server.warm_up()
    assert "scripts do not get proxy settings that contain a password" in caplog.text
    assert "HTTPS_PROXY" in caplog.text
    assert "word@" not in caplog.text


async def test_no_process_that_forks_runs_a_thread(project, homes, server):
    """A fork takes only one thread along, and the locks of the others for ever."""
    threads = []

    def count(_claim):
        _, home, _ = processes_of(project)
        for pid in (home, server._process.pid):
            threads.append(len(list(Path(f"/proc/{pid}/task").iterdir())))
        return True

    await evaluate(project, ClaimJudge(count), isolation=Isolation(homes=homes))
    assert set(threads) == {1}


@pytest.mark.parametrize(
    ("name", "value", "is_kept"),
    [
        ("PATH", "/bin", True),
        ("LC_ALL", "C", True),
        ("OPENAI_API_KEY", "sk-1", False),
        ("GOOGLE_MAPS_API_KEY", "AIza", False),
        ("AWS_PROFILE", "me", False),
        ("ANYTHING_ELSE", "x", False),
        ("HTTPS_PROXY", "http://proxy.example:3128", True),
        ("HTTPS_PROXY", "http://me:word@proxy.example:3128", False),
    ],
)
def test_the_environment_has_what_programs_need(name, value, is_kept):
    kept = scrubbed_environment({name: value})
    assert kept.pop("PYTHONPATH") == os.pathsep.join(sys.path)
    assert kept.pop("PYTHONHASHSEED") == "0"
    assert kept == ({name: value} if is_kept else {})


async def test_a_set_has_the_same_order_in_every_run(project, monkeypatch):
    """A claim that a script builds from a set is also the same in every run.

    The hash seed of the user's environment does not matter.
    """
    project.add_script_body(
        "names = ', '.join({f'category {number}' for number in range(12)})\n"
        "await evaluator.verify(f'All of {names} are named.', evaluator.add_leaf('leaf', 'leaf'))\n"
        "return evaluator.get_summary()"
    )
    claims = []
    for seed in ("1", "2"):
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        server, judge = ForkServer("mind2web2.scripts.isolation.worker"), ClaimJudge()
        homes = ScriptHomes(server)
        await evaluate(
            project,
            judge,
            isolation=Isolation(homes=homes),
            reuse=False,
            overwrite=True,
        )
        homes.close()
        server.close()
        claims.append(judge.claims[0])
    assert claims[0] == claims[1]


def test_a_fork_server_that_was_not_needed_is_killed(server):
    """A command that fails at once does not wait until it has loaded the package."""
    server.warm_up()
    process = server._process
    server.close()
    assert process.returncode == -signal.SIGKILL


def test_nobody_gets_a_process_that_its_last_user_ends(project, homes):
    path = project.paths.default_script_for(TASK)
    call = ScriptCall(path, file_sha256(path), AGENT, "answer_1.md", "An answer.", "judge-1")
    job, states = home_of(call, Isolation()), []

    def use(_number):
        home = homes.take(job)
        states.append(home.process.connection.fileno() >= 0)
        homes.give_back(home)

    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(use, range(400)))
    finally:
        sys.setswitchinterval(interval_s)
    assert states == [True] * 400
