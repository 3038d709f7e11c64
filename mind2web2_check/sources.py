"""The pages of a report's sources: captured before the judge is asked, and as hints see them."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import product
from urllib.parse import quote, urlencode

from pydantic import BaseModel, ValidationError

from mind2web2 import CacheFileSys
from mind2web2.plugin import (
    AddressCrawl,
    CapturedPage,
    Mind2Web2Error,
)
from mind2web2_check.rubric import page_address
from mind2web2_check.verdicts import trouble_of

log = logging.getLogger(__name__)

_DOI = re.compile(r"\b10\.\d{4,9}/[^\s?#\"<>]+")
# Publishers add these to a DOI in the addresses of a paper's forms.
_FORM_OF_PAPER = re.compile(
    r"(?:\.pdf|[./](?:full|pdf|epdf|abstract|fulltext|meta|pdfdirect|full-text|html))+$",
    re.IGNORECASE,
)
# Other failures may be those of this browser or this day.
_DEAD = ("http_error", "navigation_error", "soft_404")
NOT_OPENED = "not opened: no page of it is stored"
_NOT_READ = "the page itself could not be read"
_LANDING_PAGE = f"{_NOT_READ}; its DOI's landing page is shown"
_OPEN_COPY = f"{_NOT_READ}; an open copy of the paper is shown"
_RETRACTED_TITLE = re.compile(
    r"\W*(?:retracted\b|retraction(?: notice| note| of)?(?: to)?:)|.*[:\[(]\s*retracted\W*$",
    re.IGNORECASE,
)
_RETRACTED = re.compile(r"\bthis (?:article|paper) (?:has been|was|is) retracted", re.IGNORECASE)


_Capture = Callable[[str, logging.Logger], Awaitable[CapturedPage]]


class _OpenCopy(BaseModel):
    url: str | None = None


class _OpenCopies(BaseModel):
    """Unpaywall's reply."""

    best_oa_location: _OpenCopy | None = None


@dataclass(frozen=True)
class SourcePage:
    """A source as it was found.

    Args:
        problem: why it could not be read, in words that begin with ``dead``, ``walled``,
            ``invented`` or ``not opened``.
        read_at: the address whose page was read.
        is_stand_in: an archive's copy, an open copy or a DOI's landing page was read.
        content: a digest; equal for sources that have the same page.
        is_public: a server of the public web has answered.
    """

    source: str
    text: str = ""
    title: str = ""
    problem: str | None = None
    read_at: str = ""
    is_stand_in: bool = False
    content: str | None = None
    is_public: bool = False

    @property
    def is_readable(self) -> bool:
        """Tell whether there is a text of the page."""
        return self.problem is None and bool(self.text.strip())

    @property
    def is_invented(self) -> bool:
        """Tell whether there is no host of this name."""
        return (self.problem or "").startswith("invented")

    @property
    def is_retracted(self) -> bool:
        """Tell whether the page itself says that the work was retracted."""
        # Elsewhere on a page, such words may be about other works.
        opening = next((line for line in self.text.splitlines() if line.strip()), "")
        is_titled = any(map(_RETRACTED_TITLE.match, (self.title, opening)))
        return is_titled or bool(_RETRACTED.search(self.text[:3000]))


