"""kill -9 at random moments, and the same command again: of an evaluation and of a caching run."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from faults.caching import CachingProject, PageSite, is_whole
from faults.example import AGENT, stored_judgments, tree_of
from faults.figures import Figures, together
from faults.preloaded import Preloaded, preloaded
from projects import REPOSITORY
from servers.judge_server import JudgeServer
from servers.recorded_replies import RecordedReplies

from mind2web2.judge.store import STORE_NAME
from mind2web2.utils.files import is_leftover

# The fields that differ between two evaluations of the same answers.
_OF_A_RUN = ("run",)
_POLL_S = 0.002
_AFTER_REQUEST_S = 0.2
_PAGES = 12


def evaluations(moments: int, seed: int) -> Figures:
    """Kill evaluations of the example."""
    with evaluating() as run:
        return killed_evaluations(run, run.undisturbed(), moments, seed)


def killed_evaluations(
    run: EvaluatedExample, undisturbed: Undisturbed, moments: int, seed: int
) -> Figures:
    """Kill an evaluation at so many moments."""
    chance = random.Random(seed)
    figures = []
    for number in range(moments):
        # Every other time by the clock, from loading to the last summary; else among the requests.
        requests = chance.randrange(undisturbed.asked) if number % 2 else 0
        after_s = chance.random() * (_AFTER_REQUEST_S if number % 2 else undisturbed.seconds)
        moment = Moment(requests, after_s, f"seed {seed}, number {number}")
        figures.append(run.killed(undisturbed, moment))
    return together("kill -9 of an evaluation", figures)


@dataclass(frozen=True)
class Moment:
    """When a process is killed.

    Args:
        requests: so many have come.
        after_s: so long after that, or after the start.
        where: what repeats it.
    """

    requests: int
    after_s: float
    where: str


@dataclass(frozen=True)
class Undisturbed:
    """The outcome of an undisturbed evaluation."""

    results: dict[str, Any]
    summaries: dict[str, Any]
    asked: int
    seconds: float

    @property
    def shared(self) -> int:
        """Return how many questions of answers are also those of another answer.

        They are asked once for both.
        """
        usages = [result["judge_usage"] for result in self.results.values()]
        return sum(usage["judgments"] for usage in usages) - self.asked


@contextmanager
def evaluating(
    opened: Preloaded | None = None, tasks: Sequence[str] = ()
) -> Iterator[EvaluatedExample]:
    """Open what evaluations of some tasks need, or of all tasks.

    They need a judge, a loaded package and an empty folder.
    """
    with (
        JudgeServer(RecordedReplies()) as server,
        preloaded(opened) as commands,
        tempfile.TemporaryDirectory(prefix="faults-") as folder,
    ):
        yield EvaluatedExample(server, commands, Path(folder), tasks)


class EvaluatedExample:
    """The example, evaluated by processes over a judge that counts what it is asked."""

    def __init__(
        self,
        server: JudgeServer,
        commands: Preloaded,
        folder: Path,
        tasks: Sequence[str] = (),
    ) -> None:
        self._server = server
        self.commands = commands
        self.folder = folder
        self._tasks = [word for task in tasks for word in ("--task_id", task)]
        self._runs = 0

    def fresh(self) -> Path:
        """Return a new folder for results."""
        self._runs += 1
        return self.folder / f"results-{self._runs}"

    def start(self, results: Path, key: str, *more: object) -> Any:
        """Start the command; the key tells its requests from those of others."""
        command = [
            "evaluate",
            AGENT,
            "--judge_base_url",
            self._server.base_url,
            "--no_capture",
        ]
        return self.commands.start(
            [*command, "--eval_results_root", results, *self._tasks, *more],
            REPOSITORY,
            self.folder / f"output-{key}.txt",
            OPENAI_API_KEY=key,
        )

    def asked(self, *keys: str) -> int:
        """Return how many requests came with these keys."""
        wanted = {f"Bearer {key}" for key in keys}
        return sum(call.headers.get("authorization") in wanted for call in list(self._server.calls))

    def forget(self, results: Path) -> None:
        """Remove what a moment needed."""
        self._server.calls.clear()
        shutil.rmtree(results)

    def undisturbed(self) -> Undisturbed:
        """Evaluate without any disturbance."""
        results = self.fresh()
        started_s = time.monotonic()
        process = self.start(results, "undisturbed")
        if process.status() != 0:
            raise AssertionError(process.printed())
        seconds = time.monotonic() - started_s
        found = Undisturbed(
            newest_results(results),
            summaries(results),
            self.asked("undisturbed"),
            seconds,
        )
        self.forget(results)
        return found

    def killed(self, undisturbed: Undisturbed, moment: Moment) -> Figures:
        """Kill an evaluation at a moment, run it again, and look at what came of it."""
        results = self.fresh()
        process = self.start(results, "killed")
        while self.asked("killed") < moment.requests and not process.ends_within(_POLL_S):
            pass
        if not process.ends_within(moment.after_s):
            process.kill()
        process.status()
        damaged = half_written(results)
        kept = kept_judgments(results)
        started_s = time.monotonic()
        process = self.start(results, "again")
        status = process.status()
        seconds = time.monotonic() - started_s
        damaged += in_the_way(results)
        figures = Figures(
            "",
            disturbances=1,
            half_written_files=len(damaged),
            recovery_s=(seconds,),
            lost_judgments=len(kept - stored_judgments(results).keys()),
            judged_twice=max(0, self.asked("again") - (undisturbed.asked - len(kept))),
        )
        problem = f"{moment.where}: files {', '.join(map(str, damaged))}" if damaged else None
        if status != 0:
            problem = f"{moment.where}: exit status {status}: {process.printed()[-500:]}"
        figures = compared(figures, undisturbed, results, moment.where, problem)
        self.forget(results)
        return figures


def compared(
    figures: Figures,
    undisturbed: Undisturbed,
    results: Path,
    where: str,
    problem: str | None = None,
) -> Figures:
    """Return figures with what differs from an undisturbed run."""
    found = newest_results(results)
    wrong = [
        name
        for name, expected in undisturbed.results.items()
        if not _same_tree(found.get(name), expected)
    ]
    if problem is None and found != undisturbed.results:
        different = [
            name for name, expected in undisturbed.results.items() if found.get(name) != expected
        ]
        problem = f"{where}: other results than undisturbed: {', '.join(different)}"
    if problem is None and summaries(results) != undisturbed.summaries:
        problem = f"{where}: other summaries than undisturbed"
    if problem is None and any(count > 1 for count in result_counts(results).values()):
        problem = f"{where}: an answer has several results: {result_counts(results)}"
    return replace(
        figures,
        answers=len(undisturbed.results),
        without_result=len(undisturbed.results.keys() - found.keys()),
        wrong_scores=len(wrong),
        hindrances=(problem,) if problem else (),
    )


def _same_tree(found: dict[str, Any] | None, expected: dict[str, Any]) -> bool:
    return found is None or tree_of(found) == tree_of(expected)


def newest_results(results: Path) -> dict[str, Any]:
    """Return each answer's newest result, without what differs from run to run."""
    newest = {path.parent: path for path in sorted(results.glob("*/*/*/results/*.md.json"))}
    found = {}
    for folder, path in newest.items():
        content = json.loads(path.read_bytes())
        for name in _OF_A_RUN:
            content.pop(name, None)
        found[str(folder.relative_to(results).parent)] = content
    return found


