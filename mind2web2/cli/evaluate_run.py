"""An evaluation: open judge and store, run the scripts, show progress, print the report."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from mind2web2.capture.models import CaptureSettings, downloads_from
from mind2web2.cli.console import ConsoleHandler, RunDisplay, counted, line, plain_console
from mind2web2.cli.evaluate_report import RunReport, judge_settings, print_run, print_unreported
from mind2web2.cli.event_loop import run_to_exit
from mind2web2.cli.options import BATCHES, RAY, REPLAY, network_of, paths_of, storage_state_of
from mind2web2.cli.settings import (
    caching_command,
    checked_under,
    judge_client,
    judge_server,
    suggested_check,
    suggested_command,
    suggested_forgetting,
)
from mind2web2.errors import JudgmentStoreError, ResultWriteError, StorageError, UsageError
from mind2web2.judge.admission import Admission
from mind2web2.judge.budget import BATCH_CAUTION, Budget
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.settings import JudgeSettings, keyed_part
from mind2web2.judge.store import FILE_NAME, CheckRecord, JudgmentStore, last_check
from mind2web2.judge.usage import RunUsage
from mind2web2.judge_check.fitness import failure
from mind2web2.llm_client.prices import BATCH_PRICE_SHARE, own_prices
from mind2web2.llm_client.settings import DEFAULT_JUDGE_MODEL, endpoint_of
from mind2web2.pages.captures import SharedCaptures
from mind2web2.pages.citations import default_barred
from mind2web2.pages.library import PageLibrary
from mind2web2.pages.run_browser import run_browser
from mind2web2.runs.answer import DEFAULT_JUDGE_LIMIT, AnswerOutcome, RunParts
from mind2web2.runs.answers import RunFolders, TaskWork
from mind2web2.runs.freshness import changed_scripts
from mind2web2.runs.results import PROGRESS_NAME, published, write_file, write_usage
from mind2web2.runs.run import (
    AnswerRunner,
    Concurrency,
    DualSemaphore,
    ProgressFile,
    RunProgress,
    evaluate_work,
    generate_result_summary,
    merge_all_results,
    uncached_pages,
)
from mind2web2.runs.shards import SHARDS_NAME, ShardState, shard_states, shards_text
from mind2web2.scheduling import MOST_PENDING, ExecutionOptions
from mind2web2.scripts.run import LONGEST_BLOCK_S, LoopGuard
from mind2web2.storage.mirror import mirror
from mind2web2.utils.garbage_collection import gc_frozen, gc_paused
from mind2web2.utils.logging_setup import LogFile
from mind2web2.utils.mounts import network_file_system
from mind2web2.utils.path_config import PathConfig

if TYPE_CHECKING:
    from mind2web2.cluster.node import BudgetTerms, NodeParts
    from mind2web2.judge.batch_jobs import BatchJobs
    from mind2web2.scripts.isolation.run import Isolation

# Stands for no limit.
_ALL = 1_000_000
# Answers at once, at least and at most; a quarter of the machine's memory is for them.
_LEAST_ANSWERS, _MOST_ANSWERS, _ANSWER_BYTES = 9, 64, 64 * 1024**2
_MOST_IN_MEMORY = 1000
# Beginnings of variables with keys and addresses of judges, maps, storage and PostgreSQL.
_SERVICES = ("OPENAI_", "AZURE_", "ANTHROPIC_", "GEMINI_", "AWS_", "GOOGLE_", "PG", "MIND2WEB2_")


@dataclass(frozen=True)
class _Run:
    options: argparse.Namespace
    folders: RunFolders
    work: Sequence[TaskWork]
    console: Console
    budget: Budget | None
    progress: RunProgress = field(default_factory=RunProgress)
    # Once they exist: the judge's use, and the actions that keep it when the run is stopped.
    usages: list[RunUsage] = field(default_factory=list)
    on_stop: list[Callable[[], None]] = field(default_factory=list)

    def print(self, text: str) -> None:
        """Print a line."""
        line(self.console, text)

    def report_stop(self) -> None:
        """Print how far the run has come, and write state that is only in memory."""
        done = sum(outcome.result is not None for outcome in self.progress.outcomes)
        total = sum(len(task.answers) for task in self.work)
        then = "so far is kept: the same command continues from here."
        if self.options.overwrite:
            then = "so far is kept. The same command asks again; without --overwrite, earlier results stand."
        self.print(f"Stopped. {done} of {total} answers have results, and every judgment {then}")
        for usage in self.usages:
            print_unreported(self.console, usage)
        for action in self.on_stop:
            action()


def run_evaluation(
    options: argparse.Namespace,
    agent_name: str,
    paths: PathConfig,
    work: Sequence[TaskWork],
    budget: Budget | None = None,
) -> int:
    """Evaluate the work and return the exit status.

    Args:
        budget: in place of one of ``--max_cost``.
    """
    folders = RunFolders(agent_name, paths.cache_root, paths.eval_results_root)
    if options.shard is not None:
        _note_shard(options, folders, "started" if work else "ended")
        if not work:
            line(plain_console(), f"Shard {options.shard} has no answers: there is nothing to judge.")
            return 0
    run = _Run(options, folders, work, plain_console(outlives_reader=True), budget or budget_of(options))
    return run_to_exit(_stored_evaluation(run), run.report_stop)


def _note_shard(options: argparse.Namespace, folders: RunFolders, state: ShardState) -> None:
    """Write which shards the folder holds, none after a run over all answers; some tasks end no shard."""
    path = folders.agent_results / SHARDS_NAME
    if options.shard is not None:
        shard = str(options.shard)

        def write() -> None:
            states = shard_states(folders.agent_results)
            noted: ShardState = "ended" if states.get(shard) == "ended" else "started"
            write_file(path, shards_text(states | {shard: noted if options.task_ids else state}))

        published(path, write)
    elif not options.task_ids:
        mirror(path).remove(path)


async def _stored_evaluation(run: _Run) -> int:
    # First: a cluster that does not answer leaves no folder behind.
    async with _ray(run.options) as ray:
        with _opened_store(run.options, run.folders) as store:
            settings = _judge_settings(run.options, run.folders, store)
            outcomes = await _evaluate(run, settings, store, ray)
    is_complete = all(outcome.result is not None for outcome in outcomes) and not run.progress.problems
    return 0 if is_complete else 1


def _ray(options: argparse.Namespace) -> AbstractAsyncContextManager[Any]:
    """Return the connection to the run's Ray cluster, of a run on this machine nothing."""
    if options.engine != RAY:
        return nullcontext()
    from mind2web2.cluster.engine import ray_connected

    return ray_connected(options.ray_address)