@dataclass(frozen=True)
class Capturing:
    """Captures the pages of a report.

    Args:
        others: caches of other reports, whose pages are copied.
        uses_archive: an archive's copy is read where a page is unavailable or walled.
        email: for Unpaywall, which is asked for open copies of papers; empty if it is not to be
            asked.
        doi_url: leads to the landing page of each DOI.
        unpaywall_url: says where an open copy of a DOI's paper is.
    """

    crawl: AddressCrawl
    others: Sequence[CacheFileSys] = ()
    uses_archive: bool = False
    email: str = ""
    doi_url: str = "https://doi.org"
    unpaywall_url: str = "https://api.unpaywall.org/v2"

    @property
    def pages(self) -> CacheFileSys:
        """Return the cache of the report's pages."""
        return self.crawl.pages

    async def capture(self, sources: Sequence[str], moment: datetime | None) -> None:
        """Capture what is not stored yet.

        Args:
            moment: the report's date; an archive's copy of that time is preferred to the page of
                today.
        """
        addresses = list(dict.fromkeys(map(page_address, sources)))
        if moment is not None:
            await self.crawl.copy_archived(addresses, moment)
        else:
            await asyncio.to_thread(self._from_others, addresses)
        await self.crawl.crawl(addresses, with_archive=self.uses_archive)
        await self._from_stand_ins(addresses)

    def _from_others(self, addresses: Sequence[str]) -> None:
        for url, other in product(addresses, self.others):
            if self.pages.has(url) is None:
                self.pages.copy_page(url, other)

    async def _from_stand_ins(self, addresses: Sequence[str]) -> None:
        """Read an open copy or the landing page where a DOI's page is walled or was not there."""
        unread = {url: doi for url in addresses if (doi := _doi_of(url)) and self._is_unread(url)}
        if not unread:
            return
        async with self.crawl.browser() as browser:
            for url, doi in unread.items():
                async for note, address in self._stand_ins(url, doi, browser.capture):
                    page = await browser.capture(address, log)
                    if page.record.kind is not None and not page.record.is_suspect:
                        await asyncio.to_thread(self._put_stand_in, url, page, f"{note}: {address}")
                        break

    def _is_unread(self, url: str) -> bool:
        return source_page(self.pages, url).problem is not None

    async def _stand_ins(
        self, url: str, doi: str, capture: _Capture
    ) -> AsyncIterator[tuple[str, str]]:
        """Yield notes and addresses of pages that may stand in for that of a DOI, best first."""
        copy = await self._open_copy(doi, capture) if self.email else None
        if copy is not None:
            yield _OPEN_COPY, copy
        if "doi.org/" not in url:
            yield _LANDING_PAGE, f"{self.doi_url}/{doi}"

    async def _open_copy(self, doi: str, capture: _Capture) -> str | None:
        query = urlencode({"email": self.email})
        reply = await capture(f"{self.unpaywall_url}/{quote(doi)}?{query}", log)
        try:
            copy = _OpenCopies.model_validate_json(reply.text or "").best_oa_location
        except ValidationError:
            reason = reply.record.failure or f"HTTP status {reply.record.status}, and no JSON"
            log.warning("Unpaywall could not be asked for %s: %s", doi, reason)
            return None
        return None if copy is None else copy.url

    def _put_stand_in(self, url: str, page: CapturedPage, note: str) -> None:
        notes = (*page.record.notes, note)
        record = page.record.model_copy(update={"requested_url": url, "notes": notes})
        self.pages.put_capture(replace(page, record=record), url=url)


def _doi_of(url: str) -> str | None:
    """Return the DOI in an address, without the publisher's form of the paper."""
    doi = _DOI.search(url)
    return None if doi is None else _FORM_OF_PAPER.sub("", doi[0].rstrip("/."))


def source_page(pages: CacheFileSys, source: str) -> SourcePage:
    """Return a source's page as it is stored; reads files."""
    url = page_address(source)
    record = pages.capture_record(url)
    found = record or CapturedPage.missing(url, "not captured").record
    return SourcePage(
        source,
        text=_stored_text(pages, url),
        title=found.title,
        problem=_problem(pages, url),
        read_at=found.archived_from or found.final_url,
        is_stand_in=found.archived_from is not None
        or any(note.startswith(_NOT_READ) for note in found.notes),
        content=found.sha256,
        is_public=found.status is not None and not found.is_private,
    )


def _stored_text(pages: CacheFileSys, url: str) -> str:
    try:
        return pages.get_text(url)
    except Mind2Web2Error:
        return ""


def _problem(pages: CacheFileSys, url: str) -> str | None:
    record = pages.capture_record(url)
    kinds = [trouble.kind for trouble in record.troubles] if record else []
    if pages.has(url) is not None:
        return trouble_of(kinds)
    if record is None:
        return NOT_OPENED
    reason = str(record.failure)
    if record.is_refused_as_private:
        return f"not opened: {reason} (--allow_private_network opens it)"
    if "there is no host" in reason:
        return f"invented: {reason}"
    is_dead = any(kind in _DEAD for kind in kinds)
    return f"dead: {reason}" if is_dead else f"walled: {reason}"
