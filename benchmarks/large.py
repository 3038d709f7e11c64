"""Measure each command on many answers: processor time and memory, and those of one answer more.

A judge with 50 ms evaluates answers of 24 claims on 10 pages a task, first few answers and then ten
times as many. Each command runs in a process of its own; it and all that it starts are counted
together. Then a run with 300 requests in flight takes turns with a bare loop over OpenAI's SDK.

    PYTHONPATH=tests uv run --group dev python benchmarks/large.py [ANSWERS]
"""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measuring import title
from processes import family, pss_bytes
from projects import AGENT, Project, clean_environment
from servers.judge_server import VERDICT, Body, JudgeServer
from slow_judge import SlowJudge

LEAVES, PAGES, ANSWERS_A_TASK = 24, 10, 20
DELAY_S = 0.05
AT_ONCE, LATENCY_S = 300, 0.2
TURNS = 3
LOOP = Path(__file__).with_name("sdk_loop.py")
# An agent with the same results, to be compared with.
OTHER = "other"
BODY = f"""
leaves = [evaluator.add_leaf(f"leaf_{{number}}", "d") for number in range({LEAVES})]
await asyncio.gather(*(
    evaluator.verify(f"The lake is {{number}} m deep.", leaf, f"https://www.example.org/{{number % {PAGES}}}")
    for number, leaf in enumerate(leaves)
))
return evaluator.get_summary()
"""


@dataclass(frozen=True)
class Took:
    """Seconds, processor seconds and largest memory of a command with its children."""

    wall_s: float
    cpu_s: float
    peak_mb: float


def main() -> None:
    """Print a row for each command."""
    most = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    fewest = most // 10
    few, many = _commands(fewest), _commands(most)
    title(f"{fewest} and {most} answers of {LEAVES} claims; then a further answer")
    title(f"{'':16} {'seconds':>14} {'CPU s':>14} {'MB':>12} {'CPU ms':>8} {'KB':>8}")
    for name, took in many.items():
        before, more = few[name], most - fewest
        cpu_ms = (took.cpu_s - before.cpu_s) / more * 1e3
        memory_kb = (took.peak_mb - before.peak_mb) / more * 1e3
        title(
            f"{name:16} {before.wall_s:6.1f} {took.wall_s:7.1f} {before.cpu_s:6.1f} "
            f"{took.cpu_s:7.1f} "
            f"{before.peak_mb:5.0f} {took.peak_mb:6.0f} {cpu_ms:8.1f} {memory_kb:8.1f}"
        )
    title(f"{AT_ONCE} requests in flight, judge at {LATENCY_S:g} s: requests a second, CPU ms each")
    with SlowJudge(LATENCY_S) as server:
        for _ in range(TURNS):
            run, requests = _run_at_once(server.base_url, fewest)
            words = (str(LOOP), server.base_url, str(requests), str(AT_ONCE))
            loop = _took(LOOP.parent, *words)
            rates = [requests / took.wall_s for took in (run, loop)]
            costs_ms = [took.cpu_s / requests * 1e3 for took in (run, loop)]
            title(
                f"  run {rates[0]:5.0f} {costs_ms[0]:5.2f}   loop {rates[1]:5.0f} "
                f"{costs_ms[1]:5.2f}   share {rates[0] / rates[1]:.2f}"
            )


def _run_at_once(url: str, answers: int) -> tuple[Took, int]:
    """Return what a run takes that has so many requests in flight, and how many it sends."""
    with tempfile.TemporaryDirectory() as folder:
        _add_answers(Project(Path(folder)), answers)
        words = ("--judge_base_url", url, "--max_llm_requests", str(AT_ONCE), "--no_capture")
        took = _timed(folder, "evaluate", AGENT, *words)
        usage = json.loads((Path(folder) / "eval_results" / AGENT / "usage.json").read_text())
    return took, usage["newest_run"]["asked"]["requests"]


def _commands(answers: int) -> dict[str, Took]:
    with tempfile.TemporaryDirectory() as folder, JudgeServer(_late_verdict) as server:
        _add_answers(Project(Path(folder)), answers)
        judge = ("--judge_base_url", server.base_url)
        evaluate = ("evaluate", AGENT, "--no_capture", *judge)
        took = {"evaluate": _timed(folder, *evaluate)}
        asked = len(server.calls)
        took["evaluate again"] = _timed(folder, *evaluate)
        assert len(server.calls) == asked, "something was asked again"
        took["metrics"] = _timed(folder, "metrics", AGENT)
        took["show an answer"] = _timed(folder, "show", AGENT, "task_0", "1")
        results = Path(folder) / "eval_results"
        shutil.copytree(results / AGENT, results / OTHER)
        took["compare"] = _timed(folder, "compare", AGENT, OTHER)
        took["export"] = _timed(folder, "export", AGENT, "-o", "leaves.csv")
        took["export --inspect"] = _timed(folder, "export", AGENT, "--inspect", "log.eval")
        took["report"] = _timed(folder, "report", AGENT, "-o", "report.html")
        took["verify-results"] = _timed(folder, "verify-results", AGENT)
    return took


def _late_verdict(_body: Body) -> dict[str, Any]:
    time.sleep(DELAY_S)
    return VERDICT


def _add_answers(project: Project, answers: int) -> None:
    for number in range(answers):
        task = f"task_{number // ANSWERS_A_TASK}"
        if number % ANSWERS_A_TASK == 0:
            _add_task(project, task)
        name = f"answer_{number % ANSWERS_A_TASK + 1}"
        project.add_answer(name, f"Answer {number}.", task)


def _add_task(project: Project, task: str) -> None:
    project.add_script_body(BODY, task=task)
    for page in range(PAGES):
        text = f"Page {page} of {task}. " + "The lake is deep and cold. " * 200
        project.cache(task).put_web(f"https://www.example.org/{page}", text, None)


def _timed(folder: str, *words: str) -> Took:
    return _took(folder, "-m", "mind2web2", *words)


def _took(folder: str | Path, *words: str) -> Took:
    """Return what Python takes with these words, and all that it starts."""
    before_s, started_s, peak_bytes = _cpu_s(), time.monotonic(), 0
    with tempfile.TemporaryFile() as output:
        command = subprocess.Popen(
            [sys.executable, *words],
            cwd=folder,
            env=clean_environment(OPENAI_API_KEY="dummy"),
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        while command.poll() is None:
            _own, *started = family()
            peak_bytes = max(peak_bytes, sum(map(pss_bytes, started)))
            time.sleep(0.2)
        output.seek(0)
        assert command.returncode == 0, (words, output.read().decode())
    wall_s = time.monotonic() - started_s
    return Took(wall_s, _cpu_s() - before_s, peak_bytes / 1e6)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
