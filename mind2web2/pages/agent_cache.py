"""An agent's pages on disk: a cache for each task, and the list of cited URLs beside it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mind2web2.capture.record import CaptureRecord, PageKind
from mind2web2.pages.cache import CacheFileSys
from mind2web2.pages.cache_files import file_names_in
from mind2web2.pages.citations import one_spelling_each, write_citations
from mind2web2.urls.parts import lookup_key, storage_key

_HOST_END = re.compile("[/?#]")

# Doubtful ones are missing or suspect.
Choice = Literal["missing", "failed", "suspect", "doubtful"]


@dataclass(frozen=True, slots=True)
class CitedPage:
    """One page that a task's answers cite, as the task's cache has it: stored, failed or neither."""

    url: str
    kind: PageKind | None
    record: CaptureRecord | None

    @property
    def is_suspect(self) -> bool:
        """Return whether it is stored and looks wrong."""
        return self.kind is not None and self.record is not None and self.record.is_suspect

    @property
    def failure(self) -> str | None:
        """Return why its capture failed; ``None`` if it is stored or was never tried."""
        if self.kind is not None or self.record is None:
            return None
        return self.record.failure or "it yielded nothing"

    def is_chosen(self, choice: Choice) -> bool:
        """Return whether a run with this choice captures the page."""
        if choice == "suspect":
            return self.is_suspect
        if choice == "failed":
            return self.kind is None and self.record is not None
        if choice == "doubtful" and self.is_suspect:
            return True
        # A server that was out of order sent an error instead of the page.
        return self.kind is None or (self.record is not None and self.record.is_transient)


@dataclass(frozen=True, slots=True)
class TaskPages:
    """The pages that a task's answers cite."""

    task_id: str
    pages: tuple[CitedPage, ...]


@dataclass(frozen=True, slots=True)
class PageJob:
    """One page to store, and the tasks that cite it, each with its own spelling of the URL."""

    url: str
    wanted_by: tuple[tuple[str, str], ...]


def page_jobs(tasks: Iterable[TaskPages], choice: Choice) -> list[PageJob]:
    """Return the chosen pages, each once however many tasks cite it."""
    wanted: dict[str, dict[str, str]] = {}
    for task in tasks:
        for page in task.pages:
            if page.is_chosen(choice):
                wanted.setdefault(lookup_key(page.url) or page.url, {}).setdefault(task.task_id, page.url)
    jobs = [PageJob(next(iter(urls.values())), tuple(urls.items())) for urls in wanted.values()]
    return _spread(jobs)


def _spread(jobs: Sequence[PageJob]) -> list[PageJob]:
    """Put the first page of every host before the second of any, so that a slow host delays no other."""
    seen: Counter[str] = Counter()
    ranks = []
    for job in jobs:
        host = _HOST_END.split(lookup_key(job.url) or job.url)[0]
        ranks.append(seen[host])
        seen[host] += 1
    return [jobs[position] for position in sorted(range(len(jobs)), key=lambda position: ranks[position])]


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
        """Return the caches that have a page, of all tasks, by the lookup key of its URL."""
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
        """Write the list of a task's cited URLs, with the kinds of the cached ones."""
        write_citations(self.folder, citations.task_id, citations.urls_by_answer, self.of(citations.task_id))
