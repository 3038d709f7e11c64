"""The Ray engine: nodes judge answers, and this process alone reads and writes the folders.

A call gets some answers of one task, and returns the files of their results. This process chooses
the node of each call. A call that gives no news, or whose node ends, is repeated on another node:
Ray does not bring back the work of a node that stands still.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mind2web2 import __version__
from mind2web2.plugin import (
    AgentEvaluation,
    AgentResults,
    AnswerJob,
    BrowserSetup,
    JudgedPart,
    Mind2Web2Error,
    Session,
    UsageError,
)
from mind2web2_ray.call import Files, Judged, Order, files_below, judge_answers, write_files
from mind2web2_ray.capturing import RayCapturer, ray_capturer
from mind2web2_ray.connection import connect_ray, on_node
from mind2web2_ray.desk import Desk, DeskNews

log = logging.getLogger(__name__)

# Answers of one task share its pages and questions, so that a call takes several of them.
_MAX_ANSWERS = 8
_PROCESSORS_A_CALL, _MAX_CALLS_A_NODE = 2, 4
# The first call of a node starts a process that loads this package.
_SILENT_AFTER_S, _LONGEST_START_S = 30.0, 120.0
_AVOIDED_S = 60.0
_MAX_LOSSES = 3
_LONGEST_WITHOUT_NODE_S = 120.0
_LOOK_EVERY_S = 1.0
_VARIABLES = (
    "ANTHROPIC_",
    "AWS_",
    "AZURE_OPENAI_",
    "GEMINI_",
    "GOOGLE_MAPS_",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "OPENAI_",
    "SSL_CERT_",
)


def evaluate(evaluation: AgentEvaluation) -> int:
    """Evaluate the work on the nodes of a cluster and return the exit status.

    Raises:
        UsageError: a setting contradicts the engine, or there is no such cluster.
    """
    settings = evaluation.settings
    if settings.is_replay:
        raise UsageError("a replay asks no judge: leave --engine ray out")
    for name in ("self_debug", "headed", "cdp_url", "shard", "overwrite"):
        if getattr(settings, name):
            raise UsageError(f"--{name} belongs to one machine: leave it out with --engine ray")
    return replace(evaluation, machines=_nodes).run()


def capturer(setup: BrowserSetup) -> AbstractAsyncContextManager[RayCapturer]:
    """Open what captures pages on all nodes."""
    return ray_capturer(setup)


@asynccontextmanager
async def _nodes(session: Session) -> AsyncIterator[_Cluster]:
    """Connect to the cluster, and have its nodes judge answers."""
    async with connect_ray() as ray:
        cluster = _Cluster(ray, session)
        async with cluster.at_work():
            yield cluster


@dataclass(eq=False)
class _Node:
    """A node of the cluster.

    Args:
        places: calls that it takes at the same time.
    """

    node_id: str
    name: str
    places: int
    running: int = 0
    has_answered: bool = False
    avoided_until_s: float = 0.0


@dataclass(eq=False)
class _Waiting:
    """An answer that waits for a call, and what the call says about it."""

    job: AnswerJob
    judged: asyncio.Future[Judged]


@dataclass(eq=False)
class _Batch:
    """Answers of one task that one call judges."""

    number: int
    answers: list[_Waiting]
    losses: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Return the call's name, another one after each loss."""
        return f"{self.number}-{len(self.losses)}"


class _LostError(Exception):
    """A node ended, stands still or cannot judge; never leaves this module."""


