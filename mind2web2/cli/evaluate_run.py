"""An evaluation: open judge and store, run the scripts, show progress, print the report."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from mind2web2.capture.models import downloads_from
from mind2web2.cli.console import ConsoleHandler, RunDisplay, counted, line, plain_console
from mind2web2.cli.evaluate_report import RunReport, print_run, print_unreported
from mind2web2.cli.event_loop import run_to_exit
from mind2web2.cli.suggestions import (
    caching_command,
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
from mind2web2.llm_client.settings import endpoint_of
from mind2web2.pages.captures import SharedCaptures
from mind2web2.pages.citations import BarredList, default_barred
from mind2web2.pages.library import PageLibrary
from mind2web2.pages.run_browser import run_browser
from mind2web2.runs.answer import AnswerOutcome, RunParts
from mind2web2.runs.answers import RunFolders, TaskWork
from mind2web2.runs.capturing import capture_settings, network_of
from mind2web2.runs.freshness import changed_scripts
from mind2web2.runs.paths import paths_of
from mind2web2.runs.results import PROGRESS_NAME, published, write_file
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
from mind2web2.runs.session import BATCHES, judge_client, judge_settings
from mind2web2.runs.settings import FOLDER_NAMES, RAY, REPLAY, RunSettings
from mind2web2.runs.shards import SHARDS_NAME, ShardState, shard_states, shards_text
from mind2web2.runs.usage_file import write_usage
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
    settings: RunSettings
    checked: RunSettings
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
        if self.settings.overwrite:
            then = "so far is kept. The same command asks again; without --overwrite, earlier results stand."
        self.print(f"Stopped. {done} of {total} answers have results, and every judgment {then}")
        for usage in self.usages:
            print_unreported(self.console, usage)
        for action in self.on_stop:
            action()


def run_evaluation(
    settings: RunSettings,
    agent_name: str,
    paths: PathConfig,
    work: Sequence[TaskWork],
    *,
    budget: Budget | None = None,
    checked: RunSettings | None = None,
) -> int:
    """Evaluate the work and return the exit status.

    Args:
        budget: in place of one of ``--max_cost``.
        checked: the settings under whose results checks of judges are kept, where they are others.
    """
    folders = RunFolders(agent_name, paths.cache_root, paths.eval_results_root)
    if settings.shard is not None:
        _note_shard(settings, folders, "started" if work else "ended")
        if not work:
            line(plain_console(), f"Shard {settings.shard} has no answers: there is nothing to judge.")
            return 0
    if checked is None:
        # A shard writes to a folder of its own, where no other run looks for a check.
        checked = settings if settings.shard is None else replace(settings, eval_results_root=None)
    console = plain_console(outlives_reader=True)
    run = _Run(settings, checked, folders, work, console, budget or budget_of(settings))
    return run_to_exit(_stored_evaluation(run), run.report_stop)


def _note_shard(settings: RunSettings, folders: RunFolders, state: ShardState) -> None:
    """Write which shards the folder holds, none after a run over all answers; some tasks end no shard."""
    path = folders.agent_results / SHARDS_NAME
    if settings.shard is not None:
        shard = str(settings.shard)

        def write() -> None:
            states = shard_states(folders.agent_results)
            noted: ShardState = "ended" if states.get(shard) == "ended" else "started"
            write_file(path, shards_text(states | {shard: noted if settings.task_ids else state}))

        published(path, write)
    elif not settings.task_ids:
        mirror(path).remove(path)


async def _stored_evaluation(run: _Run) -> int:
    # First: a cluster that does not answer leaves no folder behind.
    async with _ray(run.settings) as ray:
        with _opened_store(run.settings, run.folders) as store:
            judge = _judge_settings(run.settings, run.folders, store)
            outcomes = await _evaluate(run, judge, store, ray)
    is_complete = all(outcome.result is not None for outcome in outcomes) and not run.progress.problems
    return 0 if is_complete else 1


def _ray(settings: RunSettings) -> AbstractAsyncContextManager[Any]:
    """Return the connection to the run's Ray cluster, of a run on this machine nothing."""
    if settings.engine != RAY:
        return nullcontext()
    from mind2web2.cluster.engine import ray_connected

    return ray_connected(settings.ray_address)


