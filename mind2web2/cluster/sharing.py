"""Shared by the nodes of a run: its budget, the limits of the judge's servers, the captures of each host.

A node works with its share for some seconds without asking, so that no failure elsewhere stalls it:

- dollars are leased from the database, a few percent of the budget at a time, recorded before they are spent
- each node keeps to its share of the limits that a server names, and all pause while a server refuses one
- all pages of a host are captured by one node, so that a host meets the politeness of one machine, and each
  page is captured once
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mind2web2 import __version__
from mind2web2.errors import Mind2Web2Error
from mind2web2.judge.budget import Budget
from mind2web2.judge.shared_store import JudgmentDatabase
from mind2web2.llm_client import LLMClient
from mind2web2.llm_client.chat import Limit
from mind2web2.pages.captures import OpenBrowser, PageCache, SharedCaptures
from mind2web2.urls.parts import normalize_url_for_browser
from mind2web2.utils.files import mirror

log = logging.getLogger(__name__)

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
            if self._allowed_usd > allowed_usd:  # a request that waited for this one's lease
                return True
            if self._is_all_leased:
                return False
            wanted_usd = max(missing_usd, self.max_usd * _LEASE_SHARE / self.nodes)
            leased_usd = await asyncio.to_thread(self._database.lease, self._run, wanted_usd, self.max_usd)
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

    def __init__(self, open_browser: OpenBrowser) -> None:
        super().__init__(open_browser)
        self.cache_root = Path()
        self.own_name = ""
        self.peers: Mapping[str, CaptureThere] = {}
        self._refused_as_private: set[str] = set()

    async def capture_into(
        self, url: str, cache: PageCache, limit: Limit, logger: logging.Logger, *, is_retry: bool = False
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

    async def _captured_there(self, url: str, cache: PageCache, is_retry: bool) -> CaptureReply | None:
        """Have the host's node capture a page; ``None`` if that is this one, or is lost."""
        owner = self.peers.get(node_for(url, (self.own_name, *self.peers)))
        folder = getattr(cache, "task_dir", None)
        if owner is None or folder is None:
            return None
        try:
            reply = await owner(url, folder.relative_to(self.cache_root), is_retry)
        except Exception as error:  # Ray's, of several kinds
            log.info("page is captured here, as its host's node is lost url=%s error=%s", url, error)
            return None
        if mirror(folder).is_remote:
            await asyncio.to_thread(mirror(folder).pull, folder)
        return reply

    async def capture_here(
        self, url: str, cache: PageCache, limit: Limit, logger: logging.Logger, *, is_retry: bool
    ) -> None:
        """Capture a page by this node's browser."""
        await super().capture_into(url, cache, limit, logger, is_retry=is_retry)

    def is_refused_as_private(self, url: str) -> bool:
        """Return whether a node refused a page because its address is private."""
        return url in self._refused_as_private or super().is_refused_as_private(url)


def node_for(url: str, names: Iterable[str]) -> str:
    """Return the node that captures a URL's host; as nodes come and go, few hosts change theirs."""
    host = urlsplit(normalize_url_for_browser(url)).hostname
    return max(names, key=lambda name: hashlib.sha256(f"{name} {host}".encode()).digest())


@dataclass(frozen=True)
class ClusterNews:
    """What a node is told about the others.

    Args:
        nodes: that send requests.
        pauses_s: for how long a server wants no request, by its name, as far as other nodes know.
        own_name: of this node.
        peers: the actors of the other nodes by their names; ``None`` if they are the same as before.
    """

    nodes: int = 1
    pauses_s: Mapping[str, float] = field(default_factory=dict)
    own_name: str = ""
    peers: Mapping[str, Any] | None = None  # Ray's handles have the methods of the class


def share_limits(client: LLMClient, news: ClusterNews) -> None:
    """Keep to this node's share of the servers' limits."""
    for name, limiter in client.limiters().items():
        limiter.share = 1 / news.nodes
        if name in news.pauses_s:
            limiter.pause(news.pauses_s[name])


def pauses_of(client: LLMClient) -> dict[str, float]:
    """Return for how long each server that refused this node wants no request."""
    waits_s = {name: limiter.refused_for_s for name, limiter in client.limiters().items()}
    return {name: wait_s for name, wait_s in waits_s.items() if wait_s > 0}
