"""Captures of the pages that an agent's answers cite, each missing one once."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from mind2web2.capture.models import CapturedPage, CaptureRecord, PageCapturer
from mind2web2.pages.archive import Archive
from mind2web2.pages.cache import CacheFileSys
from mind2web2.pages.citations import addresses_to_open
from mind2web2.pages.cited_pages import AgentCache, Choice, TaskCitations, TaskPages
from mind2web2.pages.link_judge import LinkJudge
from mind2web2.urls.parts import host_of, lookup_key
from mind2web2.utils.aio import all_or_first_error


@dataclass(frozen=True, slots=True)
class PageJob:
    """One page to store, and the tasks that cite it, each with its own spelling of the URL."""

    url: str
    wanted_by: tuple[tuple[str, str], ...]


def page_jobs(tasks: Iterable[TaskPages], choice: Choice) -> list[PageJob]:
    """Return the chosen pages, each once however many tasks cite it."""
    citing_tasks: dict[str | None, dict[str, str]] = {}
    for task in tasks:
        for page in task.pages:
            if page.is_chosen(choice):
                urls = citing_tasks.setdefault(lookup_key(page.url), {})
                urls.setdefault(task.task_id, page.url)
    jobs = [
        PageJob(next(iter(urls.values())), tuple(urls.items())) for urls in citing_tasks.values()
    ]
    return _spread(jobs)


def _spread(jobs: Sequence[PageJob]) -> list[PageJob]:
    """Let hosts take turns, so that a slow host does not delay others."""
    seen: Counter[str] = Counter()
    ranks = []
    for job in jobs:
        host = _host_of(job)
        ranks.append(seen[host])
        seen[host] += 1
    return [
        jobs[position]
        for position in sorted(range(len(jobs)), key=lambda position: ranks[position])
    ]


def _host_of(job: PageJob) -> str:
    return host_of(job.url).removeprefix("www.")


log = logging.getLogger(__name__)

# Judge requests at once; each is one answer.
_ANSWERS_AT_ONCE = 10


CapturerOpener = Callable[[], AbstractAsyncContextManager[PageCapturer]]


@dataclass(frozen=True, slots=True)
class PageOutcome:
    """The outcome of one page.

    Args:
        record: of the capture; ``None`` for a page that an older tool stored for another task.
        is_copied: from another task, which has it already.
        is_kept: the page stored before is better and stays.
    """

    url: str
    record: CaptureRecord | None
    is_copied: bool = False
    is_kept: bool = False


@dataclass(slots=True)
class CrawlProgress:
    """Progress of a run, for its display.

    Args:
        is_asking: a model is asked for the answers' links.
        running: when the capture of each unfinished page began (``time.monotonic``), in this order.
    """

    is_asking: bool = False
    answers_total: int = 0
    answers_read: int = 0
    pages_cited: int = 0
    pages_total: int = 0
    outcomes: list[PageOutcome] = field(default_factory=list)
    running: dict[str, float] = field(default_factory=dict)


async def find_citations(
    answers_by_task: Mapping[str, Mapping[str, str]],
    link_judge: LinkJudge,
    progress: CrawlProgress,
) -> list[TaskCitations]:
    """Return the citations of answers, given as texts by task and file name."""
    limit = asyncio.Semaphore(_ANSWERS_AT_ONCE)
    progress.answers_total = sum(map(len, answers_by_task.values()))

    progress.is_asking = link_judge.is_asking

    async def urls_of(answer: str, name: str) -> list[str]:
        async with limit:
            urls = await asyncio.to_thread(addresses_to_open, answer)
            urls += await link_judge.urls(answer, name)
        progress.answers_read += 1
        return urls

    texts = [
        (text, f"{task_id}/{name}")
        for task_id, answers in answers_by_task.items()
        for name, text in answers.items()
    ]
    urls_of_answers = iter(await all_or_first_error(urls_of(text, name) for text, name in texts))
    return [
        TaskCitations(task_id, {name: next(urls_of_answers) for name in answers})
        for task_id, answers in answers_by_task.items()
    ]


async def crawl(
    tasks: Sequence[TaskCitations],
    cache: AgentCache,
    open_capturer: CapturerOpener,
    progress: CrawlProgress,
    *,
    choice: Choice = "missing",
    pages_at_once: int = 5,
    archive: Archive | None = None,
) -> list[TaskPages]:
    """Store the chosen pages in the tasks' caches, and return all cited pages.

    A browser is opened only if a page has to be captured. Each page is stored at once, so that a
    run may end at any time; the lists of cited URLs are then updated.

    Args:
        archive: asked for a copy of each page that is unavailable or looks wrong.

    Raises:
        MachineError: no browser can be started.
        CacheWriteError: the cache cannot be written.
    """
    run = _Crawl(
        {task.task_id: task for task in tasks},
        cache,
        progress,
        choice,
        archive,
    )
    try:
        left = await run.copy_known(await run.plan())
        if left:
            async with open_capturer() as capturer:
                queue = iter(left)
                # More than are captured at once, since some wait for their host.
                workers = min(len(left), 4 * pages_at_once)
                try:
                    await all_or_first_error(run.work(queue, capturer) for _ in range(workers))
                    await all_or_first_error(run.wait_again(capturer) for _ in range(workers))
                except asyncio.CancelledError:
                    # Before the browser closes, which may take longer than the process is given.
                    await run.list_citations()
                    raise
    finally:
        await run.list_citations()
    return await asyncio.to_thread(lambda: [cache.pages_of(task) for task in tasks])


@dataclass
class _Crawl:
    tasks: Mapping[str, TaskCitations]
    cache: AgentCache
    progress: CrawlProgress
    choice: Choice
    archive: Archive | None
    _jobs_left: Counter[str] = field(default_factory=Counter)
    _unanswered: deque[tuple[PageJob, CapturedPage]] = field(default_factory=deque)
    _silent_hosts: set[str] = field(default_factory=set)

    async def plan(self) -> list[PageJob]:
        """List the citations of every task, and return the pages to store."""
        pages = []
        for task in self.tasks.values():
            await asyncio.to_thread(self.cache.list_citations, task)
            pages.append(await asyncio.to_thread(self.cache.pages_of, task))
        jobs = page_jobs(pages, self.choice)
        self.progress.pages_cited = len(
            {lookup_key(page.url) for task in pages for page in task.pages}
        )
        self.progress.pages_total = len(jobs)
        self._jobs_left.update(task_id for job in jobs for task_id, _ in job.wanted_by)
        return jobs

    async def copy_known(self, jobs: Sequence[PageJob]) -> list[PageJob]:
        """Copy pages that other tasks have, and return the others."""
        left = []
        holders = await asyncio.to_thread(self.cache.holders) if jobs else {}
        for job in jobs:
            page = lookup_key(job.url)
            source = await asyncio.to_thread(self._source_of, job, holders.get(page, ()))
            if source is None:
                left.append(job)
            else:
                await self._copy(job, source)
        return left

    async def work(self, queue: Iterator[PageJob], capturer: PageCapturer) -> None:
        """Get pages from the queue until none is left."""
        for job in queue:
            # A redirect or another process may have stored it since.
            task_caches = [self.cache.of(task_id) for task_id, _ in job.wanted_by]
            source = await asyncio.to_thread(self._source_of, job, task_caches)
            if source is None:
                await self._capture(job, capturer)
            else:
                await self._copy(job, source)

    async def wait_again(self, capturer: PageCapturer) -> None:
        """Wait longer for pages of a silent server, unless it stays silent for another page."""
        while self._unanswered:
            job, page = self._unanswered.popleft()
            host = _host_of(job)
            if host not in self._silent_hosts:
                self.progress.running[job.url] = time.monotonic()
                try:
                    page = await capturer.capture(job.url, log, is_patient=True)
                finally:
                    self.progress.running.pop(job.url, None)
                if page.is_unanswered:
                    self._silent_hosts.add(host)
            await self._keep(job, page, capturer)

    async def list_citations(self) -> None:
        """Update the citations of the tasks that still lack pages."""
        for task_id, left in self._jobs_left.items():
            if left:
                await asyncio.to_thread(self.cache.list_citations, self.tasks[task_id])

    def _source_of(self, job: PageJob, caches: Iterable[CacheFileSys]) -> CacheFileSys | None:
        """Return the cache whose copy of the page makes a capture unnecessary."""
        if self.choice == "all":
            return None
        held = [(cache, cache.capture_record(job.url)) for cache in caches if cache.has(job.url)]
        for cache, record in held:
            if record is not None and not record.is_suspect:
                return cache
        if self.choice in ("suspect", "doubtful"):
            return None
        # A server that was out of order sent an error instead of the page.
        lasting = (cache for cache, record in held if record is None or not record.is_transient)
        return next(lasting, None)

    async def _copy(self, job: PageJob, source: CacheFileSys) -> None:
        is_copied = False
        for task_id, url in job.wanted_by:
            task_cache = self.cache.of(task_id)
            if task_cache is not source:
                await asyncio.to_thread(task_cache.copy_page, url, source)
                is_copied = True
        record = await asyncio.to_thread(source.capture_record, job.url)
        await self._note_outcome(job, PageOutcome(job.url, record, is_copied=is_copied))

    async def _capture(self, job: PageJob, capturer: PageCapturer) -> None:
        self.progress.running[job.url] = time.monotonic()
        try:
            page = await capturer.capture(job.url, log)
            if page.is_unanswered:
                # It is waited for when nothing else is left to do; a run that ends before keeps the
                # failure.
                self._unanswered.append((job, page))
                await self._store_everywhere(job, page)
                return
            await self._keep(job, page, capturer)
        finally:
            self.progress.running.pop(job.url, None)

    async def _keep(self, job: PageJob, page: CapturedPage, capturer: PageCapturer) -> None:
        if self.archive is not None and (page.record.kind is None or page.record.is_suspect):
            page = await self.archive.copy_for(page, self._moment(job), capturer) or page
        is_stored = await self._store_everywhere(job, page)
        await self._note_outcome(job, PageOutcome(job.url, page.record, is_kept=not is_stored))

    async def _store_everywhere(self, job: PageJob, page: CapturedPage) -> bool:
        is_stored = False
        must_be_better = self.choice == "missing"
        for task_id, url in job.wanted_by:
            put = self.cache.of(task_id).put_capture
            store = partial(put, page, url=url, must_be_better=must_be_better)
            is_stored = await asyncio.to_thread(store) or is_stored
        return is_stored

    def _moment(self, job: PageJob) -> datetime | None:
        """Return when the first of the answers that cite a page was made."""
        moments = self.archive.moments if self.archive is not None else {}
        page = lookup_key(job.url)
        return min(
            (
                moments[task_id][name]
                for task_id, _ in job.wanted_by
                for name, urls in self.tasks[task_id].urls_by_answer.items()
                if name in moments.get(task_id, ()) and any(lookup_key(url) == page for url in urls)
            ),
            default=None,
        )

    async def _note_outcome(self, job: PageJob, outcome: PageOutcome) -> None:
        self.progress.outcomes.append(outcome)
        for task_id, _ in job.wanted_by:
            self._jobs_left[task_id] -= 1
            if not self._jobs_left[task_id]:
                await asyncio.to_thread(self.cache.list_citations, self.tasks[task_id])
