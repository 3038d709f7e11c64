"""A Ray task that judges one shard of a run on a node, in a folder of its own.

Nothing stays on the node: an answer's files go to the command as soon as it is judged, and
judgments are in PostgreSQL. So another node judges a shard again that is lost, and no two nodes
write to one folder.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import SimpleQueue
from typing import Self

from mind2web2 import __version__
from mind2web2.errors import JudgeUnusableError, Mind2Web2Error, UsageError
from mind2web2.judge.budget import Budget
from mind2web2.judge.last_check import CheckRecord
from mind2web2.judge.usage import RunUsage
from mind2web2.llm_client import LLMClient
from mind2web2.llm_client.own_price import OwnPrice
from mind2web2.llm_client.prices import own_prices, set_own_prices
from mind2web2.pages.barred import barred_list
from mind2web2.pages.other_agents import PagesOfOthers
from mind2web2.plugins.cluster.postgres import (
    OUTAGE_WAIT_S,
    JudgmentDatabase,
    SharedJudgmentStore,
)
from mind2web2.results.answers import AnswerJob, RunFolders, TaskWork, select_work
from mind2web2.results.shards import Shard
from mind2web2.results.stored_results import answer_dir
from mind2web2.results.task_summary import UNSCORED_NAME
from mind2web2.runs.answer import AnswerOutcome, RunParts
from mind2web2.runs.paths import paths_of, take_away_changes
from mind2web2.runs.run import RunProgress, evaluate_work
from mind2web2.runs.session import OwnParts, open_run
from mind2web2.runs.settings import FOLDER_NAMES, PLAIN, SETTINGS, RunSettings
from mind2web2.scripts.aliases import own_script_aliases, set_script_aliases
from mind2web2.utils.garbage_collection import gc_frozen
from mind2web2.utils.path_config import PathConfig

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
# Scripts may leave threads that never end, as in the loop of a command.
_MAX_THREADS = 64
# Judgments in memory, some 2 KB each; all are in the database.
_MAX_JUDGMENTS = 20_000
_NEWS_EVERY_S = 1.0
# All shards together lease this share of the budget at a time. Others cannot spend a shard's lease.
_LEASE_SHARE = 0.02


def version_problem(version: str) -> str | None:
    """Return in one line that a node has another version than the command, if so."""
    if version == __version__:
        return None
    return f"it has mind2web2 {__version__}, the command has {version}: install the same version"


@dataclass(frozen=True)
class BudgetTerms:
    """The budget of a run, as its shards lease it.

    Args:
        run: its name in the database.
    """

    run: str
    max_usd: float
    model: str


class LeasedBudget(Budget):
    """A shard's part of the budget, leased from the database before it is spent."""

    def __init__(self, terms: BudgetTerms, database: JudgmentDatabase) -> None:
        super().__init__(terms.max_usd, terms.model)
        self._allowed_usd = 0.0
        self._run = terms.run
        self._database = database
        self._leasing = asyncio.Lock()
        self._is_all_leased = False

    async def _extend(self, missing_usd: float) -> bool:
        allowed_usd = self._allowed_usd
        async with self._leasing:
            if self._allowed_usd > allowed_usd:  # a request that waited for this lease
                return True
            if self._is_all_leased:
                return False
            share = _LEASE_SHARE / self._database.sessions
            wanted_usd = max(missing_usd, self.max_usd * share)
            leased_usd = await asyncio.to_thread(
                self._database.lease, self._run, wanted_usd, self.max_usd
            )
            self._allowed_usd += leased_usd
            self._is_all_leased = leased_usd < wanted_usd
            return leased_usd > 0


