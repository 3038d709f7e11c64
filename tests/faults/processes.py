"""Several processes over the same folders.

They are evaluations of one agent, and one evaluation beside a caching run.
"""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path

from faults.caching import TASK as CACHED_TASK
from faults.caching import CachingProject, PageSite
from faults.crashes import (
    EvaluatedExample,
    Undisturbed,
    compared,
    evaluating,
    half_written,
    in_the_way,
    newest_results,
)
from faults.example import stored_judgments
from faults.figures import Figures, together
from faults.preloaded import Preloaded, Started, preloaded
from projects import Project
from servers.judge_server import JudgeServer

_PAGES = 3
_CLAIMS = 4
_REQUESTS_AT_ONCE = 4
_POLL_S = 0.002


def evaluations(rounds: int, seed: int) -> Figures:
    """Evaluate one agent by two processes at once.

    Every other time one of them is killed and replaced.
    """
    with evaluating() as run:
        return evaluated_twice(run, run.undisturbed(), rounds, seed)


def evaluated_twice(
    run: EvaluatedExample, undisturbed: Undisturbed, rounds: int, seed: int
) -> Figures:
    """Evaluate the example by two processes at once, so many times."""
    chance = random.Random(seed)
    figures = [
        _evaluated_twice(
            run,
            undisturbed,
            kill_after=chance.randrange(undisturbed.asked) if number % 2 else None,
            where=f"seed {seed}, round {number}",
        )
        for number in range(rounds)
    ]
    return together("two evaluations at once", figures)


def _evaluated_twice(
    run: EvaluatedExample, undisturbed: Undisturbed, kill_after: int | None, where: str
) -> Figures:
    results = run.fresh()
    options = ("--max_llm_requests", _REQUESTS_AT_ONCE)
    processes = [
        run.start(results, "first", *options),
        run.start(results, "second", *options, "--max_concurrent_tasks", 2),
    ]
    started_s = time.monotonic()
    twice_at_most = 0
    if kill_after is not None:
        first = processes[0]
        while run.asked("first", "second") < kill_after and not first.ends_within(_POLL_S):
            pass
        first.kill()
        # Questions with the judge at that time, and replies on their way to the store, are asked
        # again.
        twice_at_most = 2 * _REQUESTS_AT_ONCE
    statuses = [process.status() for process in processes]
    is_killed = kill_after is not None and statuses[0] < 0
    expected = [-9, 0] if is_killed else [0, 0]
    problem = (
        None
        if statuses == expected
        else f"{where}: exit statuses {statuses}: {_printed(processes)}"
    )
    if not is_killed:
        twice_at_most = 0
    # A question that two answers share is asked twice if each process judges one of them at that
    # moment.
    twice_at_most += undisturbed.shared
    asked = run.asked("first", "second")
    figures = Figures(
        "",
        disturbances=1,
        judged_twice=max(0, asked - undisturbed.asked - twice_at_most),
        half_written_files=len(half_written(results) + in_the_way(results)),
        lost_judgments=undisturbed.asked - len(stored_judgments(results)),
        recovery_s=(time.monotonic() - started_s,),
    )
    figures = compared(figures, undisturbed, results, where, problem)
    run.forget(results)
    return figures


def _printed(processes: list[Started]) -> str:
    return " / ".join(process.printed()[-400:] for process in processes)


def beside_caching(
    rounds: int,
    seed: int,  # noqa: ARG001 (the moments are the processes' own)
    opened: Preloaded | None = None,
) -> Figures:
    """Evaluate answers whose pages another process is caching, over the same folders."""
    with (
        PageSite() as site,
        JudgeServer() as judge,
        preloaded(opened) as commands,
        tempfile.TemporaryDirectory(prefix="faults-") as folder,
    ):
        figures = []
        for number in range(rounds):
            project = CachingProject(Path(folder) / f"project-{number}", site.url, _PAGES)
            figures.append(_cached_and_evaluated(project, judge, commands, f"round {number}"))
            judge.calls.clear()
        return together("an evaluation beside a caching run", figures)


def _cached_and_evaluated(
    project: CachingProject, judge: JudgeServer, commands: Preloaded, where: str
) -> Figures:
    scripts = Project(project.root)
    claims = {
        f"leaf_{number}": (f"Line 3 of page {number}.", url)
        for number, url in enumerate(project.urls)
    }
    # From the other end than the caching run, so that they meet.
    scripts.add_script(dict(reversed(claims.items())), task=CACHED_TASK)
    started_s = time.monotonic()
    caching = project.start(commands)
    command = ["evaluate", "bot", "--judge_base_url", judge.base_url]
    command += ["--allow_private_network"]
    variables = {"OPENAI_API_KEY": "dummy"}
    evaluating = commands.start(command, project.root, project.root / "evaluation.txt", **variables)
    statuses = [caching.status(), evaluating.status()]
    seconds = time.monotonic() - started_s
    asked = len(judge.calls)
    results = project.root / "eval_results"
    first = newest_results(results)
    problems = (
        []
        if statuses == [0, 0]
        else [f"{where}: exit statuses {statuses}: {evaluating.printed()[-600:]}"]
    )
    if project.listed() != sorted(project.urls):
        problems.append(f"{where}: the index lists {len(project.listed())} of {_PAGES} pages")
    # Every page is what it was when it was judged, so that the same command finds nothing to do.
    status = commands.run(command, project.root, project.root / "again.txt", **variables)
    again = len(judge.calls) - asked
    if status != 0 or newest_results(results) != first:
        problems.append(f"{where}: the same command again gives something else")
    wrong = sum(result["final_score"] != 1.0 for result in first.values())
    return Figures(
        "",
        disturbances=1,
        answers=len(first),
        wrong_scores=wrong,
        judged_twice=max(0, asked - 2 * _PAGES) + again,
        half_written_files=len(half_written(project.root / "cache") + half_written(results)),
        hindrances=tuple(problems),
        recovery_s=(seconds,),
    )


PARTS = (evaluations, beside_caching)