async def _evaluate(
    run: _Run, settings: JudgeSettings, store: JudgmentStore, ray: Any
) -> list[AnswerOutcome]:
    options, console = run.options, run.console
    batches = _open_batches(run, settings.model, store)
    with gc_paused():
        client = judge_client(options, batches)
        judge = CachingJudge(settings, client, store, overwrite=options.overwrite, budget=run.budget)
    captures = _captures(options, judge)
    checked = checked_under(options)
    roots = (run.folders.eval_results_root, paths_of(checked).eval_results_root)
    checks = (last_check(root, judge.identity) for root in roots)
    judge_check = next((check for check in checks if check is not None), None)
    parts = _parts(options, judge, captures, batches, judge_check)
    run.usages.append(judge.usage)
    # If the process ends before the loop comes to the end of this function.
    run.on_stop.append(partial(_keep_usage, run, judge))
    file = ProgressFile(run.folders.agent_results / PROGRESS_NAME)
    jobs = () if batches is None else batches.progress
    display = RunDisplay(console, run.progress, judge.usage, file, jobs)
    try:
        with _logging(console, run.folders):
            await _print_beforehand(run, store, captures)
            if judge_check is not None and (failed := failure(judge_check)):
                run.print(f"Warning: {failed}")
            here = _this_machine(options, parts, batches) if options.engine != RAY else None
            async with (
                here or _cluster(run, ray, judge, judge_check, store) as (runner, concurrency),
                display,
            ):
                outcomes = await evaluate_work(
                    run.work, run.folders, runner, concurrency, run.progress, dump_cache=options.dump_cache
                )
    finally:
        run.on_stop.clear()
        await asyncio.to_thread(_keep_usage, run, judge)
        try:
            await judge.write_rest()
        except JudgmentStoreError as error:
            run.progress.problems.append(str(error))
        if client is not None:
            await client.close()
    if options.self_debug:
        _print_reused(run, outcomes)
    _note_shard(options, run.folders, "ended")
    summary = await asyncio.to_thread(_summed_up, run)
    agent_name = run.folders.agent_name
    report = RunReport(
        work=run.work,
        outcomes=outcomes,
        summary=summary,
        judge=judge,
        folders=run.folders,
        problems=[*run.progress.problems, *_forgettable(run, summary)],
        elapsed_s=display.elapsed_s,
        recapture=caching_command(agent_name, options, "--only", "suspect"),
        show=suggested_command(options, "show", agent_name, "TASK", "ANSWER"),
    )
    if judge_check is None and judge.usage.total().asked.judgments:
        run.print(f"How often is this judge right? {suggested_check(checked)}")
    elif judge_check is not None and (failed := failure(judge_check)):
        report = replace(report, problems=[failed, *report.problems])
    print_run(console, report)
    return outcomes


