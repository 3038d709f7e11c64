"""The processes behind scripts' processes: nothing outlives the run, and nothing ends it."""

import asyncio
import os
import select
import signal
import sys
import threading
from pathlib import Path

import pytest
from projects import ClaimJudge, Project, evaluate, outcomes_by_name, start_command
from servers.judge_server import VERDICT, JudgeServer

from mind2web2.errors import JudgeUnavailableError
from mind2web2.scripts.isolation import processes
from mind2web2.scripts.isolation.processes import ForkServer, script_process, scrubbed_environment
from mind2web2.scripts.isolation.run import Isolation

PATIENCE_MS = 30_000
# Says which processes there are, its own, its parent (the fork server) and one that it starts; then asks.
TELLING = """
import os, subprocess
child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
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
def server():
    """Return a fork server of a test's own."""
    server = ForkServer()
    yield server
    server.close()


def processes_of(project):
    """Return what tells of the end of the processes that the script has told of."""
    return [os.pidfd_open(int(pid)) for pid in (project.root / "pids").read_text().split()]


def wait_for_end(pidfds):
    """Return once all of these processes have ended, or fail."""
    for pidfd in pidfds:
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        assert poll.poll(PATIENCE_MS), "a process is still there"
        os.close(pidfd)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_nothing_outlives_a_run_that_is_ended(project, number):
    """However it ends: its scripts, what they have started, and the fork server."""
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
            pidfds = processes_of(project)
            run.send_signal(number)
            run.communicate(timeout=PATIENCE_MS / 1000)
        wait_for_end(pidfds)
        is_over.set()


async def test_a_fork_server_that_is_killed_costs_time_only(project, server):
    """What was under way begins again, and the judge is asked nothing twice."""
    pidfds = []

    def kill(_claim):
        if not pidfds:
            pidfds.extend(processes_of(project))
            # What a script has started in a session of its own is beyond reach once the fork server is gone.
            _, starter, child = map(int, (project.root / "pids").read_text().split())
            os.kill(child, signal.SIGKILL)
            os.kill(starter, signal.SIGKILL)
        return True

    judge = ClaimJudge(kill)
    [outcome] = await evaluate(project, judge, isolation=Isolation(server=server))
    assert (outcome.score, outcome.reason) == (1.0, None)
    assert len(judge.claims) == 2
    await asyncio.to_thread(wait_for_end, pidfds)
    [outcome] = await evaluate(project, judge, isolation=Isolation(server=server), reuse=False)
    assert (outcome.score, len(judge.claims)) == (1.0, 2)


async def test_a_judge_that_is_waited_for_without_a_fork_server_has_the_time_of_the_script(project, server):
    """It was asked by a process that is gone; the answer is to have its outcome all the same."""

    async def kill_and_wait(_claim):
        if len(judge.claims) == 1:
            _, starter, child = map(int, (project.root / "pids").read_text().split())
            os.kill(child, signal.SIGKILL)
            os.kill(starter, signal.SIGKILL)
        await asyncio.Event().wait()

    judge = ClaimJudge(kill_and_wait)
    async with asyncio.timeout(60):
        [outcome] = await evaluate(project, judge, isolation=Isolation(server=server), answer_timeout_s=3)
    assert outcome.reason == "script lake.py did not return within 3 s (--answer_timeout)"


async def test_a_script_that_kills_the_fork_server_is_named(tmp_path, server):
    """An answer under way beside it has its result, and nothing is paid twice."""
    project = Project(tmp_path)
    project.add_answer("answer_1", "The lake is wild.")
    project.add_answer("answer_2", "The lake is cold.")
    starter = tmp_path / "starter"
    project.add_script_body(
        "import os, signal\n"
        "await evaluator.verify(answer, evaluator.add_leaf('leaf', 'leaf'))\n"
        "score = evaluator.score()\n"
        f"if 'cold' in answer: open({str(starter)!r}, 'w').write(str(os.getppid()))\n"
        "await evaluator.verify('More of ' + answer, evaluator.add_leaf('more', 'more'))\n"
        "score = evaluator.score()\n"
        "if 'wild' in answer: os.kill(os.getppid(), signal.SIGKILL)\n"
        "return evaluator.get_summary()\n"
    )
    may_end, under_way = asyncio.Event(), []

    async def judge_of(claim):
        if claim == "More of The lake is wild.":
            await may_end.wait()
        if claim == "More of The lake is cold.":
            pidfd = os.pidfd_open(int(starter.read_text()))
            under_way.append(claim)
            if len(under_way) == 2:
                may_end.set()
            await asyncio.to_thread(wait_for_end, [pidfd])
        return True

    judge = ClaimJudge(judge_of)
    outcomes = outcomes_by_name(await evaluate(project, judge, isolation=Isolation(server=server)))
    assert outcomes["answer_2.md"].score == 1.0
    assert outcomes["answer_1.md"].reason == (
        "script lake.py: the process that starts it ended while it ran, twice, the second time with no other "
        "script beside it: does it send signals to its parent (os.getppid)?"
    )
    assert len(judge.claims) == 8