async def _evaluate(run: _Run, named: JudgeSettings, store: JudgmentStore, ray: Any) -> list[AnswerOutcome]:
    settings, console = run.settings, run.console
    batches = _open_batches(run, named.model, store)
    with gc_paused():
        client = judge_client(settings, batches)
        judge = CachingJudge(named, client, store, overwrite=settings.overwrite, budget=run.budget)
    captures = _captures(settings, judge)
    roots = (run.folders.eval_results_root, paths_of(run.checked).eval_results_root)
    checks = (last_check(root, judge.identity) for root in roots)
    judge_check = next((check for check in checks if check is not None), None)
    parts = _parts(settings, judge, captures, batches, judge_check)
    run.usages.append(judge.usage)
    # If the process ends before the loop comes to the end of this function.
    run.on_stop.append(partial(_keep_usage, run, judge))
    file = ProgressFile(run.folders.agent_results / PROGRESS_NAME)
    jobs = () if batches is None else batches.progress
    display = RunDisplay(console, run.progress, judge.usage, file, jobs, is_quiet=settings.quiet)
    try:
        with _logging(console, run.folders):
            await _print_beforehand(run, store, captures)
            if judge_check is not None and (failed := failure(judge_check)):
                run.print(f"Warning: {failed}")
            here = _this_machine(settings, parts, batches) if settings.engine != RAY else None
            async with (
                here or _cluster(run, ray, judge, judge_check, store) as (runner, concurrency),
                display,
            ):
                outcomes = await evaluate_work(
                    run.work, run.folders, runner, concurrency, run.progress, dump_cache=settings.dump_cache
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
    if settings.self_debug:
        _print_reused(run, outcomes)
    _note_shard(settings, run.folders, "ended")
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
        recapture=caching_command(agent_name, settings, "--only", "suspect"),
        show=suggested_command(settings, "show", agent_name, "TASK", "ANSWER"),
        is_quiet=settings.quiet,
        is_one_of_several=run.checked is not settings,
    )
    if judge_check is None and judge.usage.total().asked.judgments:
        run.print(f"How often is this judge right? {suggested_check(run.checked)}")
    elif judge_check is not None and (failed := failure(judge_check)):
        report = replace(report, problems=[failed, *report.problems])
    print_run(console, report)
    return outcomes


@asynccontextmanager
async def _this_machine(
    settings: RunSettings, parts: RunParts, batches: BatchJobs | None
) -> AsyncIterator[tuple[AnswerRunner, Concurrency]]:
    """Open what evaluates answers in this process."""
    # An isolated script is guarded in its own process.
    guard = nullcontext() if settings.isolate else LoopGuard(_longest_block_s(settings))
    with downloads_from(network_of(settings)), gc_frozen():
        async with batches or nullcontext(), parts.captures or nullcontext(), guard:
            yield parts, _concurrency(settings, parts.limits.llm)


@asynccontextmanager
async def _cluster(
    run: _Run, ray: Any, judge: CachingJudge, judge_check: CheckRecord | None, store: JudgmentStore
) -> AsyncIterator[tuple[AnswerRunner, Concurrency]]:
    """Open a Ray cluster, whose nodes evaluate the answers."""
    from mind2web2.cluster.engine import RayEngine
    from mind2web2.cluster.node import BudgetTerms, NodeSetup
    from mind2web2.judge.shared_store import SharedJudgmentStore

    settings = run.settings
    assert isinstance(store, SharedJudgmentStore), "RunSettings.check refuses another one"
    terms = None
    if judge.budget is not None:
        terms = BudgetTerms(uuid.uuid4().hex, judge.budget.max_usd, judge.settings.model)
    setup = NodeSetup(
        open_parts=partial(node_parts, _for_other_machines(settings), judge_check, terms),
        agent_name=run.folders.agent_name,
        roots=paths_of(settings).roots,
        variables=_variables(settings),
        prices=own_prices(),
    )
    answers = sum(len(task.answers) for task in run.work)
    engine = RayEngine(ray, setup, answers, judge.usage, store, judge.endpoint, judge.budget)
    async with engine.opened():
        at_once = settings.max_concurrent_tasks or _ALL, settings.max_concurrent_answers or _ALL
        yield engine, Concurrency(*at_once, engine)