@asynccontextmanager
async def _this_machine(
    options: argparse.Namespace, parts: RunParts, batches: BatchJobs | None
) -> AsyncIterator[tuple[AnswerRunner, Concurrency]]:
    """Open what evaluates answers in this process."""
    # An isolated script is guarded in its own process.
    guard = nullcontext() if options.isolate else LoopGuard(_longest_block_s(options))
    with downloads_from(network_of(options)), gc_frozen():
        async with batches or nullcontext(), parts.captures or nullcontext(), guard:
            yield parts, _concurrency(options, parts.limits.llm)


@asynccontextmanager
async def _cluster(
    run: _Run, ray: Any, judge: CachingJudge, judge_check: CheckRecord | None, store: JudgmentStore
) -> AsyncIterator[tuple[AnswerRunner, Concurrency]]:
    """Open a Ray cluster, whose nodes evaluate the answers."""
    from mind2web2.cluster.engine import RayEngine
    from mind2web2.cluster.node import BudgetTerms, NodeSetup
    from mind2web2.judge.shared_store import SharedJudgmentStore

    options = run.options
    assert isinstance(store, SharedJudgmentStore), "check_options refuses another one"
    terms = None
    if judge.budget is not None:
        terms = BudgetTerms(uuid.uuid4().hex, judge.budget.max_usd, judge.settings.model)
    setup = NodeSetup(
        open_parts=partial(node_parts, _for_other_machines(options), judge_check, terms),
        agent_name=run.folders.agent_name,
        roots=paths_of(options).roots,
        variables=_variables(options),
        prices=own_prices(),
    )
    answers = sum(len(task.answers) for task in run.work)
    engine = RayEngine(ray, setup, answers, judge.usage, store, judge.endpoint, judge.budget)
    async with engine.opened():
        at_once = options.max_concurrent_tasks or _ALL, options.max_concurrent_answers or _ALL
        yield engine, Concurrency(*at_once, engine)


def _for_other_machines(options: argparse.Namespace) -> argparse.Namespace:
    """Return the options with folders and files that mean the same in any working directory."""
    names = ("answer_folder", "eval_scripts_root", "eval_results_root", "cache_root")
    given = vars(options) | {
        name: getattr(options, name) or root
        for name, root in zip(names, paths_of(options).roots, strict=True)
    }
    absolute = {name: value.absolute() for name, value in given.items() if isinstance(value, Path)}
    return argparse.Namespace(**given | absolute)


def _variables(options: argparse.Namespace) -> dict[str, str]:
    """Return the variables that judge, storage and scripts need on other machines too."""
    server = judge_server(options)
    keys = () if isinstance(server, str | None) else (listed.key_name for listed in server.servers)
    named = {*options.script_env, *keys}
    return {name: text for name, text in os.environ.items() if name in named or name.startswith(_SERVICES)}


@asynccontextmanager
async def node_parts(
    options: argparse.Namespace, judge_check: CheckRecord | None, terms: BudgetTerms | None
) -> AsyncIterator[NodeParts]:
    """Open the parts of a run on a node of a cluster."""
    from mind2web2.cluster.node import ClusterCaptures, LeasedBudget, NodeParts, NodeStore
    from mind2web2.llm_client import LLMClient

    with gc_paused():
        client = judge_client(options)
    assert isinstance(client, LLMClient), "check_options refuses replays and batches"
    with NodeStore(options.judgments) as store, gc_frozen():
        budget = None if terms is None else LeasedBudget(terms, store.database)
        settings = judge_settings(options)
        judge = CachingJudge(settings, client, store, overwrite=options.overwrite, budget=budget)
        roots, network = paths_of(options).roots, network_of(options)
        captures = _captures(options, judge, ClusterCaptures)
        if isinstance(captures, ClusterCaptures):
            captures.cache_root = roots[-1]
        parts = _parts(options, judge, captures, None, judge_check)
        try:
            async with parts.captures or nullcontext():
                admission = _concurrency(options, parts.limits.llm).admission
                yield NodeParts(parts, client, store, roots, admission or nullcontext(), network)
        finally:
            await judge.write_rest()
            await client.close()


