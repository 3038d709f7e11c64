"""The pages that an agent's answers cite, as the caches of its tasks have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mind2web2.capture.models import CaptureRecord, PageKind
from mind2web2.pages.cache import CacheFileSys
from mind2web2.pages.cache_files import file_names_in
from mind2web2.pages.citations import (
    as_cited,
    write_citations,
)
from mind2web2.urls.parts import lookup_key, storage_key

# Doubtful ones are missing or suspect.
Choice = Literal["missing", "failed", "suspect", "doubtful", "all"]


@dataclass(frozen=True, slots=True)
class CitedPage:
    """One cited page as the task's cache has it: stored, failed or neither."""

    url: str
    kind: PageKind | None
    record: CaptureRecord | None

    @property
    def is_suspect(self) -> bool:
        """Return whether it is stored and looks wrong."""
        return self.record is not None and self.record.is_suspect

    @property
    def failure(self) -> str | None:
        """Return why its capture failed; ``None`` if it is stored or was never tried."""
        if self.kind is not None or self.record is None:
            return None
        return self.record.failure or "it yielded nothing"

    def is_chosen(self, choice: Choice) -> bool:
        """Return whether a run captures the page."""
        if choice == "suspect":
            return self.is_suspect
        if choice == "failed":
            return self.kind is None and self.record is not None
        if choice == "all" or (choice == "doubtful" and self.is_suspect):
            return True
        # A server that was out of order sent an error instead of the page.
        return self.kind is None or (self.record is not None and self.record.is_transient)


@dataclass(frozen=True, slots=True)
class TaskPages:
    """The pages that a task's answers cite."""

    task_id: str
    pages: tuple[CitedPage, ...]


@dataclass(frozen=True, slots=True)
class TaskCitations:
    """The URLs that the answers to a task cite, by answer file, as the answers spell them."""

    task_id: str
    urls_by_answer: Mapping[str, Sequence[str]]

    def urls(self) -> list[str]:
        """Return each cited page once, as it is cited first."""
        return as_cited(url for urls in self.urls_by_answer.values() for url in urls)


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
        """Return the caches that have a page, of all tasks, by the lookup key of its URL."""
        caches: dict[str | None, list[CacheFileSys]] = {}
        for name in sorted(file_names_in(self.folder)):
            if (self.folder / name / "index.json").exists():
                for url in self.of(name).get_all_urls():
                    caches.setdefault(lookup_key(url), []).append(self.of(name))
        return caches

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
        """Write the list of a task's cited URLs, with the kinds of the cached ones."""
        write_citations(
            self.folder,
            citations.task_id,
            citations.urls_by_answer,
            self.of(citations.task_id),
        )
