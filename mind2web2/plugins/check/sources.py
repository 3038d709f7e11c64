"""The pages of a report's sources: captured before the judge is asked, and as hints see them."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from mind2web2.capture.browser_manager import BatchBrowserManager
from mind2web2.capture.models import CapturedPage, CaptureRecord
from mind2web2.capture.pdf import text_of
from mind2web2.errors import CacheMiss, DocumentError
from mind2web2.pages.cache import CacheFileSys
from mind2web2.pages.crawl import (
    AgentCache,
    Archive,
    CrawlProgress,
    TaskCitations,
    crawl,
)
from mind2web2.plugins.check.rubric import page_address
from mind2web2.plugins.check.verdicts import UNREADABLE
from mind2web2.runs.capturing import capture_settings
from mind2web2.runs.settings import RunSettings

log = logging.getLogger(__name__)

_DOI = re.compile(r"\b10\.\d{4,9}/[^\s?#\"<>]+")
# Publishers add these to a DOI in the addresses of a paper's forms.
_FORM_OF_PAPER = re.compile(
    r"(?:\.pdf|[./](?:full|pdf|epdf|abstract|fulltext|meta|pdfdirect|full-text|html))+$",
    re.IGNORECASE,
)
_LANDING_PAGE = "the page itself could not be read; its DOI's landing page is shown"
_PAGES_AT_ONCE = 5
_RETRIES = 1
_RETRACTED = re.compile(
    r"\b(?:retracted(?: article)?:|retraction(?: notice| of)?:|this (?:article|paper) has been retracted)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class SourcePage:
    """A source as it was found.

    Args:
        problem: why it could not be read, in words that begin with ``dead``, ``walled`` or ``invented``.
        read_at: the address whose page was read.
        is_stand_in: an archive's copy or a DOI's landing page was read.
        content: a digest; equal for sources that have the same page.
    """

    source: str
    text: str = ""
    title: str = ""
    problem: str | None = None
    read_at: str = ""
    is_stand_in: bool = False
    content: str | None = None

    @property
    def is_retracted(self) -> bool:
        """Tell whether the page itself says that the work was retracted."""
        return bool(_RETRACTED.search(f"{self.title}\n{self.text[:3000]}"))


@dataclass(frozen=True)
class Capturing:
    """Captures the pages of a report.

    Args:
        archive_url: an archive with the Internet Archive's availability API.
        uses_archive: its copy is read where a page is unavailable or walled.
        doi_url: leads to the landing page of each DOI.
    """

    settings: RunSettings
    cache: AgentCache
    task_id: str
    archive_url: str
    uses_archive: bool = False
    doi_url: str = "https://doi.org"

    @property
    def pages(self) -> CacheFileSys:
        """Return the cache of the report's pages."""
        return self.cache.of(self.task_id)

    async def capture(
        self, sources: Sequence[str], moment: datetime | None, progress: CrawlProgress
    ) -> None:
        """Capture what is not stored yet.

        Args:
            moment: the report's date; an archive's copy of that time is preferred to the page of today.
        """
        addresses = list(dict.fromkeys(map(page_address, sources)))
        if moment is not None:
            await self._from_archive(addresses, moment)
        citations = TaskCitations(self.task_id, {"report": addresses})
        archive = Archive(self.archive_url, {}) if self.uses_archive else None
        await crawl([citations], self.cache, self._browser, progress, archive=archive)
        await self._from_landing_pages(addresses)

    def _browser(self) -> BatchBrowserManager:
        settings = capture_settings(self.settings)
        return BatchBrowserManager(settings.headless, _PAGES_AT_ONCE, _RETRIES, settings=settings)

    async def _from_archive(self, addresses: Sequence[str], moment: datetime) -> None:
        missing = [url for url in addresses if self.pages.has(url) is None]
        if not missing:
            return
        archive = Archive(self.archive_url, {})
        limit = asyncio.Semaphore(_PAGES_AT_ONCE)
        async with self._browser() as browser:

            async def copied(url: str) -> None:
                async with limit:
                    page = await archive.copy_for(_not_captured(url), moment, browser)
                if page is not None:
                    await asyncio.to_thread(self.pages.put_capture, page, url=url)

            await asyncio.gather(*map(copied, missing))

    async def _from_landing_pages(self, addresses: Sequence[str]) -> None:
        """Read the DOI's landing page where a page is walled or was not there."""
        wanted = {url: landing for url in addresses if (landing := self._landing_page(url))}
        if not wanted:
            return
        async with self._browser() as browser:
            for url, landing in wanted.items():
                page = await browser.capture(landing, log)
                if page.record.kind is None or page.record.is_suspect:
                    continue
                note = f"{_LANDING_PAGE}: {landing}"
                record = page.record.model_copy(
                    update={"requested_url": url, "notes": (*page.record.notes, note)}
                )
                put = self.pages.put_capture
                await asyncio.to_thread(put, replace(page, record=record), url=url)

    def _landing_page(self, url: str) -> str | None:
        doi = _DOI.search(url)
        if doi is None or "doi.org/" in url or source_page(self.pages, url).problem is None:
            return None
        name = _FORM_OF_PAPER.sub("", doi[0].rstrip("/."))
        return f"{self.doi_url}/{name}"


def _not_captured(url: str) -> CapturedPage:
    now = datetime.now(UTC).isoformat()
    reason = "the copy of the report's time is preferred"
    return CapturedPage(
        CaptureRecord(requested_url=url, final_url=url, kind=None, captured_at=now, failure=reason)
    )


def source_page(pages: CacheFileSys, source: str) -> SourcePage:
    """Return a source's page as it is stored; reads files."""
    url = page_address(source)
    record, kind = pages.capture_record(url), pages.has(url)
    page = SourcePage(
        source,
        title=record.title if record else "",
        problem=_problem(record, kind is not None, pages.listed_failure(url)),
        read_at=record.archived_from or record.final_url if record else url,
        is_stand_in=record is not None and _is_stand_in(record),
        content=record.sha256 if record else None,
    )
    if kind is None:
        return page
    return replace(page, text=_stored_text(pages, url, kind == "pdf"))


def _is_stand_in(record: CaptureRecord) -> bool:
    has_note = any(note.startswith(_LANDING_PAGE) for note in record.notes)
    return has_note or record.archived_from is not None


def _stored_text(pages: CacheFileSys, url: str, is_pdf: bool) -> str:
    try:
        return text_of(pages.get_pdf(url)) if is_pdf else pages.get_web(url, False)[0]
    except (CacheMiss, DocumentError):
        return ""


def _problem(record: CaptureRecord | None, is_stored: bool, failure: str | None) -> str | None:
    if not is_stored:
        reason = (record and record.failure) or failure or "not captured"
        return f"invented: {reason}" if "there is no host" in reason else f"dead: {reason}"
    kinds = [trouble.kind for trouble in record.troubles] if record else []
    return next((UNREADABLE[kind] for kind in kinds if kind in UNREADABLE), None)
