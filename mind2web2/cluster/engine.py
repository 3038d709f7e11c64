"""The Ray engine: an actor on each node of a cluster, to which this process gives the answers of a run.

Answers are independent of each other, and what must outlive a process is in storage: results in their folder,
judgments in PostgreSQL. So a node that dies loses only the answers that it was evaluating; others evaluate
them, with the judgments that are stored by then. The actors end with this process, and the same command
continues.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import socket
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pydantic import BaseModel

from mind2web2.cluster.node import (
    SILENT_AFTER_S,
    ActorHandle,
    ClusterNews,
    NodeActor,
    NodeJob,
    NodeReport,
    NodeSetup,
)
from mind2web2.errors import (
    JudgeUnusableError,
    JudgmentStoreError,
    MachineError,
    StorageError,
    UsageError,
)
from mind2web2.judge.budget import Budget
from mind2web2.judge.shared_store import SharedJudgmentStore
from mind2web2.judge.transfer import judgments_named
from mind2web2.judge.usage import RunUsage, TaskUsage
from mind2web2.llm_client.chat import Retries, Slowdown
from mind2web2.runs.answer import AnswerOutcome
from mind2web2.runs.answers import AnswerJob
from mind2web2.runs.results import latest_result, newest_result_name
from mind2web2.storage.publication import bring_here_in_thread
from mind2web2.utils.aio import all_or_first_error
from mind2web2.utils.private_attributes import check_private_attributes

log = logging.getLogger(__name__)

LEAST_RAY = (2, 60)
# Of a Ray that this process starts: nothing large passes through it.
_OBJECT_STORE_BYTES = 100 * 1024**2
_CONNECT_TIMEOUT_S = 10.0
_REPORT_EVERY_S = 1.0
_LOOK_EVERY_S = 2.0
_CLOSE_TIMEOUT_S = 30.0
# A network file system shows another machine's new file within a minute.
_RESULT_WAIT_S = 90.0
# Ray has nodes start again, or new ones join, within so long; then the run ends.
_LONGEST_WITHOUT_NODE_S = 120.0
# A node that fails so often in a row is left out; an answer that so many nodes were lost with has no result.
MOST_STARTS, MOST_LOSSES = 3, 3
# Calls at once of an actor, far more than answers.
_MOST_CALLS = 10_000


class _NodeLostError(Exception):
    """A node or its actor ended, or cannot evaluate answers; never leaves this module."""


@dataclass(eq=False)
class _Node:
    """A node with an actor, and its use of the judge so far."""

    name: str
    actor: Any  # Ray's handles have the methods of the class
    answers: int = 0  # that it evaluates now, or has offered to take
    lost: asyncio.Event = field(default_factory=asyncio.Event)
    is_taken: asyncio.Event = field(default_factory=asyncio.Event)
    usage: dict[str, TaskUsage] = field(default_factory=dict)
    slowdown: Slowdown = field(default_factory=Slowdown)
    retries: Retries = field(default_factory=Retries)
    spent_usd: float = 0.0
    # Judgments of its results, which it may not have reported yet.
    unreported: set[str] = field(default_factory=set)
    # The actors of the other nodes by name, as it knows them.
    peers: dict[str, ActorHandle] = field(default_factory=dict)
    # Until when servers that refused the node want no request.
    pauses_until_s: dict[str, float] = field(default_factory=dict)

    @property
    def is_lost(self) -> bool:
        """Tell whether the node or its actor ended, or gives no news."""
        return self.lost.is_set()


@asynccontextmanager
async def ray_connected(address: str | None) -> AsyncIterator[Any]:
    """Connect to the Ray cluster at an address, or to the one that Ray finds or starts; yield the module.

    Raises:
        UsageError: Ray is missing or too old, or the address does not answer.
    """
    ray = await asyncio.to_thread(_imported)
    try:
        await asyncio.to_thread(_connect, ray, address)
        yield ray
    finally:
        await asyncio.to_thread(ray.shutdown)


def _imported() -> Any:
    try:
        found = version("ray")
    except PackageNotFoundError as error:
        raise UsageError(
            "--engine ray needs Ray: run `pip install 'mind2web2[ray]'`"
        ) from error
    if tuple(map(int, found.split(".")[:2])) < LEAST_RAY:
        raise UsageError(
            f"--engine ray needs Ray 2.60 or newer, not {found}: run `pip install -U ray`"
        )
    # No statistics to Ray's makers, and no copy of this process's environment and folder on the nodes.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] = "0"
    # A command that is terminated, as at the time limit of a Slurm job, prints no stack of Ray.
    os.environ["RAY_DISABLE_FAILURE_SIGNAL_HANDLER"] = "1"
    ray = importlib.import_module("ray")
    logging.getLogger("ray").setLevel(logging.CRITICAL)
    check_private_attributes("ray")
    private: Any = importlib.import_module("ray._private")
    private.worker.print_to_stdstream = _log_message
    private.utils.get_entrypoint_name = lambda: "mind2web2"
    return ray


class _LogMessage(BaseModel):
    """What Ray reports from its processes."""

    lines: object = ""


def _log_message(message: Mapping[str, object], **_: object) -> None:
    lines = _LogMessage.model_validate(message).lines
    log.info("ray: %s", " ".join(str(lines)[:500].split()))


def _connect(ray: Any, address: str | None) -> None:
    where = address or os.environ.get("RAY_ADDRESS", "auto")
    if where not in ("auto", "local"):
        _check_address(where)
    quiet = {
        "log_to_driver": False,
        "configure_logging": False,
        "namespace": "mind2web2",
    }
    try:
        if where != "local":
            with suppress(ConnectionError) if where == "auto" else nullcontext():
                ray.init(where, **quiet)
                return
        log.info("ray starts on this machine alone")
        ray.init(
            "local",
            **quiet,
            object_store_memory=_OBJECT_STORE_BYTES,
            include_dashboard=False,
        )
    except (OSError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"Ray at {where} cannot be used: {reason}") from error


def _check_address(address: str) -> None:
    host, _, port = address.rpartition(":")
    if "://" in address or not host or not port.isdecimal():
        raise UsageError(
            f"--ray_address takes HOST:PORT of the cluster's head, such as 10.0.0.1:6379, not {address}: run "
            "the command on a machine of the cluster"
        )
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_TIMEOUT_S).close()
    except OSError as error:
        raise UsageError(
            f"no Ray cluster answers at {address} ({error.strerror or error}): start one there with "
            "`ray start --head`, or correct --ray_address"
        ) from error


def placed_actor(ray: Any, kind: type, node_id: str) -> Any:
    """Start an actor of a class on a node."""
    strategies = importlib.import_module("ray.util.scheduling_strategies")
    place = strategies.NodeAffinitySchedulingStrategy(node_id, soft=False)
    options = {
        "num_cpus": 0,
        "max_concurrency": _MOST_CALLS,
        "scheduling_strategy": place,
    }
    return ray.remote(kind).options(**options).remote()


class RayEngine:
    """Evaluates answers on the nodes of a Ray cluster; entered by each answer that waits for a place there.

    Args:
        ray: the module, connected.
        setup: for each node.
        answers: to evaluate.
        usage: of the run, to which the nodes' is added.
        store: the agent's own judgments, to which the nodes' are added.
        endpoint: of the judge.
        budget: shows what the nodes spend; they lease it from the database.
    """

    def __init__(
        self,
        ray: Any,
        setup: NodeSetup,
        answers: int,
        usage: RunUsage,
        store: SharedJudgmentStore,
        endpoint: str,
        budget: Budget | None = None,
    ) -> None:
        self._ray = ray
        self._setup = setup
        self._unfinished = answers
        self._usage = usage
        self._store = store
        self._endpoint = endpoint
        self._budget = budget
        self._errors = importlib.import_module("ray.exceptions")
        # By Ray's id: those that serve now, and how often each failed in a row. All that ever served.
        self._serving: set[str] = set()
        self._failures: Counter[str] = Counter()
        self._nodes: list[_Node] = []
        self._problems: dict[str, str] = {}
        # Nodes that may take one more answer, and those taken by answers that have not begun.
        self._offers: asyncio.Queue[_Node] = asyncio.Queue()
        self._taken: deque[_Node] = deque()
        self._turn = asyncio.Lock()
        self._answer_ended = asyncio.Event()
        self._watching: asyncio.Task[None]

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Start the actors, and follow which nodes come and go.

        Raises:
            UsageError: no node can evaluate answers.
        """
        self._watching = asyncio.create_task(self._watch())
        try:
            self._offers.put_nowait(await self._offer())
            yield
            await self._close()
        finally:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
            for node in self._nodes:
                self._end(node)

    async def __aenter__(self) -> None:
        """Wait until a node can take one more answer."""
        self._taken.append(await self._offer())

    async def __aexit__(self, *_: object) -> None:
        """Leave the place to the node, which knows when the answer has ended."""

    async def evaluate(self, job: AnswerJob) -> AnswerOutcome | None:
        """Evaluate an answer on a node, as ``reuse_or_evaluate`` does; on another one if that node is lost.

        Raises:
            JudgeUnusableError: as ``reuse_or_evaluate``.
            MachineError: no node is left, or its results do not arrive here.
        """
        lost: list[str] = []
        while len(lost) < MOST_LOSSES:
            if lost:
                await self.__aenter__()
            node = self._taken.popleft()
            try:
                outcome = await self._called(
                    node, node.actor.evaluate.remote(NodeJob.of(job))
                )
            except _NodeLostError:
                log.info(
                    "answer starts again task=%s answer=%s lost=%s",
                    job.task_id,
                    job.answer.name,
                    node.name,
                )
                lost.append(node.name)
                continue
            finally:
                node.answers -= 1
                self._answer_ended.set()
            if isinstance(outcome, JudgeUnusableError):
                raise JudgeUnusableError(f"{outcome} (node {node.name})")
            if outcome is None:
                # Another process of that node judges it, of which nothing is known here.
                await asyncio.sleep(_LOOK_EVERY_S)
                return None
            self._unfinished -= 1
            complete = await with_result(job, outcome)
            named = (
                set()
                if complete.result is None
                else judgments_named(complete.result.document)
            )
            node.unreported |= named
            if (
                lost or complete.reused
            ):  # who judged it may have ended before it reported its judgments
                await self._keep(named)
            return complete
        self._unfinished -= 1
        reason = (
            f"{len(lost)} nodes were lost while they evaluated it: {', '.join(lost)}"
        )
        return AnswerOutcome(job.task_id, job.answer.name, None, reason)

    async def _keep(self, keys: Iterable[str]) -> None:
        """Copy judgments that the agent's own file lacks from the database."""
        try:
            # Answers that end while the database is asked add to the keys of their node.
            for key in list(keys):
                await self._store.get(key, self._endpoint)
        except JudgmentStoreError as error:
            log.error(
                "the agent's own file lacks judgments, which the database has: %s",
                error,
            )

    async def _offer(self) -> _Node:
        """Return a node that can take one more answer."""
        async with self._turn:
            while True:
                offer = asyncio.create_task(self._offers.get())
                try:
                    await asyncio.wait(
                        {offer, self._watching}, return_when=asyncio.FIRST_COMPLETED
                    )
                    if not offer.done():
                        self._watching.result()
                finally:
                    offer.cancel()
                node = offer.result()
                node.is_taken.set()
                if not node.is_lost:
                    return node

    async def _called(self, node: _Node, call: Awaitable[Any]) -> Any:
        """Return the result of a call of a node's actor.

        Raises:
            _NodeLostError: node or actor are lost.
        """
        reply = asyncio.ensure_future(call)
        loss = asyncio.ensure_future(node.lost.wait())
        try:
            await asyncio.wait({reply, loss}, return_when=asyncio.FIRST_COMPLETED)
            if not reply.done():
                raise _NodeLostError("it gave no news")
            return reply.result()
        except self._errors.RayTaskError as error:
            raise MachineError(f"node {node.name} failed: {error.cause!r}") from error
        except self._errors.RayError as error:
            node.lost.set()
            raise _NodeLostError(" ".join(str(error).split())[:300]) from error
        finally:
            reply.cancel()
            loss.cancel()

    async def _watch(self) -> None:
        """Keep an actor on every node of the cluster."""
        serving: set[asyncio.Task[None]] = set()
        with_nodes_s = asyncio.get_running_loop().time()
        try:
            while True:
                for node_id, name in (await asyncio.to_thread(self._alive)).items():
                    if (
                        node_id not in self._serving
                        and self._failures[node_id] < MOST_STARTS
                    ):
                        self._serving.add(node_id)
                        serving.add(asyncio.create_task(self._serve(node_id, name)))
                now_s = asyncio.get_running_loop().time()
                with_nodes_s = now_s if self._serving else with_nodes_s
                self._check_nodes(now_s - with_nodes_s)
                await asyncio.sleep(_LOOK_EVERY_S)
                for task in [each for each in serving if each.done()]:
                    serving.discard(task)
                    task.result()
        finally:
            for task in serving:
                task.cancel()
            await asyncio.gather(*serving, return_exceptions=True)

    def _check_nodes(self, without_s: float) -> None:
        if not self._serving and not self._nodes and self._problems:
            reasons = "; ".join(
                f"{name}: {problem}" for name, problem in self._problems.items()
            )
            raise UsageError(
                f"no node of the Ray cluster can evaluate answers: {reasons}"
            )
        if without_s > _LONGEST_WITHOUT_NODE_S:
            raise MachineError(
                f"no node of the Ray cluster is left for {without_s:.0f} s: the same command continues"
            )

    def _alive(self) -> dict[str, str]:
        return {
            node["NodeID"]: f"{node['NodeManagerHostname']} {node['NodeID'][:6]}"
            for node in self._ray.nodes()
            if node["Alive"]
        }

    async def _serve(self, node_id: str, name: str) -> None:
        """Start a node's actor, offer its places and collect its news, until it is lost."""
        node = _Node(name, placed_actor(self._ray, NodeActor, node_id))
        try:
            problem = await self._called(node, node.actor.open.remote(self._setup))
            if problem is not None:
                self._problems[name] = problem
                log.warning("Node %s is left out: %s", name, problem)
                return
            self._nodes.append(node)
            self._failures.pop(node_id, None)
            log.info("node evaluates answers node=%s", name)
            await self._exchange_news(node)
            await all_or_first_error(
                (self._offer_places(node), self._collect_news(node))
            )
        except (_NodeLostError, MachineError) as error:
            self._problems[name] = str(error)
            log.warning("Node %s is lost: its answers start again on other nodes", name)
            log.info("node lost node=%s reason=%s", name, error)
        finally:
            node.lost.set()
            self._failures[node_id] += 1
            self._serving.discard(node_id)
            self._answer_ended.set()
            self._end(node)

    async def _offer_places(self, node: _Node) -> None:
        while True:
            await self._called(node, node.actor.admit.remote())
            # Its share of the rest: in a short run the first node to open would take nearly all answers.
            while node.answers * len(self._serving) >= self._unfinished > 0:
                self._answer_ended.clear()
                await self._answer_ended.wait()
            node.answers += 1
            node.is_taken.clear()
            self._offers.put_nowait(node)
            await node.is_taken.wait()

    async def _collect_news(self, node: _Node) -> None:
        while True:
            await asyncio.sleep(_REPORT_EVERY_S)
            try:
                async with asyncio.timeout(SILENT_AFTER_S):
                    await self._exchange_news(node)
            except TimeoutError as error:
                node.lost.set()
                raise _NodeLostError(
                    f"it gave no news for {SILENT_AFTER_S:g} s"
                ) from error

    async def _exchange_news(self, node: _Node) -> None:
        named = set(node.unreported)
        await self._note(
            node,
            await self._called(node, node.actor.report.remote(self._news_for(node))),
        )
        node.unreported -= named

    def _news_for(self, node: _Node) -> ClusterNews:
        now_s = asyncio.get_running_loop().time()
        alive = [each for each in self._nodes if not each.is_lost]
        pauses_s: dict[str, float] = {}
        for other in [each for each in alive if each is not node]:
            for name, until_s in other.pauses_until_s.items():
                if until_s > now_s:
                    pauses_s[name] = max(pauses_s.get(name, 0.0), until_s - now_s)
        peers = {each.name: each.actor for each in alive if each is not node}
        is_known, node.peers = node.peers == peers, peers
        return ClusterNews(
            max(1, len(alive)), pauses_s, node.name, None if is_known else peers
        )

    async def _note(self, node: _Node, report: NodeReport) -> None:
        node.usage.update(report.usage)
        node.slowdown, node.retries = report.slowdown, report.retries
        usage, nodes = self._usage, self._nodes
        for task_id in report.usage:
            found = (each.usage[task_id] for each in nodes if task_id in each.usage)
            usage.tasks[task_id] = sum(found, TaskUsage())
        usage.slowdown.refusals = sum(each.slowdown.refusals for each in nodes)
        usage.slowdown.waited_s = sum(each.slowdown.waited_s for each in nodes)
        usage.retries.reasons = sum((each.retries.reasons for each in nodes), Counter())
        now_s = asyncio.get_running_loop().time()
        node.pauses_until_s = {
            name: now_s + wait_s for name, wait_s in report.pauses_s.items()
        }
        node.spent_usd = report.spent_usd
        if self._budget is not None:
            refusal = self._budget.refusal or report.refusal
            self._budget.follow(sum(each.spent_usd for each in nodes), refusal)
        for line in report.log:
            text = f"{line.message} (node {node.name})"
            logger = logging.getLogger(line.name)
            logger.handle(
                logger.makeRecord(line.name, line.level, "", 0, text, (), None)
            )
        try:
            for judgment in report.judgments:
                await self._store.put_own(judgment)
        except JudgmentStoreError as error:
            log.error(
                "the agent's own file lacks judgments, which the database has: %s",
                error,
            )

    async def _close(self) -> None:
        """Have the nodes close their browsers, and collect their last news."""
        await asyncio.gather(*map(self._close_node, self._nodes))

    async def _close_node(self, node: _Node) -> None:
        if not node.is_lost:
            with suppress(_NodeLostError, MachineError, TimeoutError):
                async with asyncio.timeout(_CLOSE_TIMEOUT_S):
                    await self._note(
                        node, await self._called(node, node.actor.close.remote())
                    )
        # Those of a report that was lost with the node, or is still on its way.
        await self._keep(node.unreported)

    def _end(self, node: _Node) -> None:
        """End the actor's process, if it still runs."""
        with suppress(self._errors.RayError, ValueError):
            self._ray.kill(node.actor)


async def with_result(job: AnswerJob, outcome: AnswerOutcome) -> AnswerOutcome:
    """Return a node's outcome with the content of the result that ``earlier_result`` names, or a later one.

    Raises:
        MachineError: it does not arrive here.
    """
    if outcome.reason is not None:
        return outcome
    folder = job.folder / "results"
    until_s = asyncio.get_running_loop().time() + _RESULT_WAIT_S
    try:
        while True:
            await bring_here_in_thread(folder)
            newest = await asyncio.to_thread(newest_result_name, folder)
            # An older one would be a wrong score.
            if newest is not None and newest >= (outcome.earlier_result or ""):
                found = await asyncio.to_thread(latest_result, folder)
                content = None if found is None else found.content
                reason = "the result is damaged" if content is None else None
                return replace(
                    outcome, result=content, reason=reason, earlier_result=None
                )
            if asyncio.get_running_loop().time() > until_s:
                raise MachineError(
                    f"a node has evaluated {job.task_id}/{job.answer.name}, but {job.folder} has no result: "
                    "put the folders on storage that all nodes share"
                )
            await asyncio.sleep(_LOOK_EVERY_S)
    except StorageError as error:
        return AnswerOutcome(job.task_id, job.answer.name, None, str(error))
