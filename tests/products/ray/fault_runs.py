"""Runs of a cluster with faults, compared with a plain run (make cluster-faults).

Three nodes, and a judge over HTTP that notes which questions it is asked. At a random moment one of
these happens:

- node, worker, driver: all processes of a node, the process of a call, or the command are killed
- paused: the command stands still for 45 seconds
- vanish: a fourth node, on a machine of its own (a network namespace), vanishes from the network:
  none of its connections is closed, and its processes live on, cut off
- stand: all processes of such a node stand still for ever

A command that was killed is started again. Printed for each run: answers with another tree, score
or info than the plain run's, judgments that the store lacks, questions asked twice, and the time
that the run took after its fault. Machines of their own need root and iproute2.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Lock

from projects import AGENT, Project, start_command
from servers.judge_server import JudgeServer
from servers.machines import Machine, Machines
from servers.ray_cluster import RayCluster

from mind2web2.judge.store import STORE_NAME, JudgmentStore
from mind2web2.judge.transfer import judgments_named
from mind2web2.results.stored_results import latest_results

FAULTS = (
    "node",
    "worker",
    "driver",
    "paused",
    "vanish",
    "stand",
)
# They need a machine of their own.
_ON_A_MACHINE = {"vanish", "stand"}
_PAUSE_S = 45.0
IN_FLIGHT = 30
_MAX_STARTS = 4


class CountingJudge(JudgeServer):
    """Answers after a while, as the text of the question demands, and counts the questions."""

    def __init__(self, latency_s: float, host: str) -> None:
        super().__init__(self._verdict, host=host)
        self._latency_s = latency_s
        self.asked: Counter[str] = Counter()
        self._counting = Lock()

    def _verdict(self, body: dict) -> dict:
        digest = hashlib.sha256(json.dumps(body["messages"]).encode()).hexdigest()
        with self._counting:
            self.asked[digest] += 1
        time.sleep(self._latency_s)
        return {"reasoning": "read", "result": int(digest, 16) % 4 != 0}


def lay_out(project: Project, answers: int, checks: int) -> None:
    """Write answers to tasks of three each."""
    for number in range(answers):
        task = f"task_{number // 3}"
        project.add_answer(f"answer_{number % 3 + 1}", f"The lake is {number} m deep.", task)
        claims = {f"leaf_{check}": (f"Point {check} is met.", None) for check in range(checks)}
        project.add_script(claims, task)
    project.cache("task_0").put_web("https://lake.example/", "The lake", None)


def start(project: Project, judge: JudgeServer, *more: str, **variables: str) -> subprocess.Popen:
    """Start an evaluation of the project's answers."""
    words = (
        "--agent_name",
        AGENT,
        "--no_capture",
        "--max_llm_requests",
        str(IN_FLIGHT),
        *more,
    )
    return start_command(*words, cwd=project.root, OPENAI_BASE_URL=judge.base_url, **variables)


def inject(
    fault: str,
    cluster: RayCluster,
    command: subprocess.Popen,
    machine: Machine | None,
) -> None:
    """Make a fault happen."""
    if machine is not None and fault == "vanish":
        machine.vanish()
    elif machine is not None:
        machine.stand_still()
    elif fault == "node":
        cluster.kill_a_node()
        cluster.add_a_node()
    elif fault == "worker":
        if workers := cluster.worker_pids("judge_answers"):
            os.kill(random.choice(workers), signal.SIGKILL)
    elif fault == "paused":
        command.send_signal(signal.SIGSTOP)
        time.sleep(_PAUSE_S)
        command.send_signal(signal.SIGCONT)
    elif fault == "driver":
        command.kill()


@contextmanager
def one_more_node(cluster: RayCluster, machines: Machines) -> Iterator[Machine]:
    """Add a node on a machine that may vanish; in the end its processes are killed."""
    machine = machines.add()
    cluster.join(machine)
    try:
        yield machine
    finally:
        cluster.leave(machine)