async def test_an_extraction_under_way_when_the_fork_server_dies_is_paid_once(tmp_path, server):
    """Nobody is left to check it by the script's own template: that is done when it is read again."""
    project = Project(tmp_path)
    project.add_answer()
    starter = tmp_path / "starter"
    project.add_script_body(
        "import os\n"
        "from pydantic import BaseModel\n"
        "class Depth(BaseModel): metres: int\n"
        f"open({str(starter)!r}, 'w').write(str(os.getppid()))\n"
        "depth = await evaluator.extract('How deep?', Depth, 'depth')\n"
        "evaluator.add_custom_node(depth.metres == 80, 'node', 'node')\n"
        "return evaluator.get_summary()\n"
    )
    asked = []

    class Judge:
        """Answers once the fork server is gone."""

        async def async_response(self, *, model, messages, response_format=None):  # noqa: ARG002
            """Return a depth."""
            asked.append(messages)
            pid = int(starter.read_text())
            pidfd = os.pidfd_open(pid)
            os.kill(pid, signal.SIGKILL)
            await asyncio.to_thread(wait_for_end, [pidfd])
            return response_format.model_validate({"metres": 80})

    [outcome] = await evaluate(project, Judge(), isolation=Isolation(server=server))
    assert (outcome.score, outcome.reason, len(asked)) == (1.0, None, 1)


async def test_a_judge_that_fails_while_the_fork_server_dies_is_the_reason(project, server):
    """No second try undoes it."""

    def kill_and_fail(_claim):
        os.kill(int((project.root / "pids").read_text().split()[2]), signal.SIGKILL)
        os.kill(int((project.root / "pids").read_text().split()[1]), signal.SIGKILL)
        raise JudgeUnavailableError("the judge is out")

    [outcome] = await evaluate(project, ClaimJudge(kill_and_fail), isolation=Isolation(server=server))
    assert outcome.reason == "the judge is out"


async def test_the_fork_server_withstands_all_other_signals(tmp_path, server):
    """A script's own process takes those that its script asks for."""
    project = Project(tmp_path)
    project.add_answer()
    project.add_script_body(
        "import os, signal\n"
        "for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGALRM):\n"
        "    os.kill(os.getppid(), number)\n"
        "evaluator.add_custom_node(not signal.pthread_sigmask(signal.SIG_BLOCK, ()), 'node', 'node')\n"
        "return {**evaluator.get_summary(), 'starter': os.getppid()}\n"
    )
    isolation = Isolation(server=server)
    found = [(await evaluate(project, ClaimJudge(), isolation=isolation, reuse=False))[0] for _ in range(2)]
    assert [outcome.score for outcome in found] == [1.0, 1.0], found[0].reason
    assert found[0].result["starter"] == found[1].result["starter"]


async def test_a_script_that_stops_the_fork_server_and_ends_is_a_reason_at_once(tmp_path, server):
    """Nobody waits for whom it has stopped to tell how it has ended."""
    project = Project(tmp_path)
    project.add_answer()
    project.add_script_body("import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)\nos._exit(3)\n")
    [outcome] = await evaluate(project, ClaimJudge(), isolation=Isolation(server=server))
    assert "ended its process without a result (status 3)" in outcome.reason


async def test_a_fork_server_that_cannot_start_is_a_reason(project, server, monkeypatch):
    """With the way to do without."""
    monkeypatch.setattr(sys, "executable", "/bin/false")
    [outcome] = await evaluate(project, ClaimJudge(), isolation=Isolation(server=server))
    assert outcome.reason.startswith("no process could be started for a script: ")
    assert outcome.reason.endswith(
        "Or evaluate with --no_isolate: scripts then run in the process of the run itself"
    )


async def test_a_fork_server_serves_several_event_loops(server, project):
    """One run after another in the same process; it is started once."""
    pids = set()
    for _ in range(2):
        [outcome] = await asyncio.to_thread(
            lambda: asyncio.run(
                evaluate(project, ClaimJudge(), isolation=Isolation(server=server), reuse=False)
            )
        )
        assert outcome.score == 1.0
        pids.add((project.root / "pids").read_text().split()[1])
    assert len(pids) == 1


