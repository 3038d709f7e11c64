"""One node of a cluster: its actor, and its share of budget, rate limits and hosts.

The actor owns judge, browser and prepared pages of its node, and evaluates answers by the code of the plain
runner. It works with its share for some seconds without asking, so that no failure elsewhere stalls it:

- dollars are leased from the database, a few percent of the budget at a time, recorded before they are spent
- each node keeps to its share of the limits that a server names, and all pause while a server refuses one
- all pages of a host are captured by one node, so that a host meets the politeness of one machine, and each
  page is captured once

Nothing here imports Ray, which calls the actor's methods.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import uuid
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from concurrent.futures import ThreadPoolExecutor
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    nullcontext,
)
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from mind2web2 import __version__
from mind2web2.errors import (
    CacheReadError,
    CaptureError,
    JudgeUnusableError,
    MachineError,
    Mind2Web2Error,
    UsageError,
)
from mind2web2.judge.budget import Budget
from mind2web2.judge.shared_store import JudgmentDatabase, SharedJudgmentStore
from mind2web2.judge.store import CheckRecord, Judgment
from mind2web2.judge.usage import TaskUsage
from mind2web2.llm_client import LLMClient
from mind2web2.llm_client.chat import Limit, Retries, Slowdown
from mind2web2.llm_client.prices import OwnPrice, own_prices, set_own_prices
from mind2web2.pages.cache import CacheFileSys
from mind2web2.pages.captures import OpenBrowser, SharedCaptures
from mind2web2.pages.other_agents import PagesOfOthers
from mind2web2.pages.page_cache import PageCache
from mind2web2.runs.answer import AnswerOutcome, RunParts
from mind2web2.runs.answers import AnswerFile, AnswerJob
from mind2web2.runs.paths import paths_of
from mind2web2.runs.results import newest_result_name
from mind2web2.runs.session import OwnParts, open_run
from mind2web2.runs.settings import FOLDER_NAMES, SETTINGS, RunSettings
from mind2web2.scripts.aliases import own_script_aliases, set_script_aliases
from mind2web2.storage.mirror import push_all
from mind2web2.storage.publication import bring_here_in_thread, is_in_object_store
from mind2web2.urls.parts import normalize_url_for_browser
from mind2web2.utils.garbage_collection import gc_frozen

log = logging.getLogger(__name__)

# Beginnings of variables with keys and addresses of judges, maps, storage and PostgreSQL.
_SERVICES = (
    "OPENAI_",
    "AZURE_",
    "ANTHROPIC_",
    "GEMINI_",
    "AWS_",
    "GOOGLE_",
    "PG",
    "MIND2WEB2_",
)
# As the loop of a command has it: scripts may leave threads that never end.
_MAX_THREADS = 64
# Judgments kept in a node's memory, some 2 KB each; all are in the database.
_MOST_JUDGMENTS = 20_000
# A node and the command that hear nothing of each other for so long count each other as lost. Ray takes
# longer to find out that a machine vanished.
SILENT_AFTER_S = 30
# Between two looks whether a node that captures a page is still among the others.
_LOOK_EVERY_S = 1.0
# Of the budget, leased at a time by all nodes together: other nodes cannot spend what one has leased.
_LEASE_SHARE = 0.02


def version_problem(version: str) -> str | None:
    """Return in one line that a node has another version than the command, ``None`` if it has the same."""
    if version == __version__:
        return None
    return f"it has mind2web2 {__version__}, the command has {version}: install the same version"


@dataclass(frozen=True)
class BudgetTerms:
    """The budget of a run, as its nodes lease it.

    Args:
        run: its name in the database.
    """

    run: str
    max_usd: float
    model: str


class LeasedBudget(Budget):
    """A node's part of the budget; ``nodes`` is how many there are."""

    def __init__(self, terms: BudgetTerms, database: JudgmentDatabase) -> None:
        super().__init__(terms.max_usd, terms.model)
        self.nodes = 1
        self._allowed_usd = 0.0
        self._run = terms.run
        self._database = database
        self._leasing = asyncio.Lock()
        self._is_all_leased = False

    async def _extended(self, missing_usd: float) -> bool:
        allowed_usd = self._allowed_usd
        async with self._leasing:
            if (
                self._allowed_usd > allowed_usd
            ):  # a request that waited for this one's lease
                return True
            if self._is_all_leased:
                return False
            wanted_usd = max(missing_usd, self.max_usd * _LEASE_SHARE / self.nodes)
            leased_usd = await asyncio.to_thread(
                self._database.lease, self._run, wanted_usd, self.max_usd
            )
            self._allowed_usd += leased_usd
            self._is_all_leased = leased_usd < wanted_usd
            return leased_usd > 0