class _Cluster:
    """Has answers judged by the nodes of a cluster."""

    def __init__(self, ray: Any, session: Session) -> None:
        self._ray = ray
        self._session = session
        self._errors = importlib.import_module("ray.exceptions")
        self._task = ray.remote(judge_answers)
        self._nodes: dict[str, _Node] = {}
        self._waiting: dict[str, list[_Waiting]] = {}
        self._calls = 0
        self._silent_s: dict[str, float] = {}
        self._stored = 0
        settings = session.settings
        places, budget = settings.max_llm_requests, settings.max_cost
        here = on_node(ray.get_runtime_context().get_node_id())
        self._desk = ray.remote(Desk).options(**here).remote(places, budget)

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """Judge answers for as long as this is entered."""
        owner = asyncio.create_task(self._judge_all())
        owner.add_done_callback(self._pass_on_failure)
        try:
            yield
        finally:
            owner.cancel()
            await asyncio.gather(owner, return_exceptions=True)
            await self._hear()

    def _pass_on_failure(self, owner: asyncio.Task[None]) -> None:
        error = None if owner.cancelled() else owner.exception()
        if error is None:
            return
        for each in [one for answers in self._waiting.values() for one in answers]:
            each.judged.set_exception(error)

    async def judged(self, job: AnswerJob) -> tuple[str | None, bool]:
        """Have a node judge an answer, and write its files.

        Return why it has no result, and whether an earlier one was taken.

        Raises:
            UsageError: no answer can be judged.
            Mind2Web2Error: no node is left.
        """
        waiting = _Waiting(job, asyncio.get_running_loop().create_future())
        self._waiting.setdefault(job.task_id, []).append(waiting)
        judged = await waiting.judged
        await asyncio.to_thread(self._write, job, judged)
        name = job.answer.name
        return judged.part.reasons.get(name), name in judged.part.reused

    def _write(self, job: AnswerJob, judged: Judged) -> None:
        """Write an answer's files, results last."""
        root = self._session.settings.paths.eval_results_root
        own = f"eval_results/{job.agent_name}/{job.task_id}/{job.answer.stem}/"
        files = {name: file for name, file in judged.files.items() if name.startswith(own)}
        in_order = sorted(files, key=lambda name: "/results/" in name)
        write_files(root, {name.removeprefix("eval_results/"): files[name] for name in in_order})

    async def _judge_all(self) -> None:
        running: set[asyncio.Task[_Batch | None]] = set()
        again: list[_Batch] = []
        with_nodes_s = asyncio.get_running_loop().time()
        try:
            while True:
                await self._look_for_nodes()
                await self._hear()
                while (node := self._free_node(again)) and (batch := self._next_batch(again)):
                    node.running += 1
                    running.add(asyncio.create_task(self._attempt(batch, node)))
                now_s = asyncio.get_running_loop().time()
                if running or not (self._waiting or again):
                    with_nodes_s = now_s
                if now_s - with_nodes_s > _LONGEST_WITHOUT_NODE_S:
                    raise Mind2Web2Error("no node of the Ray cluster is left: run it again")
                if running:
                    done, running = await asyncio.wait(
                        running, timeout=_LOOK_EVERY_S, return_when=asyncio.FIRST_COMPLETED
                    )
                    again += [batch for each in done if (batch := each.result()) is not None]
                else:
                    await asyncio.sleep(_LOOK_EVERY_S / 10)
        finally:
            for each in running:
                each.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    def _next_batch(self, again: list[_Batch]) -> _Batch | None:
        if again:
            return again.pop(0)
        for task_id, waiting in self._waiting.items():
            answers, rest = waiting[:_MAX_ANSWERS], waiting[_MAX_ANSWERS:]
            self._waiting[task_id] = rest
            if not rest:
                del self._waiting[task_id]
            self._calls += 1
            return _Batch(self._calls, answers)
        return None

    async def _look_for_nodes(self) -> None:
        listed = await asyncio.to_thread(self._ray.nodes)
        alive = {each["NodeID"]: each for each in listed if each["Alive"]}
        self._nodes = {
            node_id: self._nodes.get(node_id) or _node(node_id, facts)
            for node_id, facts in alive.items()
        }

    def _free_node(self, again: Sequence[_Batch]) -> _Node | None:
        """Return the node with the fewest calls, if any has a place."""
        now_s = asyncio.get_running_loop().time()
        lost = set(again[0].losses) if again else set()
        nodes = [each for each in self._nodes.values() if each.running < each.places]
        sound = [each for each in nodes if each.avoided_until_s <= now_s]
        others = [each for each in sound if each.name not in lost]
        return min(others or sound, key=lambda node: node.running, default=None)

    async def _attempt(self, batch: _Batch, node: _Node) -> _Batch | None:
        """Have a node judge answers; return them if the node is lost."""
        task_id = batch.answers[0].job.task_id
        try:
            judged = await self._judged(batch, node)
        except _LostError as error:
            node.avoided_until_s = asyncio.get_running_loop().time() + _AVOIDED_S
            batch.losses.append(node.name)
            log.warning("%s begins again elsewhere: %s is lost: %s", task_id, node.name, error)
            if len(batch.losses) < _MAX_LOSSES:
                return batch
            reason = f"{_MAX_LOSSES} nodes were lost with it: {', '.join(batch.losses)}"
            names = [each.job.answer.name for each in batch.answers]
            judged = Judged(part=JudgedPart(dict.fromkeys(names, reason)))
        except BaseException as error:
            for each in batch.answers:
                each.judged.set_exception(error)
            raise
        finally:
            node.running -= 1
        for each in batch.answers:
            each.judged.set_result(judged)
        return None

    async def _judged(self, batch: _Batch, node: _Node) -> Judged:
        """Return what a call returns.

        Raises:
            _LostError: the node ended, gives no news, or cannot judge.
            UsageError: no answer can be judged.
        """
        job, name = batch.answers[0].job, batch.name
        shared, own, judgments = await asyncio.to_thread(self._inputs, batch)
        order = self._order(job.agent_name)
        options = {**on_node(node.node_id), "max_retries": 0}
        call = self._task.options(**options)
        # Ray keeps the pages once for all calls of a node that get the same object.
        pages = await asyncio.to_thread(self._ray.put, shared)
        reference = call.remote(order, job.task_id, pages, own, judgments, self._desk, name)
        future = asyncio.wrap_future(reference.future())
        try:
            await self._until_done(future, name, node)
            judged: Judged = await future
        except self._errors.RayTaskError as error:
            raise Mind2Web2Error(f"a node failed: {error.cause!r}") from error
        except self._errors.RayError as error:
            raise _LostError(" ".join(str(error).split())[:300]) from error
        finally:
            with suppress(self._errors.RayError, ValueError, TypeError):
                self._ray.cancel(reference, force=True)
            self._desk.end.remote(name)
        self._keep(judged)
        if judged.unusable_judge is not None:
            raise UsageError(f"{judged.unusable_judge} (node {node.name})")
        if judged.problem is not None:
            raise _LostError(judged.problem)
        node.has_answered = True
        return judged

    async def _until_done(self, future: asyncio.Future[Any], name: str, node: _Node) -> None:
        """Wait for a call, as long as it gives news.

        Raises:
            _LostError: it gives none.
        """
        waited_s = 0
        while not future.done():
            # Seconds of this loop: if this process was stopped, it has not listened.
            await asyncio.wait({future}, timeout=1.0)
            waited_s += 1
            silent_s = self._silent_s.get(name)
            patience_s = _SILENT_AFTER_S if node.has_answered else _LONGEST_START_S
            if silent_s is None and waited_s > patience_s + _SILENT_AFTER_S:
                raise _LostError(f"it did not begin for {waited_s} s")
            if silent_s is not None and silent_s > _SILENT_AFTER_S:
                raise _LostError(f"it gave no news for {silent_s:.0f} s")

    async def _hear(self) -> None:
        """Take the news of all calls from the desk."""
        news: DeskNews = await asyncio.wrap_future(self._desk.news.remote(self._stored).future())
        self._silent_s = news.silent_s
        await asyncio.to_thread(self._store, news.judgments)
        self._stored += len(news.judgments)

    def _store(self, judgments: Sequence[str]) -> None:
        self._session.store.add_texts(judgments)

    def _keep(self, judged: Judged) -> None:
        """Keep the judgments and the usage of a call."""
        self._store(judged.judgments)
        self._session.judge.usage.add(judged.part.usage)
        budget = self._session.judge.budget
        if budget is not None:
            budget.correct(judged.part.usage.total().asked.cost_usd or 0.0)

    def _order(self, agent_name: str) -> Order:
        settings = self._session.settings
        variables = {
            name: text for name, text in os.environ.items() if name.upper().startswith(_VARIABLES)
        }
        return Order(
            # A page that is not stored stays away: `cache --engine ray` captures ahead.
            replace(settings, engine="plain", no_capture=True),
            agent_name,
            variables,
            __version__,
        )

    def _inputs(self, batch: _Batch) -> tuple[Files, Files, list[str]]:
        """Return script and pages of a task, its answers with their results, and judgments."""
        job = batch.answers[0].job
        pages = f"cache/{job.agent_name}/{job.task_id}"
        scripts = f"eval_scripts/{job.script_version}"
        shared = {
            **_below(pages, job.task_cache.task_dir),
            **_below(scripts, job.script_path.parent),
        }
        own: Files = {}
        results = AgentResults(self._session.settings.paths.eval_results_root, job.agent_name)
        for each in batch.answers:
            answer = each.job.answer
            target = f"answers/{job.agent_name}/{job.task_id}"
            for path in answer.path.parent.glob(f"{answer.stem}.*"):
                own[f"{target}/{path.name}"] = path.read_bytes(), path.stat().st_mtime
            below = f"eval_results/{job.agent_name}/{job.task_id}/{answer.stem}/results"
            stored = results.newest(job.task_id, answer.name)
            if stored is not None:
                modified = stored.path.stat().st_mtime
                own[f"{below}/{stored.path.name}"] = stored.path.read_bytes(), modified
        return shared, own, self._session.store.texts_of_task(job.task_id)


def _below(name: str, folder: Path) -> Files:
    return {f"{name}/{path}": file for path, file in files_below(folder, folder).items()}


def _node(node_id: str, facts: Any) -> _Node:
    processors = int(facts["Resources"].get("CPU", 0))
    places = min(max(processors // _PROCESSORS_A_CALL, 1), _MAX_CALLS_A_NODE)
    return _Node(node_id, f"{facts['NodeManagerHostname']} {node_id[:6]}", places)
