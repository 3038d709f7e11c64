"""Pages of the other agents of a cache root: found, copied with their origin, and never changed.

Versions of one agent cite the same pages.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from glob import escape
from pathlib import Path

from mind2web2.capture.models import CaptureRecord
from mind2web2.capture.network.destinations import is_private_url
from mind2web2.errors import CacheReadError
from mind2web2.pages.cache import CacheFileSys
from mind2web2.pages.page_cache import PageCache

log = logging.getLogger(__name__)

# Pages change: another agent's capture that is older does not stand for the page that this agent
# saw.
_RECENT = timedelta(days=30)


class PagesOfOthers:
    """The pages that the other agents of a cache root have of the same tasks.

    Args:
        with_private_network: also pages of private addresses, as a capture of this run may visit
            them.
    """

    def __init__(self, *, with_private_network: bool = False) -> None:
        self._with_private_network = with_private_network
        self._caches: dict[Path, list[CacheFileSys]] = {}

    def source_of(self, url: str, own: CacheFileSys) -> CacheFileSys | None:
        """Return the cache of another agent whose capture of a page serves as well as a new one.

        Reads files.

        Args:
            own: the pages of this agent's task.
        """
        oldest = (datetime.now(UTC) - _RECENT).isoformat()
        for cache in self._of_task(own.task_dir):
            record = _readable_record(url, cache)
            if record is None or record.kind is None or record.is_suspect:
                continue
            # A capture of this run would be refused.
            if not self._with_private_network and _is_private(url, record):
                continue
            # An imported page may be one agent's own view.
            if record.imported_from is None and record.captured_at >= oldest:
                return cache
        return None

    def copy_page(self, url: str, own: PageCache) -> bool:
        """Copy a page of another agent that serves as well as a new capture.

        Return whether there is one.
        """
        if not isinstance(own, CacheFileSys):
            return False  # a script's own, which belongs to no agent
        source = self.source_of(url, own)
        return source is not None and copy_from_agent(url, source, own)

    def _of_task(self, folder: Path) -> list[CacheFileSys]:
        if folder not in self._caches:
            agent, root = folder.parent, folder.parent.parent
            found = sorted(root.glob(f"[!.]*/{escape(folder.name)}/index.json"))
            others = [
                _readable_cache(index.parent) for index in found if index.parent.parent != agent
            ]
            self._caches[folder] = [cache for cache in others if cache is not None]
        return self._caches[folder]


# If the other agent's page cannot be read, this one captures the page.


def _readable_cache(folder: Path) -> CacheFileSys | None:
    try:
        return CacheFileSys(folder)
    except CacheReadError as error:
        log.warning("pages of another agent are left out: %s", error)
        return None


def _readable_record(url: str, cache: CacheFileSys) -> CaptureRecord | None:
    try:
        return cache.capture_record(url)
    except CacheReadError as error:
        log.warning("page of another agent is left out url=%s: %s", url, error)
        return None


def _is_private(url: str, record: CaptureRecord) -> bool:
    """Tell whether a page came from a private network; names are not looked up again."""
    addresses = (url, record.requested_url, record.final_url)
    return record.is_private or any(map(is_private_url, addresses))


def copy_from_agent(url: str, source: CacheFileSys, own: CacheFileSys) -> bool:
    """Copy a page of another agent, whose record names the agent.

    ``False`` if it is there no more.
    """
    if not own.copy_page(url, source):
        return False
    record = own.capture_record(url)
    if record is not None:
        agent = record.copied_from or source.task_dir.parent.name
        own.replace_record(url, record.model_copy(update={"copied_from": agent}))
    return True
