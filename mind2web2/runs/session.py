"""A run's session: the one place where settings become the parts of a run.

The parts are the store, judge, pages, limits, budget and processes.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from mind2web2.errors import JudgmentStoreError
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.check_record import CheckRecord, last_check
from mind2web2.judge.protocol import QuestionObserver
from mind2web2.judge.spec import JudgeSpec
from mind2web2.judge.store import JudgmentStore
from mind2web2.judge.transfer import open_for_replay
from mind2web2.llm_client.chat import ChatProvider
from mind2web2.pages.library import PageLibrary
from mind2web2.results.agent_results import AgentResults
from mind2web2.runs.answer import RunParts
from mind2web2.runs.capturing import capture_settings, network_of
from mind2web2.runs.concurrency import Admission, Concurrency
from mind2web2.runs.named_judge import judge_spec, replayed_judge
from mind2web2.runs.settings import RunSettings
from mind2web2.scripts.isolation.run import Isolation
from mind2web2.scripts.limits import (
    DEFAULT_MEMORY_BYTES,
    LONGEST_BLOCK_S,
    DualSemaphore,
    ScriptLimits,
)
from mind2web2.utils.machine import memory_bytes

if TYPE_CHECKING:
    from mind2web2.judge.budget import Budget, Lease
    from mind2web2.pages.captures import OpenBrowser, SharedCaptures

# Stands for no limit.
NO_LIMIT = 1_000_000
# Answers at once, at least and at most; a quarter of the machine's memory is for them.
_LEAST_ANSWERS = 9
_MAX_ANSWERS = 64
_ANSWER_BYTES = 64 * 1024**2
# Judgments in memory where nothing keeps them (about 30 MB).
_MAX_JUDGMENTS_IN_MEMORY = 20_000

CapturesMaker = Callable[["OpenBrowser"], "SharedCaptures"]


@dataclass(frozen=True)
class OwnParts:
    """Parts that a caller brings, in place of those that the settings would give.

    Args:
        provider: answers the judge's requests.
        judge: in place of the one that the settings name.
        other_stores: files of other agents, whose judgments are reused.
        budget: in place of one of ``max_cost``.
        captures: makes the captures of a run from what opens its browser.
        limits: of captures and judge requests.
        observer: is called after each question that was sent to the judge.
    """

    provider: ChatProvider | None = None
    judge: JudgeSpec | None = None
    other_stores: Sequence[Path] = ()
    budget: Budget | None = None
    captures: CapturesMaker | None = None
    limits: DualSemaphore | None = None
    observer: QuestionObserver | None = None


@dataclass(frozen=True)
class Session:
    """An open run.

    Args:
        parts: what its answers share.
        problems: failures of its end, one line each.
    """

    settings: RunSettings
    parts: RunParts
    store: JudgmentStore
    problems: list[str] = field(default_factory=list)

    @property
    def judge(self) -> CachingJudge:
        """Return the run's judge."""
        return self.parts.judge

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[Concurrency]:
        """Open what answers need while they are evaluated: the browser."""
        async with self.parts.captures or nullcontext():
            yield concurrency_of(self.settings, self.parts.limits)


@asynccontextmanager
async def open_run(
    settings: RunSettings,
    judgments: Path | None,
    *,
    own: OwnParts | None = None,
    check_roots: Sequence[Path] = (),
) -> AsyncIterator[Session]:
    """Open a run.

    Args:
        judgments: the file that keeps the run's judgments; ``None`` keeps the latest in memory.
        own: parts in place of those that the settings give.
        check_roots: folders of results that may name the judge's last check.

    Raises:
        UsageError: a setting is unusable.
    """
    own = own or OwnParts()
    with _store(settings, judgments, own.other_stores) as store:
        if settings.is_replay and judgments is not None:
            results = AgentResults(judgments.parent.parent, judgments.parent.name)
            named = replayed_judge(settings, store, replayed_file(settings, judgments), results)
        else:
            named = (own.judge or judge_spec(settings)).with_prices(settings.prices)
        budget = own.budget or budget_of(settings, named)
        provider = own.provider
        if provider is None and not settings.is_replay:
            provider = judge_client(named)
        judge = CachingJudge(
            named,
            provider,
            store,
            overwrite=settings.overwrite,
            budget=budget,
            observer=own.observer,
        )
        checks = (last_check(root, judge.identity) for root in check_roots)
        check = next(filter(None, checks), None)
        session = Session(
            settings,
            run_parts(settings, judge, own, check),
            store,
        )
        try:
            yield session
        finally:
            await _close(session)


async def _close(session: Session) -> None:
    try:
        await session.judge.write_rest()
    except JudgmentStoreError as error:
        session.problems.append(str(error))