def _for_other_machines(settings: RunSettings) -> RunSettings:
    """Return the settings with folders and files that mean the same in any working directory."""
    roots = dict(zip(FOLDER_NAMES, paths_of(settings).roots, strict=True))
    named = {name: getattr(settings, name) or root for name, root in roots.items()}
    given = {each.name: getattr(settings, each.name) for each in fields(settings)} | named
    absolute = {name: value.absolute() for name, value in given.items() if isinstance(value, Path)}
    return replace(settings, **named | absolute)


def _variables(settings: RunSettings) -> dict[str, str]:
    """Return the variables that judge, storage and scripts need on other machines too."""
    server = settings.judge_server()
    keys = () if isinstance(server, str | None) else (listed.key_name for listed in server.servers)
    named = {*settings.script_env, *keys}
    return {name: text for name, text in os.environ.items() if name in named or name.startswith(_SERVICES)}


@asynccontextmanager
async def node_parts(
    settings: RunSettings, judge_check: CheckRecord | None, terms: BudgetTerms | None
) -> AsyncIterator[NodeParts]:
    """Open the parts of a run on a node of a cluster."""
    from mind2web2.cluster.node import ClusterCaptures, LeasedBudget, NodeParts, NodeStore
    from mind2web2.llm_client import LLMClient

    with gc_paused():
        client = judge_client(settings)
    assert isinstance(client, LLMClient), "RunSettings.check refuses replays and batches"
    assert settings.judgments is not None, "a cluster's nodes share judgments"
    with NodeStore(settings.judgments) as store, gc_frozen():
        budget = None if terms is None else LeasedBudget(terms, store.database)
        judge = CachingJudge(
            judge_settings(settings), client, store, overwrite=settings.overwrite, budget=budget
        )
        roots, network = paths_of(settings).roots, network_of(settings)
        captures = _captures(settings, judge, ClusterCaptures)
        if isinstance(captures, ClusterCaptures):
            captures.cache_root = roots[-1]
        parts = _parts(settings, judge, captures, None, judge_check)
        try:
            async with parts.captures or nullcontext():
                admission = _concurrency(settings, parts.limits.llm).admission
                yield NodeParts(parts, client, store, roots, admission or nullcontext(), network)
        finally:
            await judge.write_rest()
            await client.close()


def _parts(
    settings: RunSettings,
    judge: CachingJudge,
    captures: SharedCaptures | None,
    batches: BatchJobs | None,
    judge_check: CheckRecord | None,
) -> RunParts:
    requests = asyncio.Semaphore(settings.max_llm_requests)
    return RunParts(
        judge=judge,
        library=PageLibrary(settings.page_memory),
        captures=captures,
        limits=DualSemaphore(
            asyncio.Semaphore(settings.max_webpage_retrieval), requests if batches is None else nullcontext()
        ),
        # A replay reproduces scores from the judgments, not from the results.
        reuse=not settings.overwrite and not judge.is_replay,
        answer_timeout_s=settings.answer_timeout,
        with_private_network=settings.allow_private_network,
        log_to_console=settings.self_debug,
        clock=time.monotonic if batches is None else batches.worked_s,
        # A question waits up to a day for its batch, so that as many as possible are asked at once.
        execution=ExecutionOptions(settings.sequential, _ALL if settings.batch else MOST_PENDING),
        isolation=_isolation(settings),
        as_of=settings.as_of,
        barred=_barred(settings),
        judge_check=judge_check,
        strict=settings.strict,
    )


