"""Compare the Ray engine with the plain runner: requests a second, and memory.

Each node is a raylet of its own on this machine, with PostgreSQL and a judge of fixed latency
beside it. Choose the latency so that the judge, not the processor, sets the pace. The measured time
is that from the first request to the last. Ray's start takes some 10 s more, once.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path

from measuring import title
from processes import family, pss_bytes
from slow_judge import SlowJudge
from throughput import AGENT, lay_out

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from projects import REPOSITORY, clean_environment
from servers.postgres_server import PostgresServer
from servers.ray_cluster import RayCluster

from mind2web2.judge.store import FILE_NAME, JudgmentStore

TARGET_SPEEDUP, TARGET_SHARE = 2.6, 1.15
SAMPLE_S = 2.0
MIB = 1024**2


class Memory:
    """Samples the memory of the command, of shards, and of Ray's own processes."""

    def __init__(self) -> None:
        self.peaks_mb = {"command": 0.0, "shards and scripts": 0.0, "Ray": 0.0}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._done.wait(SAMPLE_S):
            sums = dict.fromkeys(self.peaks_mb, 0.0)
            for folder in family()[1:]:
                if kind := _kind(folder):
                    sums[kind] += pss_bytes(folder) / MIB
            self.peaks_mb = {kind: max(peak, sums[kind]) for kind, peak in self.peaks_mb.items()}

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()


def _kind(folder: Path) -> str | None:
    try:
        command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return None
    if "run_eval.py" in command:
        return "command"
    if "judge_shard" in command or "isolation.worker" in command:
        return "shards and scripts"
    return "Ray" if "/ray/" in command else None


def evaluate(
    options: argparse.Namespace, judge_url: str, engine: list[str], database: str
) -> float:
    """Evaluate in a new project, and return the seconds from the first request to the last."""
    with tempfile.TemporaryDirectory() as folder, Memory() as memory:
        paths = lay_out(Path(folder), options.tasks, options.answers, options.checks)
        command = [
            sys.executable,
            str(REPOSITORY / "run_eval.py"),
            "--agent_name",
            AGENT,
            "--no_capture",
        ]
        command += [
            "--judgments",
            database,
            "--max_llm_requests",
            str(options.limit),
            *engine,
        ]
        environment = clean_environment(OPENAI_API_KEY="none", OPENAI_BASE_URL=judge_url)
        began_s = time.perf_counter()
        subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
        took_s = time.perf_counter() - began_s
        with JudgmentStore(paths.eval_results_root / AGENT / FILE_NAME) as store:
            asked = [judgment for judgment in store.all() if judgment.attempts]
    ended_s = [datetime.fromisoformat(judgment.created).timestamp() for judgment in asked]
    first_s = min(end_s - (each.seconds or 0) for end_s, each in zip(ended_s, asked, strict=True))
    span_s = max(ended_s) - first_s
    peaks = ", ".join(f"{kind} {peak:.0f} MB" for kind, peak in memory.peaks_mb.items() if peak)
    title(
        f"    {len(asked)} requests in {span_s:.1f} s, {len(asked) / span_s:.0f} a second; the "
        "whole command "
        f"{took_s:.0f} s; {peaks}"
    )
    return span_s


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (
        ("tasks", 100),
        ("answers", 3),
        ("checks", 15),
        ("limit", 30),
        ("nodes", 3),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--latency", type=float, default=2.0)
    options = parser.parse_args()
    title(
        f"{options.tasks} tasks x {options.answers} answers x {options.checks} checks of two "
        "votes, judge at "
        f"{options.latency:g} s, {options.limit} requests at once on each node"
    )
    spans_s = {}
    for name, nodes in (
        ("the plain runner", 0),
        ("one node", 1),
        (f"{options.nodes} nodes", options.nodes),
    ):
        title(f"  {name}")
        with (
            SlowJudge(options.latency) as judge,
            PostgresServer(is_durable=True) as database,
            RayCluster(nodes) if nodes else nullcontext() as cluster,
        ):
            engine = (
                [] if cluster is None else ["--engine", "ray", "--ray_address", cluster.address]
            )
            spans_s[nodes] = evaluate(options, judge.base_url, engine, database.url)
    title(
        f"  one node takes {spans_s[1] / spans_s[0]:.2f} of the plain runner's time (target "
        f"{TARGET_SHARE})"
    )
    speedup = spans_s[1] / spans_s[options.nodes]
    title(
        f"  {options.nodes} nodes are {speedup:.2f} times as fast as one (target {TARGET_SPEEDUP} "
        "with 3)"
    )


if __name__ == "__main__":
    main()