def _parts(
    options: argparse.Namespace,
    judge: CachingJudge,
    captures: SharedCaptures | None,
    batches: BatchJobs | None,
    judge_check: CheckRecord | None,
) -> RunParts:
    requests = asyncio.Semaphore(options.max_llm_requests or DEFAULT_JUDGE_LIMIT)
    return RunParts(
        judge=judge,
        library=PageLibrary(options.page_memory),
        captures=captures,
        limits=DualSemaphore(
            asyncio.Semaphore(options.max_webpage_retrieval), requests if batches is None else nullcontext()
        ),
        # A replay reproduces scores from the judgments, not from the results.
        reuse=not options.overwrite and not judge.is_replay,
        answer_timeout_s=options.answer_timeout,
        with_private_network=options.allow_private_network,
        log_to_console=options.self_debug,
        clock=time.monotonic if batches is None else batches.worked_s,
        # A question waits up to a day for its batch, so that as many as possible are asked at once.
        execution=ExecutionOptions(options.sequential, _ALL if options.batch else MOST_PENDING),
        isolation=_isolation(options),
        as_of=options.as_of,
        barred=None if options.no_barred else options.barred or default_barred(),
        judge_check=judge_check,
        strict=options.strict,
    )


def _print_reused(run: _Run, outcomes: Sequence[AnswerOutcome]) -> None:
    """Print the stored values of reused results, as their scripts did not run and logged nothing."""
    from mind2web2.cli.results.show import stored_values

    for outcome in outcomes:
        if outcome.reused and outcome.result is not None:
            name = f"{outcome.task_id}/{outcome.answer_name}"
            run.print(f"{name}: reused, the script did not run; stored values:")
            for text in stored_values(outcome.result):
                run.print(f"  {text}")


def _forgettable(run: _Run, summary: Mapping[str, Any] | None) -> list[str]:
    if summary is None:
        return []
    answers = paths_of(run.options).answers_root / run.folders.agent_name
    known = dict.fromkeys([*summary["tasks"], *(missing["task_id"] for missing in summary["missing"])])
    removed = [task_id for task_id in known if not (answers / task_id).is_dir()]
    return [suggested_forgetting(run.options, run.folders.agent_name, removed)] if removed else []


def _open_batches(run: _Run, model: str, store: JudgmentStore) -> BatchJobs | None:
    """Return the run's batch jobs, to be entered while the judge is asked; ``None`` without ``--batch``."""
    options = run.options
    if not options.batch:
        return None
    from mind2web2.judge.batch_endpoints import BatchPace, batch_endpoints
    from mind2web2.judge.batch_jobs import BatchJobs
    from mind2web2.judge.batch_state import BatchFolder

    endpoints = batch_endpoints(options.llm_provider, *options.judge_base_url or ())

    async def is_stored(key: str) -> bool:
        return await store.get(key, endpoints.service.endpoint) is not None

    usual = BatchPace()
    first_poll_s = options.batch_poll or usual.first_poll_s
    pace = replace(usual, first_poll_s=first_poll_s, longest_poll_s=max(usual.longest_poll_s, first_poll_s))
    folder = BatchFolder(run.folders.agent_results / BATCHES)
    return BatchJobs(endpoints, folder, model, pace, overwrite=options.overwrite, is_stored=is_stored)


def _concurrency(options: argparse.Namespace, requests: Any) -> Concurrency:
    """Return how many answers run at once: as many as keep the judge requests busy, within the options."""
    tasks, answers = options.max_concurrent_tasks, options.max_concurrent_answers
    bounds = tasks or _ALL, answers or _ALL
    # In a batch most answers wait for the provider.
    if options.batch or (tasks and answers and options.engine != RAY):
        return Concurrency(*bounds)
    least = max(_LEAST_ANSWERS, tasks or 0, answers or 0)
    # A replay waits for no judge, and a budget must not be spread over answers that it leaves unfinished.
    is_fixed = options.llm_provider == REPLAY or options.max_cost is not None
    return Concurrency(*bounds, Admission(requests, least, least if is_fixed else _most_answers()))