def faulty_run(
    project: Project,
    cluster: RayCluster,
    judge: CountingJudge,
    fault: str,
    after: int,
    machine: Machine | None,
) -> tuple[int, float]:
    """Evaluate with a fault after so many requests.

    Return how many there were, and the seconds after it.
    """
    judge.asked.clear()
    fault_s: float | None = None
    for _ in range(_MAX_STARTS):
        with start(project, judge, "--engine", "ray", RAY_ADDRESS=cluster.address) as command:
            while fault_s is None and command.poll() is None:
                time.sleep(0.05)
                if judge.asked.total() >= after:
                    inject(fault, cluster, command, machine)
                    fault_s = time.monotonic()
            stdout, stderr = command.communicate()
        if command.returncode == 0:
            break
    else:
        raise SystemExit(f"the same command does not complete: {stdout}{stderr}")
    ended_s = time.monotonic()
    return judge.asked.total(), ended_s - (ended_s if fault_s is None else fault_s)


def compared(project: Project, plain: Project) -> tuple[int, int]:
    """Count answers with another result than in the plain run, and lost judgments."""
    results = [list(latest_results(each.results.parent, AGENT)) for each in (plain, project)]
    pairs = zip(*results, strict=True)
    wrong = sum(
        one[:2] != other[:2] or not one[2].content.is_same_but_run(other[2].content)
        for one, other in pairs
    )
    with JudgmentStore(project.results / STORE_NAME) as own:
        stored = {judgment.key for judgment in own.all()}
    lost = judgments_named([found.content.document for *_, found in results[1]]) - stored
    return wrong, len(lost)


def fault_names(text: str) -> list[str]:
    """Return the faults that a text with commas names."""
    names = text.split(",")
    if unknown := set(names) - set(FAULTS):
        raise argparse.ArgumentTypeError(f"no fault is called {', '.join(unknown)}")
    return names


def parsed_options() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (
        ("runs", 30),
        ("answers", 300),
        ("checks", 30),
        ("nodes", 3),
        ("seed", 1),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--latency", type=float, default=0.5)
    parser.add_argument(
        "--faults",
        type=fault_names,
        default=list(FAULTS),
        help=f"some of {','.join(FAULTS)}, in turn",
    )
    parser.add_argument(
        "--within_s",
        type=float,
        default=float("inf"),
        help="a run that takes longer after its fault is bad",
    )
    options = parser.parse_args()
    if _ON_A_MACHINE & set(options.faults) and os.geteuid():
        parser.error("machines of their own need root: name the other faults with --faults")
    return options


def main() -> int:
    """Run, print, and return 1 if a run was wrong."""
    options = parsed_options()
    random.seed(options.seed)
    bad = 0
    with ExitStack() as exits:
        machines = None
        if _ON_A_MACHINE & set(options.faults):
            machines = exits.enter_context(Machines())
        host = "127.0.0.1" if machines is None else machines.address
        folder = exits.enter_context(tempfile.TemporaryDirectory())
        judge = exits.enter_context(CountingJudge(options.latency, host))
        at = None if machines is None else host
        cluster = exits.enter_context(RayCluster(options.nodes, at))
        plain = Project(Path(folder) / "plain")
        lay_out(plain, options.answers, options.checks)
        with start(plain, judge) as command:
            command.communicate()
        requests = judge.asked.total()
        for number in range(options.runs):
            project = Project(Path(folder) / f"run_{number}")
            for name in ("answers", "eval_scripts", "cache"):
                shutil.copytree(plain.root / name, project.root / name)
            fault = options.faults[number % len(options.faults)]
            after = random.randrange(1, requests)
            began_s = time.monotonic()
            with ExitStack() as ends:
                machine = None
                if fault in _ON_A_MACHINE:
                    machine = ends.enter_context(one_more_node(cluster, machines))
                asked, after_s = faulty_run(project, cluster, judge, fault, after, machine)
            wrong, lost = compared(project, plain)
            repeated = asked - requests
            is_bad = (
                wrong
                or lost
                or after_s > options.within_s
                or not 0 <= repeated <= options.nodes * IN_FLIGHT
            )
            bad += bool(is_bad)
            sys.stdout.write(
                f"run {number + 1}: {fault} after {after} of {requests} requests, {after_s:.0f} s "
                "more: "
                f"{wrong} wrong answers, {lost} judgments lost, {repeated} questions asked twice, "
                f"{time.monotonic() - began_s:.0f} s{': BAD' if is_bad else ''}\n"
            )
            sys.stdout.flush()
            shutil.rmtree(project.root)
    sys.stdout.write(f"{options.runs - bad} of {options.runs} runs are right\n")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
