"""An evaluation: open judge and store, run the scripts, tell listeners, print the report."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import (
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from mind2web2.cli.console import ConsoleHandler, PlainConsole
from mind2web2.cli.displays import RunDisplay, uncached_text, unreported_text
from mind2web2.cli.evaluation_plan import OVERWRITE_CONTINUED, EndedRun, EvaluationPlan
from mind2web2.cli.event_loop import run_to_exit
from mind2web2.cli.options import load_function
from mind2web2.errors import ResultWriteError, UsageError
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.protocol import AskedQuestion
from mind2web2.judge.store import STORE_NAME, stores_of_others
from mind2web2.judge.usage import RunUsage
from mind2web2.results.answers import AnswerJob, RunFolders, TaskWork
from mind2web2.results.shards import SHARDS_NAME, ShardState, shard_states, shards_text
from mind2web2.results.stored_results import (
    latest_result,
    write_file,
)
from mind2web2.results.usage_file import write_usage
from mind2web2.runs.answer import AnswerOutcome, answer_locked
from mind2web2.runs.concurrency import Concurrency
from mind2web2.runs.run import (
    AnswerRunner,
    RemoteRunner,
    RunProgress,
    evaluate_work,
    uncached_pages,
)
from mind2web2.runs.session import OwnParts, Session, budget_of, open_run
from mind2web2.runs.settings import RunSettings
from mind2web2.utils.entry_points import load_parts
from mind2web2.utils.logging_setup import LogFile
from mind2web2.utils.text import counted

if TYPE_CHECKING:
    from mind2web2.hooks import Listener

# For answers that other machines judge: each that waits holds the lock of its folder.
_ELSEWHERE = Concurrency(max_tasks=64, max_answers=512)


@asynccontextmanager
async def _runner(run: _Run, session: Session) -> AsyncIterator[tuple[AnswerRunner, Concurrency]]:
    """Open what evaluates the answers: this machine, or others."""
    if run.evaluation.machines is None:
        async with session.at_work() as concurrency:
            yield session.parts, concurrency
        return
    async with run.evaluation.machines(session) as remote:
        yield _Elsewhere(remote), _ELSEWHERE


@dataclass(frozen=True)
class _Elsewhere:
    """Has answers judged by other machines, which write their files below the results."""

    remote: RemoteRunner

    async def evaluate(self, job: AnswerJob) -> AnswerOutcome | None:
        """Evaluate one answer; ``None`` if another process judges it."""
        async with answer_locked(job.folder) as is_ours:
            if not is_ours:
                return None
            reason, reused = await self.remote.judged(job)
            loaded = await asyncio.to_thread(latest_result, job.folder / "results")
            if reason is None and loaded is not None:
                name = job.answer.name
                return AnswerOutcome(job.task_id, name, loaded.content, None, reused=reused)
            reason = reason or "the machine that judged it returned no result"
            return AnswerOutcome(job.task_id, job.answer.name, None, reason)


@dataclass(frozen=True)
class _Run:
    evaluation: EvaluationPlan
    checked: RunSettings
    folders: RunFolders
    console: PlainConsole
    progress: RunProgress = field(default_factory=lambda: RunProgress(lets_results_go=True))
    # Once they exist: the judge's use, and the actions that keep it when the run is stopped.
    usages: list[RunUsage] = field(default_factory=list)
    on_stop: list[Callable[[], None]] = field(default_factory=list)

    @property
    def settings(self) -> RunSettings:
        """Return the settings of the evaluation."""
        return self.evaluation.settings

    @property
    def work(self) -> Sequence[TaskWork]:
        """Return what is evaluated."""
        return self.evaluation.work

    def print(self, text: str) -> None:
        """Print a line."""
        self.console.print_line(text)

    def report_stop(self) -> None:
        """Print how far the run has come, and write state that is only in memory."""
        done = sum(outcome.has_result for outcome in self.progress.outcomes)
        total = sum(len(task.answers) for task in self.work)
        then = "so far is kept. The same command continues from here."
        if self.settings.overwrite:
            then = f"so far is kept. {OVERWRITE_CONTINUED}"
        self.print(f"Stopped. {done} of {counted(total, 'answer')} done, and every judgment {then}")
        for usage in self.usages:
            if text := unreported_text(usage):
                self.print(text)
        for action in self.on_stop:
            action()


# A question makes thousands of objects and hardly any cycle: to look for cycles as often as Python
# does by default takes a seventh of the processor time.
_OBJECTS_A_COLLECTION = 50_000


def run_evaluation(evaluation: EvaluationPlan) -> int:
    """Evaluate the work and return the exit status."""
    gc.set_threshold(_OBJECTS_A_COLLECTION)
    settings, work = evaluation.settings, evaluation.work
    paths = settings.paths
    folders = RunFolders(evaluation.agent_name, paths.cache_root, paths.eval_results_root)
    checked = evaluation.checked or settings
    if settings.shard is not None:
        _note_shard(settings, folders, "started" if work else "ended")
        if not work:
            PlainConsole().print_line(
                f"Shard {settings.shard} has no answers: there is nothing to judge.",
            )
            return 0
        # A shard writes to a folder of its own, where no other run looks for a check.
        checked = replace(checked, eval_results_root=None)
    run = _Run(evaluation, checked, folders, PlainConsole(outlives_reader=True))
    return run_to_exit(_exit_status(run), run.report_stop)


def _note_shard(settings: RunSettings, folders: RunFolders, state: ShardState) -> None:
    """Write which shards the folder holds, none after a run over all answers.

    Some tasks end no shard.
    """
    path = folders.agent_results / SHARDS_NAME
    if settings.shard is not None:
        shard = str(settings.shard)
        states = shard_states(folders.agent_results)
        noted: ShardState = "ended" if states.get(shard) == "ended" else "started"
        write_file(
            path,
            shards_text(states | {shard: noted if settings.task_ids else state}),
        )
    elif not settings.task_ids:
        path.unlink(missing_ok=True)


async def _exit_status(run: _Run) -> int:
    outcomes = await _run_session_and_report(run)
    is_complete = all(outcome.has_result for outcome in outcomes) and not run.progress.problems
    return 0 if is_complete else 1


async def _run_session_and_report(run: _Run) -> list[AnswerOutcome]:
    settings, folders = run.settings, run.folders
    root = folders.eval_results_root
    roots = (root, run.checked.paths.eval_results_root)
    judgments = folders.agent_results / STORE_NAME
    others = run.evaluation.other_stores
    if others is None:
        others = stores_of_others(root, folders.agent_name)
    async with listeners_opened(run.print) as listeners:
        parts = OwnParts(
            budget=run.evaluation.budget or budget_of(settings),
            other_stores=others,
            observer=listeners.question_asked if listeners.listeners else None,
        )
        async with open_run(settings, judgments, own=parts, check_roots=roots) as session:
            display = _display(run, session)
            outcomes = await _run_session_with_display(run, session, display, listeners)
    run.progress.problems.extend(session.problems)
    _note_shard(settings, folders, "ended")
    # Metrics and tables are loaded when the first answers are long judged.
    report_run = load_function("mind2web2.cli.evaluate_report:report_run")
    await report_run(
        run.console,
        EndedRun(
            run.evaluation,
            folders,
            outcomes,
            session.judge,
            session.parts.judge_check,
            run.progress.problems,
            display.elapsed_s,
        ),
    )
    return outcomes


def _display(run: _Run, session: Session) -> RunDisplay:
    return RunDisplay(
        run.console, run.progress, session.judge.usage, is_quiet=run.evaluation.is_quiet
    )


async def _run_session_with_display(
    run: _Run,
    session: Session,
    display: RunDisplay,
    listeners: Listeners,
) -> list[AnswerOutcome]:
    """Evaluate the work, show its progress, and keep the judge's use."""
    judge = session.judge
    judge_check = session.parts.judge_check
    run.usages.append(judge.usage)
    # If the process ends before the loop comes to the end of this function.
    run.on_stop.append(partial(_keep_usage, run, judge))
    try:
        with _logging(run.console, run.folders):
            await _print_beforehand(run)
            if judge_check is not None and (failed := judge_check.failure):
                run.print(f"Warning: {failed}")
            async with (
                _runner(run, session) as (runner, concurrency),
                display,
            ):
                return await evaluate_work(
                    run.work,
                    run.folders,
                    listeners.following(runner),
                    concurrency,
                    run.progress,
                    dump_cache=run.settings.dump_cache,
                )
    finally:
        run.on_stop.clear()
        await asyncio.to_thread(_keep_usage, run, judge)


