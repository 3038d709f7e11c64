"""Capture the pages that an agent's answers cite into the agent's cache, each missing one once."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from mind2web2.capture.record import CapturedPage, CaptureRecord, Trouble
from mind2web2.errors import DocumentError
from mind2web2.pages.agent_cache import AgentCache, Choice, PageJob, TaskCitations, TaskPages, page_jobs
from mind2web2.pages.archive import Archive, PageCapturer
from mind2web2.pages.cache import CacheFileSys
from mind2web2.pages.citations import cited_urls
from mind2web2.pages.link_extraction import LinkJudge
from mind2web2.urls.keys import lookup_key
from mind2web2.utils.aio import all_or_first_error

log = logging.getLogger(__name__)

# Judge requests at once; each is one answer.
_ANSWERS_AT_ONCE = 10


CapturerOpener = Callable[[], AbstractAsyncContextManager[PageCapturer]]


@dataclass(frozen=True, slots=True)
class PageOutcome:
    """The outcome of one page.

    Args:
        record: of the capture; ``None`` for a page that an older tool stored for another task.
        is_copied: another task already had it.
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
    answers_by_task: Mapping[str, Mapping[str, str]], link_judge: LinkJudge | None, progress: CrawlProgress
) -> list[TaskCitations]:
    """Return the citations of answers, given as texts by task and file name."""
    limit = asyncio.Semaphore(_ANSWERS_AT_ONCE)
    progress.answers_total = sum(map(len, answers_by_task.values()))

    progress.is_asking = link_judge is not None and link_judge.is_asking

    async def urls_of(answer: str, name: str) -> list[str]:
        async with limit:
            urls = await asyncio.to_thread(cited_urls, answer)
            urls = [*urls, *(await link_judge.urls(answer, name) if link_judge else ())]
        progress.answers_read += 1
        return urls

    texts = [
        (text, f"{task_id}/{name}")
        for task_id, answers in answers_by_task.items()
        for name, text in answers.items()
    ]
    found = iter(await all_or_first_error(urls_of(text, name) for text, name in texts))
    return [
        TaskCitations(task_id, {name: next(found) for name in answers})
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
    """Store the chosen pages in the tasks' caches, and return all cited pages as they are stored then.

    A browser is opened only if a page has to be captured. Each page is stored at once, so that a run may end
    at any time; the lists of cited URLs are then updated.

    Args:
        archive: asked for a copy of each page that is unavailable or looks wrong.

    Raises:
        MachineError: no browser can be started.
        CacheWriteError: the cache cannot be written.
    """
    run = _Crawl(tasks, cache, progress, choice, archive)
    try:
        left = await run.copy_known(await run.plan())
        if left:
            async with open_capturer() as capturer:
                queue = iter(left)
                # More than are captured at once, since some wait for their host.
                workers = min(len(left), 4 * pages_at_once)
                try:
                    await all_or_first_error(run.work(queue, capturer) for _ in range(workers))
                except asyncio.CancelledError:
                    # Before the browser closes, which may take longer than the process is given.
                    await run.list_citations()
                    raise
    finally:
        await run.list_citations()
    return await asyncio.to_thread(lambda: [cache.pages_of(task) for task in tasks])


class _Crawl:
    def __init__(
        self,
        tasks: Sequence[TaskCitations],
        cache: AgentCache,
        progress: CrawlProgress,
        choice: Choice,
        archive: Archive | None,
    ) -> None:
        self._tasks = {task.task_id: task for task in tasks}
        self._cache = cache
        self._progress = progress
        self._choice: Choice = choice
        self._archive = archive
        self._jobs_left: Counter[str] = Counter()

    async def plan(self) -> list[PageJob]:
        """List the citations of every task, and return the pages to store."""
        pages = []
        for task in self._tasks.values():
            await asyncio.to_thread(self._cache.list_citations, task)
            pages.append(await asyncio.to_thread(self._cache.pages_of, task))
        jobs = page_jobs(pages, self._choice)
        self._progress.pages_cited = len({lookup_key(page.url) for task in pages for page in task.pages})
        self._progress.pages_total = len(jobs)
        self._jobs_left.update(task_id for job in jobs for task_id, _ in job.wanted_by)
        return jobs

    async def copy_known(self, jobs: Sequence[PageJob]) -> list[PageJob]:
        """Copy pages that other tasks have, and return the others."""
        left = []
        holders = await asyncio.to_thread(self._cache.holders) if jobs else {}
        for job in jobs:
            source = await asyncio.to_thread(self._source_of, job, holders.get(lookup_key(job.url), ()))
            if source is None:
                left.append(job)
            else:
                await self._copy(job, source)
        return left

    async def work(self, queue: Iterator[PageJob], capturer: PageCapturer) -> None:
        """Get pages from the queue until none is left."""
        for job in queue:
            # A redirect or another process may have stored it since.
            own = [self._cache.of(task_id) for task_id, _ in job.wanted_by]
            source = await asyncio.to_thread(self._source_of, job, own)
            if source is None:
                await self._capture(job, capturer)
            else:
                await self._copy(job, source)

    async def list_citations(self) -> None:
        """Update the citations of the tasks that still lack pages."""
        for task_id, left in self._jobs_left.items():
            if left:
                await asyncio.to_thread(self._cache.list_citations, self._tasks[task_id])

    def _source_of(self, job: PageJob, caches: Iterable[CacheFileSys]) -> CacheFileSys | None:
        """Return the cache whose copy of the page makes a capture unnecessary."""
        held = [(cache, cache.capture_record(job.url)) for cache in caches if cache.has(job.url)]
        for cache, record in held:
            if record is not None and not record.is_suspect:
                return cache
        if self._choice in ("suspect", "doubtful"):
            return None
        # A server that was out of order sent an error instead of the page.
        lasting = (cache for cache, record in held if record is None or not record.is_transient)
        return next(lasting, None)

    async def _copy(self, job: PageJob, source: CacheFileSys) -> None:
        is_copied = False
        for task_id, url in job.wanted_by:
            own = self._cache.of(task_id)
            if own is not source:
                await asyncio.to_thread(own.copy_page, url, source)
                is_copied = True
        record = await asyncio.to_thread(source.capture_record, job.url)
        await self._done(job, PageOutcome(job.url, record, is_copied=is_copied))

    async def _capture(self, job: PageJob, capturer: PageCapturer) -> None:
        self._progress.running[job.url] = time.monotonic()
        try:
            page = await capturer.capture(job.url, log)
            if self._archive is not None and (page.record.kind is None or page.record.is_suspect):
                page = await self._archive.copy_for(page, self._moment(job), capturer) or page
            is_stored = False
            for task_id, url in job.wanted_by:
                store = partial(_store, self._cache.of(task_id), page, url, self._choice == "missing")
                is_stored = await asyncio.to_thread(store) or is_stored
        finally:
            self._progress.running.pop(job.url, None)
        await self._done(job, PageOutcome(job.url, page.record, is_kept=not is_stored))

    def _moment(self, job: PageJob) -> datetime | None:
        """Return when the first of the answers that cite a page was made."""
        moments = self._archive.moments if self._archive is not None else {}
        page = lookup_key(job.url)
        return min(
            (
                moments[task_id][name]
                for task_id, _ in job.wanted_by
                for name, urls in self._tasks[task_id].urls_by_answer.items()
                if name in moments.get(task_id, ()) and any(lookup_key(url) == page for url in urls)
            ),
            default=None,
        )

    async def _done(self, job: PageJob, outcome: PageOutcome) -> None:
        self._progress.outcomes.append(outcome)
        for task_id, _ in job.wanted_by:
            self._jobs_left[task_id] -= 1
            if not self._jobs_left[task_id]:
                await asyncio.to_thread(self._cache.list_citations, self._tasks[task_id])


def _store(cache: CacheFileSys, page: CapturedPage, url: str, must_be_better: bool) -> bool:
    try:
        return cache.put_capture(page, url=url, must_be_better=must_be_better)
    except DocumentError as error:
        # The text is worth keeping; a note tells the judge that the picture is missing.
        trouble = Trouble(kind="incomplete", detail=f"screenshot left out: {error}")
        record = page.record.model_copy(update={"troubles": (*page.record.troubles, trouble)})
        page = replace(page, record=record, screenshot=None)
        return cache.put_capture(page, url=url, must_be_better=must_be_better)
