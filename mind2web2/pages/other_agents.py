"""Pages of the other agents of a cache root: found, copied with their origin, and never changed.

Versions of one agent cite the same pages.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from glob import escape
from pathlib import Path

from mind2web2.pages.cache import CacheFileSys
from mind2web2.pages.page_cache import PageCache

# Pages change: another agent's capture that is older does not stand for the page that this agent saw.
_RECENT = timedelta(days=30)


class PagesOfOthers:
    """What the other agents of a cache root have of the same tasks."""

    def __init__(self) -> None:
        self._caches: dict[Path, list[CacheFileSys]] = {}

    def source_of(self, url: str, own: CacheFileSys) -> CacheFileSys | None:
        """Return the cache of another agent whose capture of a page serves as well as a new one; reads files.

        Args:
            own: the pages of this agent's task.
        """
        oldest = (datetime.now(UTC) - _RECENT).isoformat()
        for cache in self._of_task(own.task_dir):
            record = cache.capture_record(url)
            if record is None or record.kind is None or record.is_suspect:
                continue
            # What a person or a file put in its place may be one agent's own view.
            is_capture = record.reviewed is None and record.imported_from is None
            if is_capture and record.captured_at >= oldest:
                return cache
        return None

    def copied(self, url: str, own: PageCache) -> bool:
        """Copy a page of another agent that serves as well as a new capture; return whether there is one."""
        if not isinstance(own, CacheFileSys):
            return False  # a script's own, which belongs to no agent
        source = self.source_of(url, own)
        if source is None:
            return False
        copy_from_agent(url, source, own)
        return True

    def _of_task(self, folder: Path) -> list[CacheFileSys]:
        if folder not in self._caches:
            agent, root = folder.parent, folder.parent.parent
            found = sorted(root.glob(f"[!.]*/{escape(folder.name)}/index.json"))
            self._caches[folder] = [
                CacheFileSys(index.parent)
                for index in found
                if index.parent.parent != agent
            ]
        return self._caches[folder]


def copy_from_agent(url: str, source: CacheFileSys, own: CacheFileSys) -> None:
    """Copy a page of another agent; its record names the agent that captured it."""
    own.copy_page(url, source)
    record = own.capture_record(url)
    if record is not None:
        agent = record.copied_from or source.task_dir.parent.name
        own.replace_record(url, record.model_copy(update={"copied_from": agent}))