async def test_a_fork_server_that_stays_stopped_is_replaced(server, monkeypatch, caplog):
    """A script's process is given up once, however often it is ended, and so is the fork server."""
    monkeypatch.setattr(processes, "END_TIMEOUT_S", 0.2)
    monkeypatch.setattr(processes, "_REACTION_S", 0.1)
    monkeypatch.setattr(processes, "_go_on", lambda _process: None)
    async with script_process(server) as process:
        process.starter.send_signal(signal.SIGSTOP)
        for _ in range(3):
            await process.end()
    assert [record.getMessage() for record in caplog.records] == [
        f"a script's process does not end pid={process.pid}"
    ]
    async with script_process(server) as another:
        assert another.starter is not process.starter
    assert process.starter.poll() == -signal.SIGKILL


async def test_a_fork_server_that_stays_stopped_does_not_hold_up_the_exit(server, monkeypatch, caplog):
    """It is killed, with what it has started."""
    monkeypatch.setattr(processes, "_CLOSE_TIMEOUT_S", 0.1)
    monkeypatch.setattr(processes, "_go_on", lambda _process: None)
    async with script_process(server) as process:
        pidfd = os.pidfd_open(process.pid)
        process.starter.send_signal(signal.SIGSTOP)
        await asyncio.to_thread(server.close)
        await asyncio.to_thread(wait_for_end, [pidfd])
    assert f"does not end pid={process.starter.pid}" in caplog.text


async def test_a_start_that_is_given_up_keeps_its_descriptors_till_the_end(server, monkeypatch):
    """The thread that sends them cannot be stopped; they might be others' by then."""
    is_sending, may_send, sent = threading.Event(), threading.Event(), []
    start_script = server.start_script

    def late(fds, memory_bytes):
        is_sending.set()
        may_send.wait(PATIENCE_MS / 1000)
        sent.extend(os.fstat(fd).st_ino for fd in fds)
        return start_script(fds, memory_bytes)

    async def start():
        async with script_process(server):
            pass

    monkeypatch.setattr(server, "start_script", late)
    starting = asyncio.create_task(start())
    await asyncio.to_thread(is_sending.wait, PATIENCE_MS / 1000)
    starting.cancel()
    await asyncio.wait({starting}, timeout=0)
    may_send.set()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert len(set(sent)) == 3


def test_a_proxy_with_a_password_is_told_of(server, monkeypatch, caplog):
    """A script that needs it would fail for no reason that shows."""
    monkeypatch.setenv("HTTPS_PROXY", "http://me:word@proxy.example:3128")
    server.warm_up()
    assert "scripts are not told of proxies with a password" in caplog.text
    assert "HTTPS_PROXY" in caplog.text
    assert "word@" not in caplog.text


async def test_a_fork_server_runs_no_thread(server):
    """A fork takes only one along, and the locks of the others for ever."""
    async with script_process(server) as process:
        assert len(threads_of_parent(process.pid)) == 1


def threads_of_parent(pid):
    """Return the threads of a process's parent."""
    status = Path(f"/proc/{pid}/status").read_text()
    parent = next(line.split()[1] for line in status.splitlines() if line.startswith("PPid:"))
    return list(Path(f"/proc/{parent}/task").iterdir())


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
    """By name, since a secret may look like anything."""
    kept = scrubbed_environment({name: value})
    assert kept.pop("PYTHONPATH") == os.pathsep.join(sys.path)
    assert kept.pop("PYTHONHASHSEED") == "0"
    assert kept == ({name: value} if is_kept else {})


async def test_a_set_has_the_same_order_in_every_run(project, monkeypatch):
    """So has a claim that a script builds from one, whatever hash seed the user's environment has."""
    project.add_script_body(
        "names = ', '.join({f'category {number}' for number in range(12)})\n"
        "await evaluator.verify(f'All of {names} are named.', evaluator.add_leaf('leaf', 'leaf'))\n"
        "return evaluator.get_summary()"
    )
    claims = []
    for seed in ("1", "2"):
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        server, judge = ForkServer(), ClaimJudge()
        await evaluate(project, judge, isolation=Isolation(server=server), reuse=False, overwrite=True)
        server.close()
        claims.append(judge.claims[0])
    assert claims[0] == claims[1]


def test_a_fork_server_that_was_not_needed_is_killed(server):
    """A command that fails at once does not wait until it has loaded the package."""
    server.warm_up()
    process = server._process
    server.close()
    assert process.returncode == -signal.SIGKILL