@dataclass(frozen=True)
class CaptureReply:
    """How a capture on another node went; ``error`` is the one to raise here."""

    error: Mind2Web2Error | None
    is_refused_as_private: bool


# Captures a URL into the pages of a folder below the root of pages, also if they have it (the last argument).
CaptureThere = Callable[[str, Path, bool], Awaitable[CaptureReply]]


class ClusterCaptures(SharedCaptures):
    """The captures of a node, which captures the pages of its hosts for all nodes.

    Attributes:
        cache_root: of this node.
        own_name: of this node; ``peers`` are the others.
    """

    def __init__(
        self, open_browser: OpenBrowser, others: PagesOfOthers | None = None
    ) -> None:
        super().__init__(open_browser, others)
        self.cache_root = Path()
        self.own_name = ""
        self.peers: Mapping[str, CaptureThere] = {}
        self._refused_as_private: set[str] = set()

    async def capture_into(
        self,
        url: str,
        cache: PageCache,
        limit: Limit,
        logger: logging.Logger,
        *,
        is_retry: bool = False,
    ) -> None:
        """Capture a page into a cache, as ``SharedCaptures`` does, on the node that captures its host."""
        reply = await self._captured_there(url, cache, is_retry)
        if reply is None:
            await self.capture_here(url, cache, limit, logger, is_retry=is_retry)
            return
        if reply.is_refused_as_private:
            self._refused_as_private.add(url)
        if reply.error is not None:
            raise reply.error

    async def _captured_there(
        self, url: str, cache: PageCache, is_retry: bool
    ) -> CaptureReply | None:
        """Have the host's node capture a page; ``None`` if that is this one, or is lost."""
        name = node_for(url, (self.own_name, *self.peers))
        owner = self.peers.get(name)
        # A cache of a script's own is on this node alone.
        if owner is None or not isinstance(cache, CacheFileSys):
            return None
        folder = cache.task_dir
        try:
            reply = await self._unless_lost(
                name, owner(url, folder.relative_to(self.cache_root), is_retry)
            )
        except Exception as error:  # Ray's, of several kinds
            log.info(
                "page is captured here, as its host's node is lost url=%s error=%s",
                url,
                error,
            )
            return None
        await bring_here_in_thread(folder)
        return reply

    async def _unless_lost(
        self, name: str, capture: Awaitable[CaptureReply]
    ) -> CaptureReply:
        """Return the reply of a node, unless the command no longer counts it among the others."""
        reply = asyncio.ensure_future(capture)
        try:
            while not reply.done():
                await asyncio.wait({reply}, timeout=_LOOK_EVERY_S)
                if name not in self.peers and not reply.done():
                    raise MachineError(f"node {name} is lost")
            return reply.result()
        finally:
            reply.cancel()

    async def capture_here(
        self,
        url: str,
        cache: PageCache,
        limit: Limit,
        logger: logging.Logger,
        *,
        is_retry: bool,
    ) -> None:
        """Capture a page by this node's browser."""
        await super().capture_into(url, cache, limit, logger, is_retry=is_retry)

    def is_refused_as_private(self, url: str) -> bool:
        """Return whether a node refused a page because its address is private."""
        return url in self._refused_as_private or super().is_refused_as_private(url)


def node_for(url: str, names: Iterable[str]) -> str:
    """Return the node that captures a URL's host; as nodes come and go, few hosts change theirs."""
    host = urlsplit(normalize_url_for_browser(url)).hostname
    return max(
        names, key=lambda name: hashlib.sha256(f"{name} {host}".encode()).digest()
    )


# Ray's handle of an actor, which has the methods of its class.
ActorHandle = Any


@dataclass(frozen=True)
class ClusterNews:
    """News of the other nodes, for one node.

    Args:
        nodes: that send requests.
        pauses_s: for how long a server wants no request, by its name, as far as other nodes know.
        own_name: of this node.
        peers: the actors of the other nodes by their names; ``None`` if they are the same as before.
    """

    nodes: int = 1
    pauses_s: Mapping[str, float] = field(default_factory=dict)
    own_name: str = ""
    peers: Mapping[str, ActorHandle] | None = None


def share_limits(client: LLMClient, news: ClusterNews) -> None:
    """Keep to this node's share of the servers' limits."""
    for name, limiter in client.limiters().items():
        limiter.share = 1 / news.nodes
        if name in news.pauses_s:
            limiter.pause(news.pauses_s[name])


