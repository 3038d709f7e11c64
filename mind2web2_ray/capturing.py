"""Captures of ``cache`` on the nodes of a Ray cluster: each host's pages on one node."""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from mind2web2 import __version__
from mind2web2.plugin import (
    BrowserSetup,
    CapturedPage,
    Mind2Web2Error,
)
from mind2web2_ray.connection import connect_ray, on_node, version_problem

log = logging.getLogger(__name__)

_LOOK_EVERY_S = 5.0
_MAX_LOSSES = 3
# Calls at once of an actor, far more than pages.
_MAX_CALLS = 10_000


class NodeBrowser:
    """An actor that captures pages with a browser of its node."""

    def __init__(self, setup: BrowserSetup, version: str) -> None:
        self._browser = setup.browser()
        self._version = version
        self._exits = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._is_open = False

    async def capture(self, url: str, is_patient: bool) -> CapturedPage | str:
        """Return what a page yielded, or in one line why this node captures none."""
        if problem := version_problem(self._version):
            return problem
        try:
            async with self._opening:
                if not self._is_open:
                    await self._exits.enter_async_context(self._browser)
                    self._is_open = True
            return await self._browser.capture(url, is_patient=is_patient)
        except Mind2Web2Error as error:
            return str(error)

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
        # Nodes that cannot capture, each with the reason.
        self._problems: dict[str, str] = {}
        self._looking = asyncio.Lock()
        self._look_at_s = 0.0

    async def capture(
        self,
        url: str,
        logger: logging.Logger | None = None,
        *,
        is_patient: bool = False,
    ) -> CapturedPage:
        """Return a page's content and record, as ``PageCapturer`` promises.

        Raises:
            Mind2Web2Error: no node has a browser, or several were lost with the page.
        """
        for _ in range(_MAX_LOSSES):
            await self._look_for_nodes()
            if not self._actors:
                reasons = "; ".join(dict.fromkeys(self._problems.values()))
                raise Mind2Web2Error(f"no node of the Ray cluster captures pages: {reasons}")
            node_id = node_for(url, self._actors)
            actor = self._actors[node_id]
            try:
                page = await asyncio.wrap_future(actor.capture.remote(url, is_patient).future())
            except self._errors.RayTaskError as error:
                raise Mind2Web2Error(f"node {node_id[:6]} failed: {error.cause}") from error
            except self._errors.RayError as error:
                page = str(error)
            if isinstance(page, CapturedPage):
                (logger or log).info("page captured url=%s kind=%s", url, page.record.kind)
                return page
            self._leave_out(node_id, page)
        raise Mind2Web2Error(f"{_MAX_LOSSES} nodes were lost while they captured {url}")

    async def _look_for_nodes(self) -> None:
        """Start an actor on each node that has none."""
        async with self._looking:
            now_s = asyncio.get_running_loop().time()
            if now_s < self._look_at_s and self._actors:
                return
            self._look_at_s = now_s + _LOOK_EVERY_S
            nodes = await asyncio.to_thread(self._ray.nodes)
            alive = {node["NodeID"] for node in nodes if node["Alive"]}
            for node_id in alive - self._actors.keys() - self._problems.keys():
                options = {"max_concurrency": _MAX_CALLS, **on_node(node_id)}
                kind = self._ray.remote(NodeBrowser).options(**options)
                self._actors[node_id] = kind.remote(self._setup, __version__)

    def _leave_out(self, node_id: str, reason: str) -> None:
        self._actors.pop(node_id, None)
        text = " ".join(reason.split())[:300]
        if node_id not in self._problems:
            log.warning("Node %s captures no pages: %s", node_id[:6], text)
        self._problems[node_id] = text

    async def close(self) -> None:
        """Close the browsers."""
        closing = [actor.close.remote().future() for actor in self._actors.values()]
        await asyncio.gather(*map(asyncio.wrap_future, closing), return_exceptions=True)


def node_for(url: str, names: Iterable[str]) -> str:
    """Return the node that captures a URL's host; as nodes come and go, few hosts change theirs."""
    host = urlsplit(url if "://" in url else f"https://{url}").hostname
    return max(names, key=lambda name: hashlib.sha256(f"{name} {host}".encode()).digest())


@asynccontextmanager
async def ray_capturer(setup: BrowserSetup) -> AsyncIterator[RayCapturer]:
    """Connect to a cluster and yield what captures pages there.

    Raises:
        UsageError: as ``connect_ray``.
    """
    async with connect_ray() as ray:
        capturer = RayCapturer(ray, setup)
        try:
            yield capturer
        finally:
            await capturer.close()
