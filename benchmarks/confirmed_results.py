"""What confirming finished answers costs: the proof from recorded inputs, and scripts run again.

An instant judge evaluates answers of 60 leaves on 10 pages a task. Then three commands confirm the results:
`evaluate` compares what each was made from with the files of now; a replay runs each script again from stored
judgments, which is the least that a confirmation by running again would do; and `verify-results` runs each
again as well, and compares.

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
    answers = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    with tempfile.TemporaryDirectory() as folder, JudgeServer() as server:
        _add_answers(Project(Path(folder)), answers)
        judge = ("--judge_base_url", server.base_url)
        common = ("evaluate", AGENT, "--no_capture", "--quiet")
        first = _timed(folder, *common, *judge)
        asked = len(server.calls)
        title(f"{answers} answers of {LEAVES} leaves, {asked:,} requests")
        proof = _timed(folder, *common, *judge)
        results = Path(folder).glob("eval_results/*/*/*/results/*.json")
        assert len(server.calls) == asked, "something was asked again"
        assert len([*results]) == answers, "a script was run again"
        replay = _timed(folder, *common, "--llm_provider", "replay")
        verified = _timed(folder, "verify-results", AGENT)
    rows = {
        "first evaluation": first,
        "confirmed by recorded inputs": proof,
        "scripts run again (replay)": replay,
        "verify-results": verified,
    }
    title(f"{'':32} {'seconds':>8} {'CPU s':>7} {'ratio':>6}")
    for name, took in rows.items():
        ratio = took.cpu_s / proof.cpu_s
        title(f"{name:32} {took.wall_s:8.1f} {took.cpu_s:7.1f} {ratio:6.1f}")


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