def result_counts(results: Path) -> dict[str, int]:
    """Return how many results each answer has."""
    folders = list(results.glob("*/*/*/results"))
    return {
        str(folder.relative_to(results)): len(list(folder.glob("*.md.json"))) for folder in folders
    }


def summaries(results: Path) -> dict[str, Any]:
    """Return the files that sum up results."""
    paths = [*results.glob("**/summary.json"), results / "all_results.json"]
    return {
        str(path.relative_to(results)): json.loads(path.read_bytes())
        for path in paths
        if path.exists()
    }


def half_written(folder: Path) -> list[Path]:
    """Return the JSON files that do not parse, unfinished writes aside: nobody reads those."""
    paths = [path for path in folder.glob("**/*.json") if not is_leftover(path.name)]
    return [path for path in paths if not is_json(path)]


def is_json(path: Path) -> bool:
    """Tell whether a file parses."""
    try:
        json.loads(path.read_bytes())
    except ValueError:
        return False
    return True


def in_the_way(results: Path) -> list[Path]:
    """Return locks that are left, and unfinished writes where an answer's results are."""
    locks = [path for path in results.glob("**/*.lock") if path.parent.name != "batches"]
    unfinished = [path for path in results.glob("*/*/*/**/*") if is_leftover(path.name)]
    return locks + unfinished


def kept_judgments(results: Path) -> set[str]:
    """Return the keys that are stored, read from a copy: opening the store itself would mend it."""
    with tempfile.TemporaryDirectory() as copy:
        for path in (results / AGENT).glob(f"{STORE_NAME}*"):
            if not path.name.endswith("-shm"):
                (Path(copy) / AGENT).mkdir(exist_ok=True)
                shutil.copy(path, Path(copy) / AGENT / path.name)
        return set(stored_judgments(Path(copy)))


def cachings(
    moments: int, seed: int, pages: int = _PAGES, opened: Preloaded | None = None
) -> Figures:
    """Kill caching runs."""
    chance = random.Random(seed)
    with (
        PageSite() as site,
        preloaded(opened) as commands,
        tempfile.TemporaryDirectory(prefix="faults-") as folder,
    ):
        project = CachingProject(Path(folder) / "project", site.url, pages)
        started_s = time.monotonic()
        project.cache(commands)
        seconds = time.monotonic() - started_s
        expected = project.contents()
        figures = [
            _killed_caching(
                project,
                commands,
                chance.random() * seconds,
                expected,
                f"seed {seed}, {number}",
            )
            for number in range(moments)
        ]
        return together("kill -9 of a caching run", figures)


def _killed_caching(
    project: CachingProject,
    commands: Preloaded,
    after_s: float,
    expected: dict[str, Any],
    where: str,
) -> Figures:
    project.clear()
    process = project.start(commands)
    if not process.ends_within(after_s):
        process.kill()
    process.status()
    damaged = sum(not is_whole(project.pages(), url) for url in project.listed())
    before = project.captures()
    started_s = time.monotonic()
    project.cache(commands)
    seconds = time.monotonic() - started_s
    again = {
        url for url, captured_at in before.items() if project.captures().get(url) != captured_at
    }
    problems = [f"{where}: captured again though it was stored: {sorted(again)}"] if again else []
    if project.contents() != expected:
        problems.append(f"{where}: another cache than undisturbed")
    return Figures(
        "",
        disturbances=1,
        half_written_files=damaged,
        hindrances=tuple(problems),
        recovery_s=(seconds,),
    )


PARTS = (evaluations, cachings)
