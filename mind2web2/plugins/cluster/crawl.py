"""Captures for a crawl on the nodes of a Ray cluster: each host's pages on one node."""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import logging
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from mind2web2 import __version__
from mind2web2.capture.browser_manager import BatchBrowserManager
from mind2web2.capture.models import CapturedPage, CaptureSettings
from mind2web2.errors import MachineError
from mind2web2.plugins.cluster.connection import connect_ray, on_node
from mind2web2.plugins.cluster.engine import MAX_FAILURES, MAX_LOSSES
from mind2web2.plugins.cluster.shard import version_problem
from mind2web2.urls.parts import normalize_url_for_browser

log = logging.getLogger(__name__)

# Nodes that join are looked for so often while pages are captured.
_LOOK_EVERY_S = 5.0
# Calls at once of an actor, far more than pages.
_MAX_CALLS = 10_000


@dataclass(frozen=True)
class BrowserSetup:
    """The browser of each node; ``settings`` may hold passwords, and travel in a call."""

    settings: CaptureSettings
    max_pages: int
    max_retries: int
    version: str = __version__


class CaptureActor:
    """Captures pages with a browser of its node."""

    def __init__(self) -> None:
        self._exits = AsyncExitStack()
        self._setup: BrowserSetup
        self._opening = asyncio.Lock()
        self._browser: Any = None

    async def open(self, setup: BrowserSetup) -> str | None:
        """Note how to start the browser, and return in one line why this is impossible here."""
        self._setup = setup
        return version_problem(setup.version)

    async def capture(self, url: str, is_patient: bool) -> CapturedPage | str:
        """Return what a page yielded, or in one line why there is no browser."""
        try:
            page: CapturedPage = await (await self._shared_browser()).capture(
                url, is_patient=is_patient
            )
        except MachineError as error:
            return str(error)
        return page

    async def _shared_browser(self) -> Any:
        setup = self._setup
        async with self._opening:
            if self._browser is None:
                browser = BatchBrowserManager(
                    setup.settings.headless,
                    setup.max_pages,
                    setup.max_retries,
                    settings=setup.settings,
                )
                self._browser = await self._exits.enter_async_context(browser)
            return self._browser

    async def close(self) -> None:
        """Close the browser."""
        await self._exits.aclose()


class RayCapturer:
    """Captures pages on all nodes, those of a host on one of them; a lost node's on another."""

    def __init__(self, ray: Any, setup: BrowserSetup) -> None:
        self._ray = ray
        self._setup = setup
        self._errors = importlib.import_module("ray.exceptions")
        self._actors: dict[str, Any] = {}
        # Nodes whose actor starts, and how often each node failed since it captured a page.
        self._starting: dict[str, asyncio.Task[None]] = {}
        self._failures: Counter[str] = Counter()
        self._looking = asyncio.Lock()
        self._look_at_s = 0.0
        self._problems: list[str] = []

    async def capture(
        self,
        url: str,
        logger: logging.Logger | None = None,
        *,
        is_patient: bool = False,
    ) -> CapturedPage:
        """Return a page's content and record, as ``PageCapturer`` promises.

        Raises:
            MachineError: no node has a browser, or several were lost with the page.
        """
        for _ in range(MAX_LOSSES):
            await self._look_for_nodes()
            if not self._actors:
                raise MachineError(
                    f"no node of the Ray cluster captures pages: {'; '.join(self._problems)}"
                )
            node_id = node_for(url, self._actors)
            actor = self._actors[node_id]
            try:
                page = await actor.capture.remote(url, is_patient)
            except self._errors.RayTaskError as error:
                raise MachineError(f"node {node_id[:6]} failed: {error.cause}") from error
            except self._errors.RayError as error:
                page = str(error)
            if isinstance(page, CapturedPage):
                self._failures.pop(node_id, None)
                (logger or log).info("page captured url=%s kind=%s", url, page.record.kind)
                return page
            if self._actors.get(node_id) is actor:
                del self._actors[node_id]
                self._note_failure(node_id, page)
        raise MachineError(f"{MAX_LOSSES} nodes were lost while they captured {url}")

    async def _look_for_nodes(self) -> None:
        """Start an actor on each node that has none, and wait for them if no other node has one."""
        loop = asyncio.get_running_loop()
        async with self._looking:
            if loop.time() < self._look_at_s and self._actors:
                return
            nodes = await asyncio.to_thread(self._ray.nodes)
            alive = {node["NodeID"] for node in nodes if node["Alive"]}
            for node_id in alive - self._actors.keys() - self._starting.keys():
                if self._failures[node_id] < MAX_FAILURES:
                    self._starting[node_id] = asyncio.create_task(self._start(node_id))
            self._look_at_s = loop.time() + _LOOK_EVERY_S
            if self._starting and not self._actors:
                await asyncio.wait(self._starting.values())

    async def _start(self, node_id: str) -> None:
        options = {
            "num_cpus": 0,
            "max_concurrency": _MAX_CALLS,
            "scheduling_strategy": on_node(node_id),
        }
        actor = self._ray.remote(CaptureActor).options(**options).remote()
        try:
            problem = await actor.open.remote(self._setup)
        except self._errors.RayError as error:
            problem = str(error)
        if problem is None:
            self._actors[node_id] = actor
        else:
            self._note_failure(node_id, problem)
        del self._starting[node_id]

    def _note_failure(self, node_id: str, reason: str) -> None:
        self._failures[node_id] += 1
        text = " ".join(reason.split())
        if text not in self._problems:
            self._problems.append(text)
            log.warning("Node %s captures no pages: %s", node_id[:6], text[:300])

    async def close(self) -> None:
        """Close the browsers."""
        for task in self._starting.values():
            task.cancel()
        closing = [actor.close.remote() for actor in self._actors.values()]
        await asyncio.gather(*closing, return_exceptions=True)


def node_for(url: str, names: Iterable[str]) -> str:
    """Return the node that captures a URL's host; as nodes come and go, few hosts change theirs."""
    host = urlsplit(normalize_url_for_browser(url)).hostname
    return max(names, key=lambda name: hashlib.sha256(f"{name} {host}".encode()).digest())


@asynccontextmanager
async def ray_capturer(address: str | None, setup: BrowserSetup) -> AsyncIterator[RayCapturer]:
    """Connect to a cluster and yield what captures pages there.

    Raises:
        UsageError: as ``connect_ray``.
    """
    async with connect_ray(address) as ray:
        capturer = RayCapturer(ray, setup)
        try:
            yield capturer
        finally:
            await capturer.close()