def _keep_usage(run: _Run, judge: CachingJudge) -> None:
    try:
        write_usage(run.folders.agent_results, judge, run.settings.shard)
    except ResultWriteError as error:
        run.progress.problems.append(str(error))


async def _print_beforehand(run: _Run) -> None:
    """Print what this shard judges, and how many pages are not cached."""
    settings, folders = run.settings, run.folders
    if settings.shard is not None:
        here = sum(len(task.answers) for task in run.work)
        run.print(
            f"Shard {settings.shard}: {counted(here, 'answer')}. Other machines judge the rest."
        )
    counts = [await asyncio.to_thread(uncached_pages, folders, task) for task in run.work]
    if total := sum(counts):
        run.print(uncached_text(total, settings))


@contextmanager
def _logging(console: PlainConsole, folders: RunFolders) -> Iterator[None]:
    """Send the package's log to ``run.log`` and its errors to the console during a run."""
    with ResultWriteError.unable_to(f"write to {folders.agent_results}"):
        folders.agent_results.mkdir(parents=True, exist_ok=True)
        to_file = LogFile(folders.agent_results / "run.log")
    to_file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    to_console = ConsoleHandler(console)
    package = logging.getLogger("mind2web2")
    level = package.level
    package.setLevel(logging.INFO)
    for handler in (to_file, to_console):
        package.addHandler(handler)
    try:
        yield
    finally:
        package.setLevel(level)
        for handler in (to_file, to_console):
            package.removeHandler(handler)
            handler.close()


