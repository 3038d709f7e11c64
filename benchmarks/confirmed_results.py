"""What a second look at finished answers costs: by checksums, and by running their scripts again.

An instant judge evaluates answers of 60 leaves on 10 pages a task. Then `evaluate` confirms the results by
checksums, and `verify-results` runs each script again from stored judgments. Two sizes show what each further
answer costs without the start of a command.

    PYTHONPATH=tests uv run python benchmarks/confirmed_results.py [ANSWERS]
"""

import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from measuring import title
from projects import AGENT, Project, clean_environment
from servers.judge_server import JudgeServer

LEAVES, PAGES, TASKS = 60, 10, 10
BODY = f"""
for number in range({LEAVES}):
    leaf = evaluator.add_leaf(f"leaf_{{number}}", "d")
    url = f"https://www.example.org/{{number % {PAGES}}}"
    await evaluator.verify(f"The lake is {{number}} m deep.", leaf, url)
return evaluator.get_summary()
"""


@dataclass(frozen=True)
class Took:
    """Seconds of a command, and those of processors in it and its children."""

    wall_s: float
    cpu_s: float


def main() -> None:
    """Print a table."""
    answers = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    few, many = _costs(answers // 10), _costs(answers)
    title(f"{answers // 10} and {answers} answers of {LEAVES} leaves")
    title(f"{'':20} {'seconds':>15} {'CPU s':>15} {'CPU ms a further answer':>24}")
    for name, took in many.items():
        before = few[name]
        further = (took.cpu_s - before.cpu_s) / (answers - answers // 10) * 1000
        seconds = f"{before.wall_s:.1f} {took.wall_s:.1f}"
        cpu = f"{before.cpu_s:.1f} {took.cpu_s:.1f}"
        title(f"{name:20} {seconds:>15} {cpu:>15} {further:24.1f}")


def _costs(answers: int) -> dict[str, Took]:
    with tempfile.TemporaryDirectory() as folder, JudgeServer() as server:
        _add_answers(Project(Path(folder)), answers)
        judge = ("--judge_base_url", server.base_url)
        evaluate = ("evaluate", AGENT, "--no_capture", "--quiet", *judge)
        first = _timed(folder, *evaluate)
        asked = len(server.calls)
        again = _timed(folder, *evaluate)
        assert len(server.calls) == asked, "something was asked again"
        verified = _timed(folder, "verify-results", AGENT)
    return {
        "first evaluation": first,
        "evaluate again": again,
        "verify-results": verified,
    }


def _add_answers(project: Project, answers: int) -> None:
    names = [f"task_{number}" for number in range(TASKS)]
    for name in names:
        project.add_script_body(BODY, task=name)
        for page in range(PAGES):
            text = f"Page {page} of {name}. " + "The lake is deep and cold. " * 200
            project.cache(name).put_web(f"https://www.example.org/{page}", text, None)
    for number in range(answers):
        task = names[number % TASKS]
        project.add_answer(f"answer_{number // TASKS}", f"Answer {number}.", task)


def _timed(folder: str, *words: str) -> Took:
    before, started = _cpu_s(), time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "mind2web2", *words],
        cwd=folder,
        env=clean_environment(OPENAI_API_KEY="dummy"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return Took(time.monotonic() - started, _cpu_s() - before)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
