"""The Ray engine: tasks on nodes judge shards of a run, and this process takes the results.

A shard is a part of the answers. Only this process writes results, and judgments are in PostgreSQL.
So a node that is lost costs the requests in flight; its shards start again on other nodes, without
the answers that are judged. The tasks end with this process, and the same command continues.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from mind2web2.errors import (
    JudgeUnusableError,
    JudgmentStoreError,
    MachineError,
    UsageError,
)
from mind2web2.judge.budget import Budget
from mind2web2.judge.transfer import judgments_named
from mind2web2.judge.usage import RunUsage, TaskUsage
from mind2web2.plugins.cluster.connection import on_node
from mind2web2.plugins.cluster.postgres import SharedJudgmentStore
from mind2web2.plugins.cluster.shard import (
    JudgedAnswer,
    RunOrder,
    ShardNews,
    judge_shard,
)
from mind2web2.results.answers import AnswerJob, TaskWork
from mind2web2.results.shards import MAX_SHARDS, Shard
from mind2web2.results.stored_results import latest_result, write_file
from mind2web2.runs.answer import AnswerOutcome, answer_locked

log = logging.getLogger(__name__)

# Shards that a node judges at the same time, by its processors, and how many follow each other in
# such a place: more and smaller ones leave less to do again, and no node waits long for the last
# one of another.
_PROCESSORS_A_SHARD, _MIN_AT_ONCE, _MAX_AT_ONCE = 4, 2, 8
_SHARDS_A_PLACE, _ANSWERS_A_SHARD = 4, 4
# A shard that gives no news for so long is lost. Ray takes longer to find out that a machine
# vanished, and does not find out that a process stands still.
_SILENT_AFTER_S = 30
# Ray starts a process for the first shards of a node, which loads this package.
_LONGEST_START_S = 120
_LOOK_EVERY_S = 2.0
# Ray has nodes start again, or new ones join, within so long; then the run ends.
_LONGEST_WITHOUT_NODE_S = 120.0
# A node that fails so often in a row is left out; a shard that so many nodes were lost with has no
# results.
MAX_FAILURES, MAX_LOSSES = 3, 3
# Ray finds out within so long that a node vanished.
_AVOIDED_S = 60.0

# The task and the name of an answer.
_Name: TypeAlias = tuple[str, str]


class _NodeLostError(Exception):
    """A node ended, stands still, or cannot judge; never leaves this module."""


@dataclass
class _ShardWork:
    """A shard with its answers that have no outcome yet, and the nodes that were lost with it."""

    shard: Shard
    answers: set[_Name]
    lost: list[str] = field(default_factory=list)


@dataclass(eq=False)
class _Node:
    """A node of the cluster.

    Args:
        at_once: shards that it judges at the same time.
        running: shards that it judges now.
        failures: in a row; after one, other nodes come first for a while.
    """

    node_id: str
    name: str
    at_once: int
    running: int = 0
    failures: int = 0
    avoided_until_s: float = 0.0
    problem: str = ""

    @property
    def places(self) -> int:
        """Return how many shards it may judge now: one, until it has shown that it works again."""
        return 1 if self.failures else self.at_once


class ShardEngine:
    """Has the answers of a run judged by the nodes of a Ray cluster.

    Args:
        ray: the module, connected.
        order: for each node.
        work: the answers to judge.
        usage: of the run, to which the shards' is added.
        store: the agent's own judgments, to which those of new results are added.
        endpoint: of the judge.
        budget: shows what the shards spend; they lease it from the database.
    """

    def __init__(
        self,
        ray: Any,
        order: RunOrder,
        work: Sequence[TaskWork],
        usage: RunUsage,
        store: SharedJudgmentStore,
        endpoint: str,
        budget: Budget | None = None,
    ) -> None:
        self._ray = ray
        self._order = order
        self._usage = usage
        self._store = store
        self._endpoint = endpoint
        self._budget = budget
        self._errors = importlib.import_module("ray.exceptions")
        self._task = ray.remote(judge_shard)
        self._nodes: dict[str, _Node] = {}
        # The latest news of each attempt at a shard, by its number and how many were lost before.
        self._latest: dict[tuple[int, int], ShardNews] = {}
        loop = asyncio.get_running_loop()
        self._judged: dict[_Name, asyncio.Future[JudgedAnswer]] = {
            (task.task_id, answer.name): loop.create_future()
            for task in work
            for answer in task.answers
        }

    @asynccontextmanager
    async def judge_shards(self) -> AsyncIterator[None]:
        """Have the shards judged for as long as this is entered."""
        judging = asyncio.create_task(self._judge_all())
        judging.add_done_callback(self._pass_on_failure)
        try:
            yield
            await judging
        finally:
            judging.cancel()
            await asyncio.gather(judging, return_exceptions=True)

    def _pass_on_failure(self, judging: asyncio.Task[None]) -> None:
        error = None if judging.cancelled() else judging.exception()
        for judged in self._judged.values():
            if error is not None and not judged.done():
                judged.set_exception(error)
                judged.exception()  # not every answer waits for it yet

    async def evaluate(self, job: AnswerJob) -> AnswerOutcome | None:
        """Return the outcome of an answer once a shard has it, and write its files.

        Raises:
            JudgeUnusableError: as ``reuse_or_evaluate``.
            UsageError: no node can judge answers.
            MachineError: no node is left.
        """
        judged = await asyncio.shield(self._judged[job.task_id, job.answer.name])
        async with answer_locked(job.folder) as is_ours:
            if not is_ours:
                return None
            await asyncio.to_thread(_write_files, job.folder, judged)
            outcome = await asyncio.to_thread(_with_result, job, judged.outcome)
        if outcome.result is not None:
            await self._copy_judgments(judgments_named(outcome.result.document))
        return outcome

    async def _copy_judgments(self, keys: Iterable[str]) -> None:
        """Copy judgments that the agent's own file lacks from the database."""
        try:
            await asyncio.gather(*(self._store.get(key, self._endpoint) for key in keys))
        except JudgmentStoreError as error:
            log.error(
                "the agent's own file lacks judgments, which the database has: %s",
                error,
            )

    async def _judge_all(self) -> None:
        await self._look_for_nodes()
        waiting = self._shards()
        running: set[asyncio.Task[_ShardWork | None]] = set()
        with_nodes_s = asyncio.get_running_loop().time()
        try:
            while waiting or running:
                for work in list(waiting):
                    if (node := self._free_node(work.lost)) is not None:
                        waiting.remove(work)
                        node.running += 1
                        running.add(asyncio.create_task(self._attempt(work, node)))
                now_s = asyncio.get_running_loop().time()
                with_nodes_s = now_s if running else with_nodes_s
                self._check_nodes(now_s - with_nodes_s)
                done = await _first_done(running)
                running -= done
                waiting.extend(left for each in done if (left := each.result()) is not None)
                await self._look_for_nodes()
        finally:
            for each in running:
                each.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    def _shards(self) -> list[_ShardWork]:
        """Return the shards of the run that hold answers."""
        places = sum(node.at_once for node in self._nodes.values())
        shard_count = min(places * _SHARDS_A_PLACE, len(self._judged) // _ANSWERS_A_SHARD)
        count = min(max(shard_count, 1), MAX_SHARDS)
        parts: dict[Shard, _ShardWork] = {}
        for name in self._judged:
            shard = Shard.of(*name, count)
            parts.setdefault(shard, _ShardWork(shard, set())).answers.add(name)
        return list(parts.values())

    async def _look_for_nodes(self) -> None:
        found = {
            each["NodeID"]: _node(each)
            for each in await asyncio.to_thread(self._ray.nodes)
            if each["Alive"]
        }
        self._nodes = {node_id: self._nodes.get(node_id, node) for node_id, node in found.items()}

    def _free_node(self, lost: Sequence[str] = ()) -> _Node | None:
        """Return the node with the fewest shards, if any has a place.

        Args:
            lost: nodes that do not count as long as there is another one.
        """
        sound = [each for each in self._nodes.values() if each.failures < MAX_FAILURES]
        now_s = asyncio.get_running_loop().time()
        others = [each for each in sound if each.name not in lost and each.avoided_until_s <= now_s]
        free = [each for each in others or sound if each.running < each.places]
        return min(free, key=lambda node: node.running, default=None)

    def _check_nodes(self, without_s: float) -> None:
        problems = [f"{node.name}: {node.problem}" for node in self._nodes.values() if node.problem]
        if not self._latest and problems and self._free_node() is None and without_s > 0:
            raise UsageError(
                f"no node of the Ray cluster can evaluate answers: {'; '.join(problems)}"
            )
        if without_s > _LONGEST_WITHOUT_NODE_S:
            raise MachineError(
                f"no node of the Ray cluster is left for {without_s:.0f} s: the same command "
                "continues"
            )

    async def _attempt(self, work: _ShardWork, node: _Node) -> _ShardWork | None:
        """Have a node judge a shard; return what is left of it if the node is lost."""
        log.info("shard begins shard=%s node=%s", work.shard, node.name)
        try:
            await self._follow(work, node)
        except _NodeLostError as error:
            node.failures += 1
            node.avoided_until_s = asyncio.get_running_loop().time() + _AVOIDED_S
            node.problem = str(error)
            work.lost.append(node.name)
            log.warning(
                "Shard %s starts again on another node, as %s is lost: %s",
                work.shard,
                node.name,
                error,
            )
            if work.answers and len(work.lost) < MAX_LOSSES:
                return work
            names = ", ".join(work.lost)
            self._give_up(work, f"{MAX_LOSSES} nodes were lost with it: {names}")
        else:
            self._give_up(work, f"{node.name} has no such answer: give all nodes the same")
        finally:
            node.running -= 1
        return None

    def _give_up(self, work: _ShardWork, reason: str) -> None:
        """End a shard; its answers that are not judged have no result."""
        for task_id, name in work.answers:
            outcome = AnswerOutcome(task_id, name, None, reason)
            self._judged[task_id, name].set_result(JudgedAnswer(outcome, {}))

    async def _follow(self, work: _ShardWork, node: _Node) -> None:
        """Take the news of a shard until it ends.

        Raises:
            _NodeLostError: the node is lost.
            JudgeUnusableError: no answer can be judged.
        """
        options = {
            "num_cpus": 0,
            "max_retries": 0,
            "scheduling_strategy": on_node(node.node_id),
        }
        done = frozenset(name for name, judged in self._judged.items() if judged.done())
        order = self._order.for_one_of(node.at_once)
        stream = self._task.options(**options).remote(order, work.shard, done)
        try:
            patience_s = _LONGEST_START_S
            while (news := await self._next(stream, patience_s)) is not None:
                patience_s = _SILENT_AFTER_S
                if news.problem is not None:
                    raise _NodeLostError(news.problem)
                if news.unusable_judge is not None:
                    raise JudgeUnusableError(f"{news.unusable_judge} (node {node.name})")
                self._latest[work.shard.number, len(work.lost)] = news
                self._note(work, news, node)
        finally:
            with suppress(self._errors.RayError, ValueError, TypeError):
                self._ray.cancel(stream, force=True)

    async def _next(self, stream: Any, patience_s: int) -> ShardNews | None:
        """Return a shard's next news, ``None`` at its end.

        Raises:
            _NodeLostError: the node is lost, or gives no news.
        """
        news = asyncio.create_task(_next_of(stream))
        try:
            # Seconds of this loop, not of a clock: if this process was stopped, it has not
            # listened.
            for _ in range(patience_s):
                await asyncio.wait({news}, timeout=1.0)
                if news.done():
                    return news.result()
            raise _NodeLostError(f"it gave no news for {patience_s} s")
        except self._errors.RayTaskError as error:
            raise MachineError(f"a node failed: {error.cause!r}") from error
        except self._errors.RayError as error:
            raise _NodeLostError(" ".join(str(error).split())[:300]) from error
        finally:
            news.cancel()

    def _note(self, work: _ShardWork, news: ShardNews, node: _Node) -> None:
        node.failures, node.problem, node.avoided_until_s = 0, "", 0.0
        for judged in news.answers:
            name = judged.outcome.task_id, judged.outcome.answer_name
            work.answers.discard(name)
            if name in self._judged and not self._judged[name].done():
                self._judged[name].set_result(judged)
        self._sum_up()

    def _sum_up(self) -> None:
        """Show what all shards have used so far as the use of the run."""
        latest = self._latest.values()
        usage = self._usage
        for task_id in {name for news in latest for name in news.usage.tasks}:
            found = (news.usage.tasks.get(task_id, TaskUsage()) for news in latest)
            usage.tasks[task_id] = sum(found, TaskUsage())
        slowdowns = [news.usage.slowdown for news in latest]
        usage.slowdown.refusals = sum(each.refusals for each in slowdowns)
        usage.slowdown.waited_s = sum(each.waited_s for each in slowdowns)
        retries = (news.usage.retries.reasons for news in latest)
        usage.retries.reasons = sum(retries, Counter())
        if self._budget is not None:
            refusals = [self._budget.refusal, *(news.refusal for news in latest)]
            refusal = next((each for each in refusals if each is not None), None)
            self._budget.follow(sum(news.spent_usd for news in latest), refusal)


async def _next_of(stream: Any) -> ShardNews | None:
    """Return the next item of Ray's stream; its own end cannot leave a task."""
    try:
        found: ShardNews = await (await anext(stream))
    except StopAsyncIteration:
        return None
    return found


async def _first_done(
    running: set[asyncio.Task[_ShardWork | None]],
) -> set[asyncio.Task[_ShardWork | None]]:
    """Return the tasks that are done, after some seconds at most."""
    if not running:
        await asyncio.sleep(_LOOK_EVERY_S)
        return set()
    done, _ = await asyncio.wait(
        running, timeout=_LOOK_EVERY_S, return_when=asyncio.FIRST_COMPLETED
    )
    return done


def _node(found: Mapping[str, Any]) -> _Node:
    """Return a node as Ray lists it."""
    node_id = found["NodeID"]
    places = int(found["Resources"].get("CPU", 0)) // _PROCESSORS_A_SHARD
    at_once = min(max(places, _MIN_AT_ONCE), _MAX_AT_ONCE)
    return _Node(node_id, f"{found['NodeManagerHostname']} {node_id[:6]}", at_once)


def _write_files(folder: Path, judged: JudgedAnswer) -> None:
    """Write an answer's files; a result says that the answer is done, and comes last."""
    for name in sorted(judged.files, key=lambda name: name.startswith("results/")):
        write_file(folder / name, judged.files[name])
    judged.files.clear()  # the run remembers all its outcomes


def _with_result(job: AnswerJob, outcome: AnswerOutcome) -> AnswerOutcome:
    if outcome.reason is not None:
        return outcome
    found = latest_result(job.folder / "results")
    if found is None:
        reason = f"a node has evaluated it, but {job.folder} has no result"
        return replace(outcome, reason=reason)
    return replace(outcome, result=found.content)
