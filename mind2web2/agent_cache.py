"""An agent's pages on disk: a cache for each task, and the list of cited URLs beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mind2web2.citations import write_citations
from mind2web2.crawl_plan import CitedPage, TaskPages
from mind2web2.discovery import one_spelling_each
from mind2web2.utils.cache_filesys import CacheFileSys
from mind2web2.utils.cache_pages import file_names_in
from mind2web2.utils.url_key import lookup_key, storage_key


@dataclass(frozen=True, slots=True)
class TaskCitations:
    """The URLs that the answers to a task cite, by answer file."""

    task_id: str
    urls_by_answer: Mapping[str, Sequence[str]]

    def urls(self) -> list[str]:
        """Return one spelling of each cited page."""
        return one_spelling_each(url for urls in self.urls_by_answer.values() for url in urls)


class AgentCache:
    """The page caches of an agent's tasks, and the list of cited URLs beside each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._caches: dict[str, CacheFileSys] = {}

    def of(self, task_id: str) -> CacheFileSys:
        """Return the cache of a task."""
        if task_id not in self._caches:
            self._caches[task_id] = CacheFileSys(self.folder / task_id)
        return self._caches[task_id]

    def holders(self) -> dict[str | None, list[CacheFileSys]]:
        """Return which tasks' caches, selected or not, have a page, by what its spellings share."""
        found: dict[str | None, list[CacheFileSys]] = {}
        for name in sorted(file_names_in(self.folder)):
            if (self.folder / name / "index.json").exists():
                for url in self.of(name).get_all_urls():
                    found.setdefault(lookup_key(url), []).append(self.of(name))
        return found

    def pages_of(self, citations: TaskCitations) -> TaskPages:
        """Return a task's cited pages as they are stored now; reads every record."""
        cache = self.of(citations.task_id)
        records = cache.capture_records()
        by_page = {lookup_key(url): record for url, record in records.items()}
        pages = []
        for url in citations.urls():
            kind = cache.has(url)
            record = records.get(storage_key(url)) or by_page.get(lookup_key(url))
            pages.append(CitedPage(url, kind, record if record and record.kind == kind else None))
        return TaskPages(citations.task_id, tuple(pages))

    def list_citations(self, citations: TaskCitations) -> None:
        """Write the list of a task's cited URLs, with what is cached of them."""
        write_citations(self.folder, citations.task_id, citations.urls_by_answer, self.of(citations.task_id))