def _most_answers() -> int:
    if not hasattr(os, "sysconf"):
        return _LEAST_ANSWERS
    memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(_MOST_ANSWERS, memory_bytes // 4 // _ANSWER_BYTES)


def budget_of(options: argparse.Namespace) -> Budget | None:
    """Return the budget of ``--max_cost``, ``None`` without it."""
    if options.max_cost is None or options.llm_provider == REPLAY:
        return None
    in_batch = (BATCH_PRICE_SHARE, BATCH_CAUTION) if options.batch else ()
    return Budget(options.max_cost, options.judge_model or DEFAULT_JUDGE_MODEL, *in_batch)


def _keep_usage(run: _Run, judge: CachingJudge) -> None:
    try:
        shard = run.options.shard
        write_usage(run.folders.agent_results, judge, None if shard is None else str(shard))
    except ResultWriteError as error:
        run.progress.problems.append(str(error))


def _summed_up(run: _Run) -> dict[str, Any] | None:
    root = run.folders.eval_results_root
    try:
        summary = generate_result_summary(root, run.folders.agent_name)
        merge_all_results(root)
    except (ResultWriteError, StorageError) as error:
        # The table of scores is shown all the same.
        run.progress.problems.append(str(error))
        return None
    return summary


def _isolation(options: argparse.Namespace) -> Isolation | None:
    if not options.isolate:
        return None
    from mind2web2.scripts.isolation.processes import DEFAULT_MEMORY_BYTES, ScriptLimits
    from mind2web2.scripts.isolation.run import Isolation

    limits = ScriptLimits(
        memory_bytes=options.script_memory or DEFAULT_MEMORY_BYTES, block_s=_longest_block_s(options)
    )
    variables = {name: os.environ[name] for name in options.script_env}
    return Isolation(limits, network_of(options), variables=variables)


def _longest_block_s(options: argparse.Namespace) -> float:
    # Half of a shorter --answer_timeout leaves the other answers time.
    return float(min(options.answer_timeout / 2, LONGEST_BLOCK_S))


def _captures(
    options: argparse.Namespace, judge: CachingJudge, kind: type[SharedCaptures] = SharedCaptures
) -> SharedCaptures | None:
    # A replay depends only on stored judgments and pages.
    if options.no_capture or options.llm_provider == REPLAY:
        return None
    settings = CaptureSettings(
        headless=not options.headed,
        cdp_url=options.cdp_url,
        storage_state=storage_state_of(options),
        network=network_of(options),
    )
    return kind(run_browser(settings, options.max_webpage_retrieval, judge.check_reachable))


async def _print_beforehand(run: _Run, store: JudgmentStore, captures: SharedCaptures | None) -> None:
    """Print which batches are open, which scripts have changed, and how many pages are not cached."""
    options, folders = run.options, run.folders
    if options.shard is not None:
        here = sum(len(task.answers) for task in run.work)
        run.print(f"Shard {options.shard}: {counted(here, 'answer')}; the others are judged elsewhere.")
    is_direct = options.llm_provider != REPLAY and not options.batch
    if (
        is_direct
        and (folders.agent_results / BATCHES).is_dir()
        and (text := await _open_batch_text(run, store))
    ):
        run.print(text)
    root = folders.eval_results_root
    if changed := await asyncio.to_thread(changed_scripts, root, folders.agent_name, run.work):
        run.print(f"Eval script changed since the last result: {', '.join(changed)}.")
    counts = [await asyncio.to_thread(uncached_pages, folders, task.task_id) for task in run.work]
    if total := sum(counts):
        cause = "--no_capture" if options.no_capture else "a replay captures nothing"
        then = "captured when a claim needs them" if captures else f"claims on them fail ({cause})"
        run.print(f"Cited pages that are not cached yet: {total}; {then}.")


async def _open_batch_text(run: _Run, store: JudgmentStore) -> str | None:
    """Return a warning where batches of this judge's server are open, which this run does not fetch."""
    from mind2web2.judge.batch_state import BatchFolder

    endpoint = endpoint_of(run.options.llm_provider, judge_server(run.options))
    try:
        records = await asyncio.to_thread(BatchFolder(run.folders.agent_results / BATCHES).records)
    except UsageError as error:
        return f"Batches of an earlier run may be open: {error}."
    keys = [key for record in records if record.endpoint == endpoint for key in record.questions]
    missing = [key for key in keys if await store.get(key, endpoint) is None]
    if not missing:
        return None
    without = " and without --overwrite" if run.options.overwrite else ""
    return (
        f"Warning: an earlier run with --batch left {len(missing)} requests in batches that are open and "
        "paid for. This run asks those that it needs again, and pays for them again; the same command "
        f"with --batch{without} fetches their results."
    )


@contextmanager
def _opened_store(options: argparse.Namespace, folders: RunFolders) -> Iterator[JudgmentStore]:
    if options.llm_provider != REPLAY:
        own = folders.agent_results / FILE_NAME
        if options.judgments is None and mirror(own).is_remote:
            line(
                plain_console(),
                f"Judgments are kept on this machine: {own}; several machines share them by --judgments "
                "postgresql://HOST/DATABASE.",
            )
        with JudgmentStore(own) if options.judgments is None else _shared(own, options) as store:
            yield store
        return
    from mind2web2.judge.transfer import open_for_replay

    with open_for_replay(_judgments_path(options, folders)) as store:
        yield store


def _shared(own: Path, options: argparse.Namespace) -> JudgmentStore:
    from mind2web2.judge.shared_store import SharedJudgmentStore

    if options.engine == RAY and network_file_system(own.parent):
        # SQLite cannot keep judgments there; the database has them all.
        return SharedJudgmentStore(None, options.judgments, most=_MOST_IN_MEMORY)
    return SharedJudgmentStore(own, options.judgments)


def _judgments_path(options: argparse.Namespace, folders: RunFolders) -> Path:
    own = folders.agent_results / FILE_NAME
    return own if options.judgments is None else Path(options.judgments)


def _judge_settings(options: argparse.Namespace, folders: RunFolders, store: JudgmentStore) -> JudgeSettings:
    if options.llm_provider != REPLAY:
        return judge_settings(options)
    from mind2web2.judge.transfer import source_of

    asked = {
        "model": options.judge_model,
        "temperature": options.judge_temperature,
        "reasoning_effort": options.judge_reasoning_effort,
        "max_images": options.max_images,
        "extra_body": keyed_part(options.judge_extra_body),
    }
    wanted = {name: value for name, value in asked.items() if value is not None}
    server = (options.judge_base_url or [""])[0].rstrip("/")
    named = [judge for judge in store.identities() if server in judge.endpoint]
    # One server's address may be part of another's: the whole address wins.
    stored = [judge for judge in named if server and judge.endpoint.endswith(f" {server}")] or named
    fitting = [
        judge for judge in stored if all(getattr(judge, name) == value for name, value in wanted.items())
    ]
    if len(fitting) > 1 and wanted:
        # Options that are not given are then taken as not set.
        exact = [judge for judge in fitting if all(getattr(judge, name) == asked[name] for name in asked)]
        fitting = exact or fitting
    if len(fitting) != 1:
        known = "; ".join(" ".join(judge.in_words()) for judge in stored or store.identities()) or "none"
        which = "several fit" if fitting else "none fits"
        raise UsageError(
            f"replay needs one judge, {which}; the store has: {known}. Choose with --judge_model, "
            "--judge_reasoning_effort, --judge_temperature, --judge_extra_body, --max_images, "
            "--no_screenshots and --judge_base_url (part of the server's name)"
        )
    judge = fitting[0]
    return JudgeSettings(
        REPLAY,
        judge.model,
        judge.temperature,
        judge.reasoning_effort,
        judge.endpoint,
        max_images=judge.max_images,
        extra_body=judge.extra_body,
        replayed_from=source_of(_judgments_path(options, folders)),
    )


@contextmanager
def _logging(console: Console, folders: RunFolders) -> Iterator[None]:
    """Send the package's own log to ``run.log`` and its errors to the console, for the time of a run."""
    try:
        folders.agent_results.mkdir(parents=True, exist_ok=True)
        to_file = LogFile(folders.agent_results / "run.log")
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
