"""The long form of the cluster's tests: runs with faults, compared with a plain run (make cluster-faults).

Three nodes, PostgreSQL, and a judge over HTTP that notes which questions it is asked. At a random moment one
of these happens: all processes of a node are killed, or the actor of a node, or the command itself; or the
database restarts. A command that was killed is started again. Printed for each run: answers with another
tree, score or info than the plain run's, judgments that the database lacks, and questions asked twice.
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
from contextlib import closing
from pathlib import Path

import psycopg
from projects import AGENT, Project, start_command
from servers.judge_server import JudgeServer
from servers.postgres_server import PostgresServer
from servers.ray_cluster import RayCluster

from mind2web2.judge.shared_store import JudgmentDatabase
from mind2web2.judge.transfer import judgments_named
from mind2web2.runs.results import latest_results, same_but_run

FAULTS = ("node", "actor", "driver", "database")
IN_FLIGHT = 30
_MOST_STARTS = 4


class CountingJudge(JudgeServer):
    """Answers after a while, as the text of the question demands, and counts the questions."""

    def __init__(self, latency_s: float) -> None:
        super().__init__(self._verdict)
        self._latency_s = latency_s
        self.asked: Counter[str] = Counter()

    def _verdict(self, body: dict) -> dict:
        digest = hashlib.sha256(json.dumps(body["messages"]).encode()).hexdigest()
        self.asked[digest] += 1
        time.sleep(self._latency_s)
        return {"reasoning": "read", "result": int(digest, 16) % 4 != 0}


def lay_out(project: Project, answers: int, checks: int) -> None:
    """Write answers to tasks of three each."""
    for number in range(answers):
        task = f"task_{number // 3}"
        project.add_answer(f"answer_{number % 3}", f"The lake is {number} m deep.", task)
        claims = {f"leaf_{check}": (f"Point {check} is met.", None) for check in range(checks)}
        project.add_script(claims, task)
    (project.root / "cache").mkdir()


def start(project: Project, judge: JudgeServer, *more: str) -> subprocess.Popen:
    """Start an evaluation of the project's answers."""
    words = ("--agent_name", AGENT, "--no_capture", "--max_llm_requests", str(IN_FLIGHT), *more)
    return start_command(*words, cwd=project.root, OPENAI_BASE_URL=judge.base_url)


def inject(fault: str, cluster: RayCluster, database: PostgresServer, command: subprocess.Popen) -> None:
    """Make a fault happen."""
    if fault == "node":
        cluster.kill_a_node()
        cluster.add_a_node()
    elif fault == "actor":
        if actors := cluster.actor_pids():
            os.kill(random.choice(actors), signal.SIGKILL)
    elif fault == "driver":
        command.kill()
    else:
        database.stop()
        database.start()


def faulty_run(
    project: Project,
    plain: Project,
    cluster: RayCluster,
    database: PostgresServer,
    judge: CountingJudge,
    fault: str,
    after: int,
) -> tuple[int, int, int]:
    """Evaluate with a fault after so many requests; return wrong answers, lost judgments, and requests."""
    judge.asked.clear()
    engine = ("--engine", "ray", "--ray_address", cluster.address, "--judgments", database.url)
    is_pending = True
    for _ in range(_MOST_STARTS):
        with start(project, judge, *engine) as command:
            while is_pending and command.poll() is None:
                time.sleep(0.05)
                if judge.asked.total() >= after:
                    inject(fault, cluster, database, command)
                    is_pending = False
            stdout, stderr = command.communicate()
        if command.returncode == 0:
            break
    else:
        raise SystemExit(f"the same command does not complete: {stdout}{stderr}")
    results = [list(latest_results(each.results.parent, AGENT)) for each in (plain, project)]
    pairs = zip(*results, strict=True)
    wrong = sum(
        one[:2] != other[:2] or not same_but_run(one[2].content, other[2].content) for one, other in pairs
    )
    with closing(JudgmentDatabase(database.url)) as shared:
        stored = {judgment.key for judgment in shared.all()}
    lost = judgments_named([found.content for *_, found in results[1]]) - stored
    return wrong, len(lost), judge.asked.total()


def main() -> int:
    """Run, print, and return 1 if a run was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("runs", 30), ("answers", 300), ("checks", 30), ("nodes", 3), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--latency", type=float, default=0.5)
    options = parser.parse_args()
    random.seed(options.seed)
    bad = 0
    with (
        tempfile.TemporaryDirectory() as folder,
        PostgresServer(is_durable=True) as database,
        CountingJudge(options.latency) as judge,
        RayCluster(options.nodes) as cluster,
    ):
        plain = Project(Path(folder) / "plain")
        lay_out(plain, options.answers, options.checks)
        with start(plain, judge) as command:
            command.communicate()
        requests = judge.asked.total()
        for number in range(options.runs):
            project = Project(Path(folder) / f"run_{number}")
            for name in ("answers", "eval_scripts", "cache"):
                shutil.copytree(plain.root / name, project.root / name)
            with psycopg.connect(database.url, autocommit=True) as connection:
                connection.execute("DROP TABLE IF EXISTS mind2web2_judgments, mind2web2_schema")
            fault, after = FAULTS[number % len(FAULTS)], random.randrange(1, requests)
            began_s = time.monotonic()
            wrong, lost, asked = faulty_run(project, plain, cluster, database, judge, fault, after)
            repeated = asked - requests
            is_bad = wrong or lost or not 0 <= repeated <= 3 * IN_FLIGHT
            bad += bool(is_bad)
            sys.stdout.write(
                f"run {number + 1}: {fault} after {after} of {requests} requests: {wrong} wrong answers, "
                f"{lost} judgments lost, {repeated} questions asked twice, {time.monotonic() - began_s:.0f} s"
                f"{': BAD' if is_bad else ''}\n"
            )
            sys.stdout.flush()
            shutil.rmtree(project.root)
    sys.stdout.write(f"{options.runs - bad} of {options.runs} runs are right\n")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
