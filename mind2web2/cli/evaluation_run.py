"""An evaluation as a command carries it out: judge and store opened, progress shown, table printed."""

from __future__ import annotations

import argparse
import asyncio
import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from mind2web2.answer_evaluation import AnswerOutcome, RunParts
from mind2web2.api_tools.download import downloads_from
from mind2web2.batch_client import BatchClient
from mind2web2.batch_jobs import BatchJobs
from mind2web2.capture.settings import CaptureSettings, NetworkSettings
from mind2web2.cli.batch_run import BatchDisplay, open_batches
from mind2web2.cli.console_log import ConsoleHandler
from mind2web2.cli.display import RunDisplay
from mind2web2.cli.options import caching_command
from mind2web2.cli.run_loop import RunLoop, end_process
from mind2web2.cli.tables import plain_console, print_run
from mind2web2.cli.usage_report import write_usage
from mind2web2.errors import ResultWriteError, UsageError
from mind2web2.eval_runner import (
    DEFAULT_JUDGE_MODEL,
    DualSemaphore,
    Pace,
    RunFolders,
    RunProgress,
    evaluate_work,
    generate_result_summary,
    merge_all_results,
    uncached_pages,
)
from mind2web2.judgments import FILE_NAME, JudgmentStore, open_for_replay
from mind2web2.llm_client import LLMClient
from mind2web2.llm_client.prices import BATCH_PRICE_SHARE
from mind2web2.loop_guard import LoopGuard
from mind2web2.pace import MOST_UNDER_WAY
from mind2web2.pace import Pace as Order
from mind2web2.page_library import PageLibrary
from mind2web2.recorded_judge import JudgeSettings, RecordedJudge
from mind2web2.selection import TaskWork
from mind2web2.shared_captures import SharedCaptures
from mind2web2.spending import Budget
from mind2web2.utils.garbage import loaded_for_good
from mind2web2.utils.path_config import PathConfig

REPLAY = "replay"
_INTERRUPTED = 130
# Tasks and answers that go on at once in batch mode: most of the time they wait for a job.
_ALL = 1_000_000
# A script that lets nobody else run for so long never will; half of a shorter --answer_timeout leaves
# the other answers time.
_LONGEST_BLOCK_S = 60.0


@dataclass(frozen=True)
class _Run:
    options: argparse.Namespace
    folders: RunFolders
    work: Sequence[TaskWork]
    console: Console
    progress: RunProgress
    budget: Budget | None


def run_evaluation(
    options: argparse.Namespace, agent_name: str, paths: PathConfig, work: Sequence[TaskWork]
) -> int:
    """Evaluate the work and return the exit status."""
    folders = RunFolders(agent_name, paths.cache_root, paths.eval_results_root)
    run = _Run(options, folders, work, plain_console(), RunProgress(), _budget(options))
    loop = RunLoop()
    with _opened_store(options, folders) as store:
        settings = _judge_settings(options, store)
        try:
            outcomes = loop.run(_evaluate(run, settings, store))
            complete = all(outcome.result is not None for outcome in outcomes) and not run.progress.problems
            exit_status = 0 if complete else 1
        except KeyboardInterrupt:
            done = sum(outcome.result is not None for outcome in run.progress.outcomes)
            without = " without --overwrite" if options.overwrite else ""
            run.console.print(
                f"Stopped. {done} of {run.progress.answers_total} answers have results, and every judgment "
                f"so far is kept: the same command{without} goes on from here."
            )
            exit_status = _INTERRUPTED
    if loop.has_leftovers:
        end_process(exit_status)
    return exit_status


async def _evaluate(run: _Run, settings: JudgeSettings, store: JudgmentStore) -> list[AnswerOutcome]:
    options = run.options
    batches = open_batches(options, run.folders, settings.model)
    client = _client(options, batches)
    judge = RecordedJudge(settings, client, store, overwrite=options.overwrite, budget=run.budget)
    captures = _captures(options)
    parts = RunParts(
        judge=judge,
        library=PageLibrary(options.page_memory),
        captures=captures,
        limits=DualSemaphore(
            asyncio.Semaphore(options.max_webpage_retrieval),
            asyncio.Semaphore(options.max_llm_requests) if batches is None else nullcontext(),
        ),
        # A replay is there to reproduce scores, not to repeat them.
        reuse=not options.overwrite and client is not None,
        answer_timeout_s=options.answer_timeout,
        log_to_console=options.self_debug,
        clock=time.monotonic if batches is None else batches.worked_s,
        pace=_order(options),
    )
    at_once = Pace() if batches is None else Pace(_ALL, _ALL)
    pace = Pace(
        options.max_concurrent_tasks or at_once.max_tasks,
        options.max_concurrent_answers or at_once.max_answers,
    )
    try:
        with _logging(run.console, run.folders):
            await _tell_uncached(run, captures)
            guard = LoopGuard(min(options.answer_timeout / 2, _LONGEST_BLOCK_S))
            if batches is None:
                display = RunDisplay(run.console, run.progress, judge.totals)
            else:
                display = BatchDisplay(run.console, run.progress, judge.totals, batches.progress)
            with downloads_from(_network(options)), loaded_for_good():
                async with batches or nullcontext(), captures or nullcontext(), guard, display:
                    outcomes = await evaluate_work(
                        run.work, run.folders, parts, pace, run.progress, dump_cache=options.dump_cache
                    )
    finally:
        _keep_usage(run, judge)
        if client is not None:
            await client.close()
    root = run.folders.eval_results_root
    summary = await asyncio.to_thread(generate_result_summary, root, run.folders.agent_name)
    await asyncio.to_thread(merge_all_results, root)
    recapture = caching_command(run.folders.agent_name, options, "--only", "suspect")
    problems = run.progress.problems
    print_run(run.console, run.work, outcomes, summary, judge, run.folders, problems, recapture)
    return outcomes