def pauses_of(client: LLMClient) -> dict[str, float]:
    """Return for how long each server that refused this node wants no request."""
    waits_s = {
        name: limiter.refused_for_s for name, limiter in client.limiters().items()
    }
    return {name: wait_s for name, wait_s in waits_s.items() if wait_s > 0}


class NodeStore(SharedJudgmentStore):
    """The judgments of a node: in the shared database, and the latest in memory.

    The command collects what is new here, for the agent's own file.
    """

    def __init__(self, url: str) -> None:
        super().__init__(None, url, most=_MOST_JUDGMENTS)
        self._new: list[Judgment] = []

    async def put_own(self, judgment: Judgment) -> None:
        """Store a judgment in memory, and have the command collect it."""
        await super().put_own(judgment)
        self._new.append(judgment)

    async def keep(
        self, judgment: Judgment, instead_of: Judgment | None = None
    ) -> Judgment:
        """Store a judgment unless there is one, and have the command collect what is stored."""
        kept = await super().keep(judgment, instead_of)
        if kept == judgment:  # another one was collected when it was copied
            self._new.append(kept)
        return kept

    def collected(self) -> list[Judgment]:
        """Return the judgments since the last call."""
        new, self._new = self._new, []
        return new


@dataclass(frozen=True)
class NodeParts:
    """The parts of a run on one node.

    Args:
        roots: the folders of answers, scripts, results and pages here.
        admission: entered by each answer.
    """

    run: RunParts
    client: LLMClient
    store: NodeStore
    roots: Sequence[Path]
    admission: AbstractAsyncContextManager[None]


@dataclass(frozen=True)
class NodeSetup:
    """Everything that a node needs to build the parts of a run.

    Args:
        settings: of the run, with folders and files that mean the same in any working directory.
        judge_check: the judge's last check.
        terms: of the budget; ``None`` without one.
        agent_name: of all answers.
        roots: the command's folders, which may have other places on a node.
        variables: of the command's environment, such as API keys. They travel in a call: Ray would log them
            as the environment of an actor.
        prices: of models, from the settings file, like ``aliases`` of packages.
    """

    settings: RunSettings
    judge_check: CheckRecord | None
    terms: BudgetTerms | None
    agent_name: str
    roots: Sequence[Path]
    variables: Mapping[str, str] = field(repr=False)
    prices: Mapping[str, OwnPrice]
    aliases: Mapping[str, str]
    version: str = __version__

    @classmethod
    def of(
        cls,
        settings: RunSettings,
        agent_name: str,
        judge_check: CheckRecord | None,
        budget: Budget | None,
    ) -> Self:
        """Return the setup of a run's nodes."""
        roots = paths_of(settings).roots
        terms = (
            None
            if budget is None
            else BudgetTerms(uuid.uuid4().hex, budget.max_usd, settings.model)
        )
        return cls(
            settings=_for_other_machines(settings, roots),
            judge_check=judge_check,
            terms=terms,
            agent_name=agent_name,
            roots=roots,
            variables=_variables(settings),
            prices=own_prices(),
            aliases=own_script_aliases(),
        )


def _for_other_machines(settings: RunSettings, roots: Sequence[Path]) -> RunSettings:
    """Return the settings with folders and files that mean the same in any working directory."""
    defaults = dict(zip(FOLDER_NAMES, roots, strict=True))
    named = {name: getattr(settings, name) or root for name, root in defaults.items()}
    values = {name: getattr(settings, name) for name in SETTINGS} | named
    absolute = {
        name: value.absolute()
        for name, value in values.items()
        if isinstance(value, Path)
    }
    return replace(settings, **named | absolute)


def _variables(settings: RunSettings) -> dict[str, str]:
    """Return the variables that judge, storage and scripts need on other machines too."""
    server = settings.judge_server()
    keys = (
        ()
        if isinstance(server, str | None)
        else (listed.key_name for listed in server.servers)
    )
    named = {*settings.script_env, *keys}
    return {
        name: text
        for name, text in os.environ.items()
        if name in named or name.startswith(_SERVICES)
    }