@dataclass(frozen=True)
class RunOrder:
    """Everything that a node needs to judge shards of a run.

    Args:
        settings: of the run, with folders and files that mean the same in any working directory.
        judge_check: the judge's last check.
        terms: of the budget; ``None`` without one.
        variables: of the command's environment, such as API keys. They travel in a call: Ray would
            log them as the environment of a task.
        prices: of models, from the settings file, like ``aliases`` of packages.
    """

    settings: RunSettings
    agent_name: str
    judge_check: CheckRecord | None
    terms: BudgetTerms | None
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
        """Return the order of a run."""
        terms = None
        if budget is not None:
            terms = BudgetTerms(uuid.uuid4().hex, budget.max_usd, settings.model)
        return cls(
            settings=_for_other_machines(settings),
            agent_name=agent_name,
            judge_check=judge_check,
            terms=terms,
            variables=_variables(settings),
            prices=own_prices(),
            aliases=own_script_aliases(),
        )

    def for_one_of(self, shards_at_once: int) -> Self:
        """Return the order with a shard's part of the limits that hold on each node."""

        def part(limit: int) -> int:
            return -(-limit // shards_at_once)

        settings = self.settings
        divided = replace(
            settings,
            max_llm_requests=part(settings.max_llm_requests),
            max_webpage_retrieval=part(settings.max_webpage_retrieval),
            page_memory=part(settings.page_memory),
        )
        return replace(self, settings=divided)


def _for_other_machines(settings: RunSettings) -> RunSettings:
    defaults = dict(zip(FOLDER_NAMES, paths_of(settings).roots, strict=True))
    roots = {name: getattr(settings, name) or root for name, root in defaults.items()}
    values = {name: getattr(settings, name) for name in SETTINGS} | roots
    absolute = {name: value.absolute() for name, value in values.items() if isinstance(value, Path)}
    return replace(settings, **roots | absolute, engine=PLAIN)


def _variables(settings: RunSettings) -> dict[str, str]:
    """Return the variables that judge, storage and scripts need on other machines too."""
    server = settings.judge_server()
    keys = () if isinstance(server, str | None) else server.key_names
    named = {*settings.script_env, *keys}
    return {
        name: text
        for name, text in os.environ.items()
        if name in named or name.startswith(_SERVICES)
    }


@dataclass(frozen=True)
class JudgedAnswer:
    """An answer that a shard has judged.

    Args:
        outcome: without its result.
        files: of the answer's folder, that are new or have changed, by their names in it.
    """

    outcome: AnswerOutcome
    files: dict[str, bytes]


@dataclass(frozen=True)
class ShardNews:
    """News of a shard.

    Args:
        answers: judged since its last news.
        usage: since the shard began.
        spent_usd: of the budget, since the shard began; ``refusal`` says why it got no more.
        problem: why the shard cannot be judged on this node, in one line.
        unusable_judge: why no answer can be judged, in one line.
    """

    answers: Sequence[JudgedAnswer] = ()
    usage: RunUsage = field(default_factory=RunUsage)
    spent_usd: float = 0.0
    refusal: str | None = None
    problem: str | None = None
    unusable_judge: str | None = None


def judge_shard(
    order: RunOrder, shard: Shard, done: frozenset[tuple[str, str]]
) -> Iterator[ShardNews]:
    """Judge the answers of a shard, and yield news at least every few seconds.

    Args:
        done: answers that need no result any more, by task and name.
    """
    if problem := version_problem(order.version):
        yield ShardNews(problem=problem)
        return
    os.environ.update(order.variables)
    set_own_prices(order.prices)
    set_script_aliases(order.aliases)
    judging = _ShardJudging(order, shard, done)
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(asyncio.run, judging.judge())
        while not running.done():
            wait([running], _NEWS_EVERY_S)
            yield judging.news()
        yield _last_news(running, judging.news())


def _last_news(running: Future[None], news: ShardNews) -> ShardNews:
    try:
        running.result()
    except JudgeUnusableError as error:
        return replace(news, unusable_judge=str(error))
    except (Mind2Web2Error, OSError) as error:
        return replace(news, problem=" ".join(str(error).split()))
    return news


class _ShardJudging:
    """Judges a shard in a thread, for another one that takes the news."""

    def __init__(self, order: RunOrder, shard: Shard, done: frozenset[tuple[str, str]]) -> None:
        self._order = order
        self._shard = shard
        self._done = done
        self._answers: SimpleQueue[JudgedAnswer] = SimpleQueue()
        self._parts: RunParts | None = None
        self._use = ShardNews()
        # By file of an earlier result: its time of change when it was brought here.
        self._earlier: dict[Path, int] = {}

    async def judge(self) -> None:
        """Judge all answers of the shard, and take away what object stores are to have."""
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_MAX_THREADS))
        paths = await asyncio.to_thread(paths_of, self._order.settings)
        work = self._work(paths)
        with tempfile.TemporaryDirectory(prefix="mind2web2-shard-") as folder:
            name = self._order.agent_name
            folders = RunFolders(name, paths.cache_root, Path(folder))
            await asyncio.to_thread(self._bring_earlier, work, paths, folders)
            try:
                await self._evaluate(work, folders)
            finally:
                await asyncio.to_thread(take_away_changes)

    def _work(self, paths: PathConfig) -> list[TaskWork]:
        settings, name = self._order.settings, self._order.agent_name
        for folder in (paths.answers_root / name, paths.eval_scripts_root):
            if not folder.is_dir():
                raise UsageError(
                    f"there is no {folder}: put all folders on storage that the nodes share"
                )
        work = self._shard.share_of(select_work(paths, name, settings.task_ids))
        return [self._undone(task) for task in work]

    def _undone(self, task: TaskWork) -> TaskWork:
        answers = [each for each in task.answers if (task.task_id, each.name) not in self._done]
        return replace(task, answers=tuple(answers))

    def _bring_earlier(
        self, work: Sequence[TaskWork], paths: PathConfig, folders: RunFolders
    ) -> None:
        """Copy the earlier results of the shard's answers, which may hold, into its own folder."""
        root, name = paths.eval_results_root, folders.agent_name
        for task in work:
            task_results = folders.agent_results / task.task_id
            task_results.mkdir(parents=True)
            with suppress(FileNotFoundError):
                listed = root / name / task.task_id / UNSCORED_NAME
                shutil.copy(listed, task_results / UNSCORED_NAME)
            for answer in task.answers:
                earlier = answer_dir(root, name, task.task_id, answer.name) / "results"
                results = task_results / earlier.parent.name / "results"
                if earlier.is_dir():
                    shutil.copytree(earlier, results)
                    for path in results.iterdir():
                        self._earlier[path] = path.stat().st_mtime_ns

    async def _evaluate(self, work: Sequence[TaskWork], folders: RunFolders) -> None:
        order, settings = self._order, self._order.settings
        assert settings.judgments is not None, "a cluster's nodes share judgments"
        with (
            SharedJudgmentStore(
                None,
                settings.judgments,
                most=_MAX_JUDGMENTS,
                connect_wait_s=OUTAGE_WAIT_S,
            ) as store,
            gc_frozen(),
        ):
            budget = None
            if order.terms is not None:
                budget = LeasedBudget(order.terms, store.database)
            own_parts = OwnParts(
                store=store,
                budget=budget,
                other_pages=PagesOfOthers(with_private_network=settings.allow_private_network),
                judge_check=order.judge_check,
                barred=None if settings.no_barred else barred_list(settings.barred),
            )
            async with open_run(settings, None, own=own_parts) as session:
                self._parts = session.parts
                keeping_up = asyncio.create_task(self._keep_up(session.clients[-1], store.database))
                try:
                    async with session.at_work() as concurrency:
                        await evaluate_work(work, folders, self, concurrency, RunProgress())
                finally:
                    keeping_up.cancel()
                    self._note_use()

    async def evaluate(self, job: AnswerJob) -> AnswerOutcome | None:
        """Evaluate an answer as ``RunParts`` does, and send it off to the command."""
        assert self._parts is not None, "a session is open"
        outcome = await self._parts.evaluate(job)
        if outcome is not None:
            files = await asyncio.to_thread(self._changed_files, job.folder)
            self._answers.put(JudgedAnswer(replace(outcome, result=None), files))
        return outcome

    def _changed_files(self, folder: Path) -> dict[str, bytes]:
        return {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in folder.rglob("[!.]*")
            if path.is_file() and self._earlier.get(path) != path.stat().st_mtime_ns
        }

    def news(self) -> ShardNews:
        """Return the news since the last call."""
        answers = [self._answers.get() for _ in range(self._answers.qsize())]
        return replace(self._use, answers=answers)

    async def _keep_up(self, client: object, database: JudgmentDatabase) -> None:
        """Keep to this shard's part of the limits that the judge's servers name."""
        while True:
            if isinstance(client, LLMClient):
                for limiter in client.limiters().values():
                    limiter.share = 1 / database.sessions
            self._note_use()
            await asyncio.sleep(_NEWS_EVERY_S)

    def _note_use(self) -> None:
        """Note what is used, as a copy that another thread may read."""
        if self._parts is None:
            return
        judge = self._parts.judge
        use = ShardNews(usage=deepcopy(judge.usage))
        if (budget := judge.budget) is not None:
            use = replace(use, spent_usd=budget.spent_usd, refusal=budget.refusal)
        self._use = use