def _barred(settings: RunSettings) -> BarredList | None:
    if settings.no_barred:
        return None
    return default_barred() if settings.barred is None else BarredList.read(settings.barred)


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
    answers = paths_of(run.settings).answers_root / run.folders.agent_name
    known = dict.fromkeys([*summary["tasks"], *(missing["task_id"] for missing in summary["missing"])])
    removed = [task_id for task_id in known if not (answers / task_id).is_dir()]
    return [suggested_forgetting(run.settings, run.folders.agent_name, removed)] if removed else []


def _open_batches(run: _Run, model: str, store: JudgmentStore) -> BatchJobs | None:
    """Return the run's batch jobs, to be entered while the judge is asked; ``None`` without ``--batch``."""
    settings = run.settings
    if not settings.batch:
        return None
    from mind2web2.judge.batch_endpoints import BatchPace, batch_endpoints
    from mind2web2.judge.batch_jobs import BatchJobs
    from mind2web2.judge.batch_state import BatchFolder

    endpoints = batch_endpoints(settings.llm_provider, *settings.judge_base_url)

    async def is_stored(key: str) -> bool:
        return await store.get(key, endpoints.service.endpoint) is not None

    usual = BatchPace()
    first_poll_s = settings.batch_poll or usual.first_poll_s
    pace = replace(usual, first_poll_s=first_poll_s, longest_poll_s=max(usual.longest_poll_s, first_poll_s))
    folder = BatchFolder(run.folders.agent_results / BATCHES)
    return BatchJobs(endpoints, folder, model, pace, overwrite=settings.overwrite, is_stored=is_stored)


def _concurrency(settings: RunSettings, requests: Any) -> Concurrency:
    """Return how many answers run at once: as many as keep the judge requests busy, within the settings."""
    tasks, answers = settings.max_concurrent_tasks, settings.max_concurrent_answers
    bounds = tasks or _ALL, answers or _ALL
    # In a batch most answers wait for the provider.
    if settings.batch or (tasks and answers and settings.engine != RAY):
        return Concurrency(*bounds)
    least = max(_LEAST_ANSWERS, tasks or 0, answers or 0)
    # A replay waits for no judge, and a budget must not be spread over answers that it leaves unfinished.
    is_fixed = settings.is_replay or settings.max_cost is not None
    return Concurrency(*bounds, Admission(requests, least, least if is_fixed else _most_answers()))