@asynccontextmanager
async def _opened_parts(setup: NodeSetup) -> AsyncIterator[NodeParts]:
    """Open the parts of a run on this node."""
    settings = setup.settings
    assert settings.judgments is not None, "a cluster's nodes share judgments"
    roots = paths_of(settings).roots
    with NodeStore(settings.judgments) as store, gc_frozen():
        own = OwnParts(
            store=store,
            budget=None
            if setup.terms is None
            else LeasedBudget(setup.terms, store.database),
            other_pages=PagesOfOthers(
                with_private_network=settings.allow_private_network
            ),
            captures=ClusterCaptures,
            judge_check=setup.judge_check,
        )
        async with (
            open_run(settings, None, own=own) as session,
            session.at_work() as concurrency,
        ):
            if isinstance(session.parts.captures, ClusterCaptures):
                session.parts.captures.cache_root = roots[-1]
            client, admission = session.client, concurrency.admission or nullcontext()
            assert isinstance(client, LLMClient), (
                "RunSettings.check refuses replays and batches"
            )
            yield NodeParts(session.parts, client, store, roots, admission)
        for problem in session.problems:
            log.error("%s", problem)


@dataclass(frozen=True)
class NodeJob:
    """One answer to evaluate, as it travels to a node.

    Args:
        cache: the folder of the task's pages.
        folder: for results and logs.
    """

    task_id: str
    answer: AnswerFile
    script_path: Path
    script_version: str
    cache: Path
    folder: Path

    @classmethod
    def of(cls, job: AnswerJob) -> Self:
        """Return the message for a job."""
        cache = job.task_cache.task_dir
        return cls(
            job.task_id,
            job.answer,
            job.script_path,
            job.script_version,
            cache,
            job.folder,
        )


@dataclass(frozen=True)
class LogLine:
    """A line of a node's log."""

    name: str
    level: int
    message: str


@dataclass(frozen=True)
class NodeReport:
    """News of a node since its last report.

    Args:
        usage: of the tasks whose usage has changed, since the node started.
        judgments: for the agent's own file.
        pauses_s: for how long servers that refused this node want no request.
        spent_usd: of the budget, since the node started; ``refusal`` says why it got no more.
    """

    usage: Mapping[str, TaskUsage]
    slowdown: Slowdown
    retries: Retries
    judgments: list[Judgment]
    log: list[LogLine]
    pauses_s: Mapping[str, float]
    spent_usd: float = 0.0
    refusal: str | None = None


