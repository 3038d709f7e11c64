"""``--engine ray``: the commands ``evaluate`` and ``cache`` on a Ray cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from mind2web2.capture.models import CaptureSettings, PageCapturer
from mind2web2.cli.evaluate_run import run_evaluation
from mind2web2.errors import UsageError
from mind2web2.hooks import AnswerRunner
from mind2web2.plugins.cluster.connection import connect_ray
from mind2web2.plugins.cluster.crawl import BrowserSetup, ray_capturer
from mind2web2.plugins.cluster.engine import ShardEngine
from mind2web2.plugins.cluster.postgres import SharedJudgmentStore
from mind2web2.plugins.cluster.settings import ClusterSettings, engine_conflicts
from mind2web2.plugins.cluster.shard import RunOrder
from mind2web2.results.answers import TaskWork
from mind2web2.runs.session import Session
from mind2web2.runs.settings import RunSettings
from mind2web2.utils.path_config import PathConfig


class RayEngine:
    """Runs a command's work on the nodes of a Ray cluster."""

    def evaluate(
        self,
        settings: RunSettings,
        agent_name: str,
        paths: PathConfig,
        work: Sequence[TaskWork],
    ) -> int:
        """Evaluate the work and return the exit status.

        Raises:
            UsageError: a setting contradicts the engine, or there is no such cluster.
        """
        for conflict in engine_conflicts(settings):
            raise UsageError(conflict)
        nodes = _Nodes(settings, agent_name)
        return run_evaluation(settings, agent_name, paths, work, elsewhere=nodes)

    def capturer(
        self,
        settings: RunSettings,
        capture: CaptureSettings,
        pages_at_once: int,
        retries: int,
    ) -> AbstractAsyncContextManager[PageCapturer]:
        """Open what captures pages on all nodes."""
        setup = BrowserSetup(capture, pages_at_once, retries)
        return ray_capturer(settings.of(ClusterSettings).ray_address, setup)


@dataclass
class _Nodes:
    """The nodes that evaluate the answers of a run."""

    settings: RunSettings
    agent_name: str
    ray: Any = None

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[None]:
        """Connect to the cluster."""
        address = self.settings.of(ClusterSettings).ray_address
        async with connect_ray(address) as self.ray:
            yield

    @asynccontextmanager
    async def at_work(
        self, session: Session, work: Sequence[TaskWork]
    ) -> AsyncIterator[AnswerRunner]:
        """Have the nodes judge the work."""
        judge = session.judge
        store = session.store
        assert isinstance(store, SharedJudgmentStore), "engine_conflicts refuses others"
        order = RunOrder.of(self.settings, self.agent_name, session.parts.judge_check, judge.budget)
        engine = ShardEngine(
            self.ray, order, work, judge.usage, store, judge.endpoint, judge.budget
        )
        async with engine.judge_shards():
            yield engine


ENGINE = RayEngine()