def _client(options: argparse.Namespace, batches: BatchJobs | None) -> BatchClient | LLMClient | None:
    if batches is not None:
        return BatchClient(batches)
    if options.llm_provider == REPLAY:
        return None
    return LLMClient(options.llm_provider, is_async=True, base_url=options.judge_base_url)


def _budget(options: argparse.Namespace) -> Budget | None:
    if options.max_cost is None or options.llm_provider == REPLAY:
        return None
    return Budget(
        options.max_cost,
        options.judge_model or DEFAULT_JUDGE_MODEL,
        BATCH_PRICE_SHARE if options.batch else 1.0,
    )


def _keep_usage(run: _Run, judge: RecordedJudge) -> None:
    try:
        write_usage(run.folders.agent_results, judge)
    except ResultWriteError as error:
        run.progress.problems.append(str(error))


def _order(options: argparse.Namespace) -> Order:
    # A replay has nothing to wait for.
    speculate = options.speculate and options.llm_provider != REPLAY
    # What waits for a batch job waits for up to a day: another round is the worst that can happen.
    return Order(options.sequential, speculate, _ALL if options.batch else MOST_UNDER_WAY)


def _captures(options: argparse.Namespace) -> SharedCaptures | None:
    # A replay depends on nothing but what is stored.
    if options.no_capture or options.llm_provider == REPLAY:
        return None
    settings = CaptureSettings(
        headless=not options.headed,
        cdp_url=options.cdp_url,
        network=_network(options),
    )
    return SharedCaptures.of_run(settings, options.max_webpage_retrieval)


def _network(options: argparse.Namespace) -> NetworkSettings:
    return NetworkSettings(allow_private_network=options.allow_private_network)


async def _tell_uncached(run: _Run, captures: SharedCaptures | None) -> None:
    counts = [await asyncio.to_thread(uncached_pages, run.folders, task.task_id) for task in run.work]
    if total := sum(counts):
        then = "captured when a claim needs them" if captures else f"claims on them fail ({_no_capture(run)})"
        run.console.print(f"Cited pages that are not cached yet: {total}; {then}.", soft_wrap=True)


def _no_capture(run: _Run) -> str:
    return "--no_capture" if run.options.no_capture else "a replay captures nothing"


@contextmanager
def _opened_store(options: argparse.Namespace, folders: RunFolders) -> Iterator[JudgmentStore]:
    own = folders.agent_results / FILE_NAME
    if options.llm_provider == REPLAY:
        store = open_for_replay(own if options.judgments is None else Path(options.judgments))
    else:
        store = JudgmentStore(own)
    with store:
        yield store


def _judge_settings(options: argparse.Namespace, store: JudgmentStore) -> JudgeSettings:
    if options.llm_provider != REPLAY:
        return JudgeSettings(
            options.llm_provider,
            options.judge_model or DEFAULT_JUDGE_MODEL,
            options.judge_temperature,
            options.judge_reasoning_effort,
            batch=options.batch,
        )
    asked = {
        "model": options.judge_model,
        "temperature": options.judge_temperature,
        "reasoning_effort": options.judge_reasoning_effort,
    }
    wanted = {name: value for name, value in asked.items() if value is not None}
    server = options.judge_base_url or ""
    stored = [judge for judge in store.identities() if server in judge.endpoint]
    fitting = [
        judge for judge in stored if all(getattr(judge, name) == value for name, value in wanted.items())
    ]
    if len(fitting) > 1 and wanted:
        # What is not named is then not set.
        exact = [judge for judge in fitting if all(getattr(judge, name) == asked[name] for name in asked)]
        fitting = exact or fitting
    if len(fitting) != 1:
        known = "; ".join(" ".join(judge.in_words()) for judge in stored) or "none"
        which = "several fit" if fitting else "none fits"
        raise UsageError(
            f"replay needs one judge, {which}; the store has: {known}. Choose with --judge_model, "
            "--judge_reasoning_effort, --judge_temperature and --judge_base_url (part of the server's name)"
        )
    judge = fitting[0]
    return JudgeSettings(REPLAY, judge.model, judge.temperature, judge.reasoning_effort, judge.endpoint)


@contextmanager
def _logging(console: Console, folders: RunFolders) -> Iterator[None]:
    """Send the package's own log to ``run.log`` and its errors to the console, for the time of a run."""
    try:
        folders.agent_results.mkdir(parents=True, exist_ok=True)
        to_file = logging.FileHandler(folders.agent_results / "run.log", encoding="utf-8")
    except OSError as error:
        raise ResultWriteError(f"cannot write to {folders.agent_results}: {error.strerror}") from error
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
