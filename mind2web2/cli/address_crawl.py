"""The pages of some addresses, captured into one folder with a display."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from mind2web2.capture.browser_manager import BatchBrowserManager
from mind2web2.capture.models import CapturedPage
from mind2web2.cli.console import PlainConsole
from mind2web2.cli.crawl_display import CrawlDisplay
from mind2web2.pages.archive import Archive
from mind2web2.pages.cache import CacheFileSys
from mind2web2.pages.cited_pages import AgentCache, TaskCitations
from mind2web2.pages.crawl import CrawlProgress, crawl
from mind2web2.runs.capturing import BrowserSetup
from mind2web2.runs.settings import RunSettings

_PAGES_AT_ONCE, _RETRIES = 5, 1


@dataclass(frozen=True)
class AddressCrawl:
    """Captures the pages of addresses.

    Args:
        console: shows how far it is.
        folder: of the pages.
        archive_url: an archive with the Internet Archive's availability API.
    """

    console: PlainConsole
    settings: RunSettings
    folder: Path
    archive_url: str

    @property
    def pages(self) -> CacheFileSys:
        """Return the stored pages."""
        return CacheFileSys(self.folder)

    def browser(self) -> BatchBrowserManager:
        """Return a browser to open."""
        return BrowserSetup.of(self.settings, _PAGES_AT_ONCE, _RETRIES).browser()

    async def crawl(self, addresses: Sequence[str], *, with_archive: bool) -> None:
        """Capture pages that are not stored yet.

        Args:
            with_archive: take the archive's copy of a page that is unavailable or looks wrong.
        """
        progress = CrawlProgress()
        citations = TaskCitations(self.folder.name, {"addresses": list(addresses)})
        archive = Archive(self.archive_url, {}) if with_archive else None
        cache = AgentCache(self.folder.parent)
        async with CrawlDisplay(self.console, progress):
            await crawl([citations], cache, self.browser, progress, archive=archive)

    async def copy_archived(self, addresses: Sequence[str], moment: datetime) -> None:
        """Store the archive's copies of a moment of pages that are not stored yet."""
        pages, archive = self.pages, Archive(self.archive_url, {})
        missing = [url for url in addresses if pages.has(url) is None]
        if not missing:
            return
        limit = asyncio.Semaphore(_PAGES_AT_ONCE)
        async with self.browser() as browser:

            async def copied(url: str) -> None:
                reason = "the copy of the report's time is preferred"
                async with limit:
                    missing_page = CapturedPage.missing(url, reason)
                    page = await archive.copy_for(missing_page, moment, browser)
                if page is not None:
                    await asyncio.to_thread(pages.put_capture, page, url=url)

            await asyncio.gather(*map(copied, missing))