def _most_answers() -> int:
    if not hasattr(os, "sysconf"):
        return _LEAST_ANSWERS
    memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(_MOST_ANSWERS, memory_bytes // 4 // _ANSWER_BYTES)


def budget_of(settings: RunSettings) -> Budget | None:
    """Return the budget of ``--max_cost``, ``None`` without it."""
    if settings.max_cost is None or settings.is_replay:
        return None
    in_batch = (BATCH_PRICE_SHARE, BATCH_CAUTION) if settings.batch else ()
    return Budget(settings.max_cost, settings.model, *in_batch)


def _keep_usage(run: _Run, judge: CachingJudge) -> None:
    try:
        shard = run.settings.shard
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


def _isolation(settings: RunSettings) -> Isolation | None:
    if not settings.isolate:
        return None
    from mind2web2.scripts.isolation.processes import DEFAULT_MEMORY_BYTES, ScriptLimits
    from mind2web2.scripts.isolation.run import Isolation

    limits = ScriptLimits(
        memory_bytes=settings.script_memory or DEFAULT_MEMORY_BYTES, block_s=_longest_block_s(settings)
    )
    variables = {name: os.environ[name] for name in settings.script_env}
    return Isolation(limits, network_of(settings), variables=variables)


def _longest_block_s(settings: RunSettings) -> float:
    # Half of a shorter --answer_timeout leaves the other answers time.
    return min((settings.answer_timeout or math.inf) / 2, LONGEST_BLOCK_S)


def _captures(
    settings: RunSettings, judge: CachingJudge, kind: type[SharedCaptures] = SharedCaptures
) -> SharedCaptures | None:
    # A replay depends only on stored judgments and pages.
    if not settings.captures_pages:
        return None
    open_browser = run_browser(
        capture_settings(settings), settings.max_webpage_retrieval, judge.check_reachable
    )
    return kind(open_browser)


async def _print_beforehand(run: _Run, store: JudgmentStore, captures: SharedCaptures | None) -> None:
    """Print which batches are open, which scripts have changed, and how many pages are not cached."""
    settings, folders = run.settings, run.folders
    if settings.shard is not None:
        here = sum(len(task.answers) for task in run.work)
        run.print(f"Shard {settings.shard}: {counted(here, 'answer')}; the others are judged elsewhere.")
    is_direct = not settings.is_replay and not settings.batch
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
        cause = " (--no_capture)" if settings.no_capture else "; replay does not capture pages"
        then = "captured when a claim needs them" if captures else f"their claims fail{cause}"
        run.print(f"Cited pages that are not cached yet: {total}; {then}.")


async def _open_batch_text(run: _Run, store: JudgmentStore) -> str | None:
    """Return a warning where batches of this judge's server are open, which this run does not fetch."""
    from mind2web2.judge.batch_state import BatchFolder

    endpoint = endpoint_of(run.settings.llm_provider, run.settings.judge_server())
    try:
        records = await asyncio.to_thread(BatchFolder(run.folders.agent_results / BATCHES).records)
    except UsageError as error:
        return f"Batches of an earlier run may be open: {error}."
    keys = [key for record in records if record.endpoint == endpoint for key in record.questions]
    missing = [key for key in keys if await store.get(key, endpoint) is None]
    if not missing:
        return None
    without = " and without --overwrite" if run.settings.overwrite else ""
    return (
        f"Warning: an earlier run with --batch left {len(missing)} requests in batches that are open and "
        "paid for. This run asks those that it needs again, and pays for them again; the same command "
        f"with --batch{without} fetches their results."
    )


@contextmanager
def _opened_store(settings: RunSettings, folders: RunFolders) -> Iterator[JudgmentStore]:
    if not settings.is_replay:
        own = folders.agent_results / FILE_NAME
        if settings.judgments is None and mirror(own).is_remote:
            line(
                plain_console(),
                f"Judgments are kept on this machine: {own}; several machines share them by --judgments "
                "postgresql://HOST/DATABASE.",
            )
        url = settings.judgments
        with JudgmentStore(own) if url is None else _shared(own, url, settings) as store:
            yield store
        return
    from mind2web2.judge.transfer import open_for_replay

    with open_for_replay(_judgments_path(settings, folders)) as store:
        yield store


def _shared(own: Path, url: str, settings: RunSettings) -> JudgmentStore:
    from mind2web2.judge.shared_store import SharedJudgmentStore

    if settings.engine == RAY and network_file_system(own.parent):
        # SQLite cannot keep judgments there; the database has them all.
        return SharedJudgmentStore(None, url, most=_MOST_IN_MEMORY)
    return SharedJudgmentStore(own, url)


def _judgments_path(settings: RunSettings, folders: RunFolders) -> Path:
    own = folders.agent_results / FILE_NAME
    return own if settings.judgments is None else Path(settings.judgments)


def _judge_settings(settings: RunSettings, folders: RunFolders, store: JudgmentStore) -> JudgeSettings:
    if not settings.is_replay:
        return judge_settings(settings)
    from mind2web2.judge.transfer import source_of

    asked = {
        "model": settings.judge_model,
        "temperature": settings.judge_temperature,
        "reasoning_effort": settings.judge_reasoning_effort,
        "max_images": settings.max_images,
        "extra_body": keyed_part(settings.judge_extra_body),
    }
    wanted = {name: value for name, value in asked.items() if value is not None}
    server = (settings.judge_base_url or ("",))[0].rstrip("/")
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
        replayed_from=source_of(_judgments_path(settings, folders)),
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