class NodeActor:
    """Evaluates answers on its node, many at once."""

    def __init__(self) -> None:
        self._exits = AsyncExitStack()
        self._parts: NodeParts | None = None
        self._setup: NodeSetup
        self._caches: dict[Path, CacheFileSys] = {}
        self._reported: dict[str, TaskUsage] = {}
        self._log = _LogLines()
        self._silent_s = 0
        self._watching: asyncio.Task[None]

    async def open(self, setup: NodeSetup) -> str | None:
        """Build the parts of a run, and return in one line why this is impossible here.

        From then on the node ends by itself where no report is asked of it: it would keep the locks of its
        answers, which start again on other nodes.
        """
        if problem := version_problem(setup.version):
            return problem
        asyncio.get_running_loop().set_default_executor(
            ThreadPoolExecutor(_MAX_THREADS)
        )
        self._setup = setup
        os.environ.update(setup.variables)
        set_own_prices(setup.prices)
        set_script_aliases(setup.aliases)
        package = logging.getLogger("mind2web2")
        package.setLevel(logging.INFO)
        package.addHandler(self._log)
        try:
            self._parts = await self._exits.enter_async_context(_opened_parts(setup))
            await asyncio.to_thread(self._check_folders, setup)
        except (Mind2Web2Error, OSError) as error:
            return " ".join(str(error).split())
        self._watching = asyncio.create_task(self._end_when_cut_off())
        return None

    async def _end_when_cut_off(self) -> None:
        # Seconds of this loop, not of a clock: a process that was paused has not listened.
        while self._silent_s < SILENT_AFTER_S:
            await asyncio.sleep(1)
            self._silent_s += 1
        # Nothing is left to say, and a proper end would wait for judge and database.
        os._exit(1)

    async def admit(self) -> None:
        """Wait until one more answer may run here; ``evaluate`` then runs it."""
        await self._opened().admission.__aenter__()

    async def evaluate(self, job: NodeJob) -> AnswerOutcome | JudgeUnusableError | None:
        """Evaluate an answer that was admitted.

        Returns:
            as ``reuse_or_evaluate``, with the name of the result file in ``earlier_result`` in place of the
            content; or the error that ends the run.
        """
        parts = self._opened()
        try:
            outcome = await parts.run.evaluate(await asyncio.to_thread(self._job, job))
        except JudgeUnusableError as error:
            return JudgeUnusableError(str(error))
        except CacheReadError as error:
            return AnswerOutcome(job.task_id, job.answer.name, None, str(error))
        finally:
            await parts.admission.__aexit__(None, None, None)
        if outcome is None or outcome.reason is not None:
            return outcome
        name = await asyncio.to_thread(
            newest_result_name, self._here(job.folder) / "results"
        )
        return replace(outcome, result=None, earlier_result=name)

    async def capture(self, url: str, folder: Path, is_retry: bool) -> CaptureReply:
        """Capture a page for another node, into the pages of this folder."""
        run, roots = self._opened().run, self._opened().roots
        assert isinstance(run.captures, ClusterCaptures), (
            "a node without captures asks for none"
        )
        error: Mind2Web2Error | None = None
        try:
            cache = await asyncio.to_thread(self._cache, roots[-1] / folder)
            await run.captures.capture_here(
                url, cache, run.limits.webpage, log, is_retry=is_retry
            )
        except CaptureError as failed:
            error = type(failed)(str(failed))
        except Mind2Web2Error as failed:
            error = MachineError(str(failed))
        return CaptureReply(error, run.captures.is_refused_as_private(url))

    def _cache(self, folder: Path) -> CacheFileSys:
        """Return the pages of a task: one object for all its answers, as in a plain run."""
        if folder not in self._caches:
            self._caches[folder] = CacheFileSys(folder)
        return self._caches[folder]

    def _job(self, job: NodeJob) -> AnswerJob:
        return AnswerJob(
            agent_name=self._setup.agent_name,
            task_id=job.task_id,
            answer=replace(job.answer, path=self._here(job.answer.path)),
            script_path=self._here(job.script_path),
            script_version=job.script_version,
            task_cache=self._cache(self._here(job.cache)),
            folder=self._here(job.folder),
        )

    def _here(self, path: Path) -> Path:
        """Return the place of one of the command's files on this node."""
        for theirs, ours in zip(self._setup.roots, self._opened().roots, strict=True):
            if path.is_relative_to(theirs):
                return ours / path.relative_to(theirs)
        return path

    def _check_folders(self, setup: NodeSetup) -> None:
        answers, scripts, results, _ = self._opened().roots
        for folder in (answers / setup.agent_name, scripts, results / setup.agent_name):
            # The first result makes the folder of a root in an object store.
            if not folder.is_dir() and not is_in_object_store(folder):
                raise UsageError(
                    f"there is no {folder}: put all folders on storage that the nodes share"
                )

    async def report(self, news: ClusterNews) -> NodeReport:
        """Take news of the other nodes, and return this one's since the last call."""
        self._silent_s = 0
        parts = self._opened()
        share_limits(parts.client, news)
        captures = parts.run.captures
        if isinstance(captures, ClusterCaptures) and news.peers is not None:
            captures.own_name = news.own_name
            captures.peers = {
                name: actor.capture.remote for name, actor in news.peers.items()
            }
        budget = parts.run.judge.budget
        if isinstance(budget, LeasedBudget):
            budget.nodes = news.nodes
        usage = parts.run.judge.usage
        changed = {
            task_id: replace(task)
            for task_id, task in usage.tasks.items()
            if task != self._reported.get(task_id)
        }
        self._reported |= changed
        return NodeReport(
            usage=changed,
            slowdown=usage.slowdown,
            retries=usage.retries,
            judgments=parts.store.collected(),
            log=self._log.collected(),
            pauses_s=pauses_of(parts.client),
            spent_usd=0.0 if budget is None else budget.spent_usd,
            refusal=None if budget is None else budget.refusal,
        )

    async def close(self) -> NodeReport:
        """Close browser, judge and store, and return the last news."""
        self._watching.cancel()
        for end in (self._exits.aclose, partial(asyncio.to_thread, push_all)):
            try:
                await end()
            except Mind2Web2Error as error:
                log.error("%s", error)
        return await self.report(ClusterNews())

    def _opened(self) -> NodeParts:
        assert self._parts is not None, "open comes first"
        return self._parts


class _LogLines(logging.Handler):
    """Collects the package's log, for the command's ``run.log`` and console."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._lines: list[LogLine] = []

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if record.exc_info:
            message += "\n" + logging.Formatter().formatException(record.exc_info)
        self._lines.append(LogLine(record.name, record.levelno, message))

    def collected(self) -> list[LogLine]:
        """Return the lines since the last call."""
        lines, self._lines = self._lines, []
        return lines