@dataclass(frozen=True)
class Listeners:
    """All listeners of a run."""

    listeners: Sequence[Listener]

    def question_asked(self, asked: AskedQuestion) -> None:
        """Tell each listener."""
        for listener in self.listeners:
            listener.question_asked(asked)

    def following(self, runner: AnswerRunner) -> AnswerRunner:
        """Return a runner whose answers the listeners follow."""
        return _Followed(runner, self.listeners) if self.listeners else runner


@dataclass(frozen=True)
class _Followed:
    runner: AnswerRunner
    listeners: Sequence[Listener]

    async def evaluate(self, job: AnswerJob) -> AnswerOutcome | None:
        for listener in self.listeners:
            listener.answer_begins(job)
        outcome = None
        try:
            outcome = await self.runner.evaluate(job)
        finally:
            for listener in self.listeners:
                listener.answer_ends(job, outcome)
        return outcome


@asynccontextmanager
async def listeners_opened(
    print_line: Callable[[str], None],
) -> AsyncIterator[Listeners]:
    """Open the listeners of all plugins; a run goes on without one that cannot be opened."""
    async with AsyncExitStack() as stack:
        opened = []
        for name, opener in load_parts("listeners").items():
            try:
                listener = await stack.enter_async_context(opener(print_line))
            except UsageError as error:
                print_line(f"Warning: no {name}: {error}")
                continue
            if listener is not None:
                opened.append(listener)
        yield Listeners(opened)