def _store(settings: RunSettings, judgments: Path | None, others: Sequence[Path]) -> JudgmentStore:
    if judgments is None:
        return JudgmentStore(None, most=_MAX_JUDGMENTS_IN_MEMORY)
    if settings.is_replay:
        return open_for_replay(replayed_file(settings, judgments))
    if not others:
        return JudgmentStore(judgments)
    sharing: JudgmentStore = import_module("mind2web2.judge.other_agents").SharingJudgmentStore(
        judgments, others
    )
    return sharing


def replayed_file(settings: RunSettings, judgments: Path) -> Path:
    """Return the file that a replay reads: the one that the settings name, else the run's own."""
    return settings.judgments or judgments


def judge_client(judge: JudgeSpec) -> ChatProvider:
    """Return the client of a judge."""
    # A replay needs none.
    connection = import_module("mind2web2.llm_client.connection")
    client: ChatProvider = connection.connected(
        judge.provider,
        judge.base_url,
        judge.api_key,
        retry=connection.RetryPolicy(outage_wait_s=judge.outage_wait_s),
    )
    return client


def budget_of(
    settings: RunSettings, judge: JudgeSpec | None = None, lease: Lease | None = None
) -> Budget | None:
    """Return the budget of ``--max_cost``, ``None`` without it.

    Args:
        judge: with its price; default: the one that the settings name.
        lease: gets the dollars, where several budgets share them.
    """
    if settings.max_cost is None or settings.is_replay:
        return None
    judge = judge or judge_spec(settings).with_prices(settings.prices)
    budgets = import_module("mind2web2.judge.budget")
    budget: Budget = budgets.Budget(
        settings.max_cost, judge.model, judge.own_price, judge.price_share, lease
    )
    return budget


def run_parts(
    settings: RunSettings,
    judge: CachingJudge,
    own: OwnParts,
    judge_check: CheckRecord | None = None,
    library: PageLibrary | None = None,
) -> RunParts:
    """Return what the answers of a run share."""
    return RunParts(
        judge=judge,
        library=library or PageLibrary(),
        captures=_captures(settings, judge, own),
        limits=own.limits or _limits(settings),
        # A replay reproduces scores from the judgments, not from the results.
        reuse=not settings.overwrite and not judge.is_replay,
        answer_timeout_s=settings.answer_timeout,
        with_private_network=settings.allow_private_network,
        log_to_console=settings.self_debug,
        ahead=settings.ahead or "values",
        isolation=isolation_of(settings),
        as_of=settings.as_of,
        judge_check=judge_check,
    )


def replaying_judge(named: JudgeSpec, store: JudgmentStore) -> CachingJudge:
    """Return a judge that answers from stored judgments alone."""
    return CachingJudge(named, None, store)


def _limits(settings: RunSettings) -> DualSemaphore:
    return DualSemaphore(
        asyncio.Semaphore(settings.max_webpage_retrieval),
        asyncio.Semaphore(settings.max_llm_requests),
    )


def _captures(settings: RunSettings, judge: CachingJudge, own: OwnParts) -> SharedCaptures | None:
    if not settings.captures_pages:
        return None
    # Most runs find every page stored.
    run_browser = import_module("mind2web2.pages.run_browser").run_browser
    captures: CapturesMaker = (
        own.captures or import_module("mind2web2.pages.captures").SharedCaptures
    )
    return captures(
        run_browser(
            capture_settings(settings), settings.max_webpage_retrieval, judge.check_reachable
        )
    )


def isolation_of(settings: RunSettings) -> Isolation:
    """Return how the run's scripts are run."""
    limits = ScriptLimits(memory_bytes=DEFAULT_MEMORY_BYTES, block_s=longest_block_s(settings))
    return Isolation(limits, network_of(settings))


def longest_block_s(settings: RunSettings) -> float:
    """Return for how many seconds a script may block its event loop."""
    # A pass may block so long, and then the script in program order: both end before
    # --answer_timeout.
    return min((settings.answer_timeout or math.inf) / 3, LONGEST_BLOCK_S)


def concurrency_of(settings: RunSettings, limits: DualSemaphore) -> Concurrency:
    """Return how many answers run at once.

    They are as many as keep the judge requests busy, within the settings.
    """
    tasks = settings.max_concurrent_tasks
    answers = settings.max_concurrent_answers
    bounds = tasks or NO_LIMIT, answers or NO_LIMIT
    if tasks and answers:
        return Concurrency(*bounds)
    least = max(_LEAST_ANSWERS, tasks or 0, answers or 0)
    # A replay waits for no judge, and a budget must not be spread over answers that it leaves
    # unfinished.
    is_fixed = settings.is_replay or settings.max_cost is not None
    return Concurrency(
        *bounds, Admission(limits.llm, least, least if is_fixed else _most_answers())
    )


def _most_answers() -> int:
    return min(_MAX_ANSWERS, memory_bytes() // 4 // _ANSWER_BYTES)
