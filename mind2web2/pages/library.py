"""Prepared pages by URL: each page is read or captured, and prepared for the judge, once a run."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, OrderedDict
from collections.abc import Hashable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from mind2web2.capture.models import PageKind, notes_for_judge
from mind2web2.errors import (
    CaptureError,
    DocumentError,
    DoubtfulPageError,
    MachineError,
    WorkerError,
)
from mind2web2.llm_client.chat import Limit
from mind2web2.pages.page_cache import PageCache, addresses, capture_record, page_digest
from mind2web2.pages.preparation import prepare_content
from mind2web2.pages.prepared_page import PageSettings, PreparedPage
from mind2web2.prompts.flags import address_flags, one_a_kind
from mind2web2.urls.parts import lookup_key
from mind2web2.utils.aio import SharedWork

if TYPE_CHECKING:
    from mind2web2.pages.captures import SharedCaptures


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Which page is wanted, and how.

    Args:
        cache: where it is stored, and where a captured page goes.
        capture: asked for a page that is not stored; ``None`` where a run captures nothing.
        limit: entered around a capture.
        with_images: ``False`` for the text alone.
    """

    cache: PageCache
    url: str
    settings: PageSettings
    with_images: bool
    capture: SharedCaptures | None
    limit: Limit
    logger: logging.Logger


class PageMemory:
    """Contents by key.

    Over the limit, those used longest ago are dropped, but never the last one.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._used_bytes = 0
        self._contents: OrderedDict[Hashable, PreparedPage] = OrderedDict()

    def get(self, key: Hashable) -> PreparedPage | None:
        """Return a content, which counts as used now, or ``None`` where it is not kept."""
        if key in self._contents:
            self._contents.move_to_end(key)
        return self._contents.get(key)

    def keep(self, key: Hashable, content: PreparedPage) -> list[Hashable]:
        """Keep a content under a new key, and return the keys of those that are dropped for it."""
        self._contents[key] = content
        self._used_bytes += content.memory_bytes
        dropped = []
        while self._used_bytes > self._limit_bytes and len(self._contents) > 1:
            oldest, oldest_content = self._contents.popitem(last=False)
            self._used_bytes -= oldest_content.memory_bytes
            dropped.append(oldest)
        return dropped


log = logging.getLogger(__name__)

# Prepared pages of a run: about two hundred with a screenshot of a megabyte.
DEFAULT_MEMORY_BYTES = 256 * 1024 * 1024
_READ_TRIES = 3


class PageLibrary:
    """The pages of a run, each prepared once however many answers and claims refer to it.

    Pages with the same content share one prepared content, whatever their URL and cache.

    Args:
        memory_bytes: prepared pages kept at most; the least recently used are dropped and prepared
            again when needed.
    """

    def __init__(self, memory_bytes: int = DEFAULT_MEMORY_BYTES) -> None:
        self._memory = PageMemory(memory_bytes)
        self._known: dict[_PageKey, _Known] = {}
        # The caches themselves, so that their ids stay taken.
        self._caches: dict[int, PageCache] = {}
        # Counts the writes to each cache, so that a lookup that began before one is not remembered.
        self._editions: Counter[int] = Counter()
        self._addresses_at_first: dict[int, frozenset[str] | None] = {}
        self._looking_up: SharedWork[_PageKey, _Known] = SharedWork()
        self._preparing: SharedWork[Hashable, PreparedPage | None] = SharedWork()
        self._listing: SharedWork[int, frozenset[str] | None] = SharedWork()

    async def stored(self, cache: PageCache, url: str) -> PreparedPage:
        """Return the text of a stored page as judges see it, without images.

        Raises:
            CaptureError: the page is unavailable; the text says why.
        """
        settings, limit = PageSettings(), nullcontext()
        return await self.page(PageRequest(cache, url, settings, False, None, limit, log))

    async def page(self, request: PageRequest) -> PreparedPage:
        """Return the page as the run has read it first, or as a script has stored it since.

        If the caller is cancelled, a capture that others wait for continues.

        Raises:
            CaptureError: the page is unavailable; the text says why.
        """
        key = self._key(request)
        known = self._known.get(key)
        if known is None or not self._holds(known):
            # Claims on one page arrive together; the first one prepares or captures it for all.
            known = await self._looking_up.result(key, partial(self._look_up, key, request))
        if isinstance(known.page, CaptureError):
            raise type(known.page)(str(known.page)) from known.page
        return known.page

    async def stored_at_first(self, cache: PageCache) -> frozenset[str] | None:
        """Return the addresses (``lookup_key``) of the pages that a cache held before the run.

        They are noted at the first call, before the run captures any page. ``None`` if the cache
        does not list them.
        """
        self._caches[id(cache)] = cache
        if id(cache) not in self._addresses_at_first:
            list_them = partial(asyncio.to_thread, _addresses, cache)
            addresses = await self._listing.result(id(cache), list_them)
            self._addresses_at_first.setdefault(id(cache), addresses)
        return self._addresses_at_first[id(cache)]

    def set_stored_at_first(self, cache: PageCache, addresses: frozenset[str] | None) -> None:
        """Set what another process has noted."""
        self._caches[id(cache)] = cache
        self._addresses_at_first[id(cache)] = addresses

    async def cached(self, cache: PageCache, urls: Sequence[str]) -> list[bool]:
        """Return for each page whether it was stored before this run captured any.

        This does not depend on the progress of other claims and captures.
        """
        addresses = await self.stored_at_first(cache)
        if addresses is None:
            return [await asyncio.to_thread(cache.has, url) is not None for url in urls]
        return [lookup_key(url) in addresses for url in urls]

    def forget(self, cache: PageCache) -> None:
        """Read the pages of a cache again, as one of them was replaced."""
        self._editions[id(cache)] += 1

    def _key(self, request: PageRequest) -> _PageKey:
        cache = request.cache
        self._caches[id(cache)] = cache
        edition = self._edition(id(cache))
        return _PageKey(id(cache), edition, request.url, request.settings, request.with_images)

    def _edition(self, cache_id: int) -> int:
        """Return a number that grows when a page of a cache may be another one."""
        writes: int = getattr(self._caches[cache_id], "writes", 0)
        return self._editions[cache_id] + writes

    def _holds(self, known: _Known) -> bool:
        return isinstance(known.page, CaptureError) or (
            self._memory.get(known.content_key) is not None
        )

    async def _look_up(self, key: _PageKey, request: PageRequest) -> _Known:
        kind = await asyncio.to_thread(request.cache.has, request.url)
        if request.capture is not None:
            await self.stored_at_first(request.cache)
        try:
            known = await self._prepare_page(key, request, kind)
        except (CaptureError, DocumentError) as error:
            log.info("page unavailable url=%s reason=%s", request.url, error)
            is_doubtful = isinstance(error, WorkerError | DoubtfulPageError)
            reason = DoubtfulPageError(str(error)) if is_doubtful else CaptureError(str(error))
            known = _Known(reason)
            if kind is None:
                # A script may store it later, and answers may name any number of such pages.
                return known
        self._remember(key, known)
        return known

    def _remember(self, key: _PageKey, known: _Known) -> None:
        if key.edition != self._edition(key.cache_id):
            return
        if self._holds(known):
            self._known[key] = known

    async def _prepare_page(
        self, key: _PageKey, request: PageRequest, kind: PageKind | None
    ) -> _Known:
        if kind is None:
            kind = await _capture(request)
        elif request.capture is not None:
            kind = await _kind_after_another_try(request, request.capture) or kind
        for _ in range(_READ_TRIES):
            sha256 = await asyncio.to_thread(page_digest, request.cache, request.url)
            # A cache that knows no digests shares nothing between addresses.
            content_key = key if sha256 is None else (sha256, request.settings, request.with_images)
            content = self._memory.get(content_key)
            if content is None:
                prepare = partial(self._prepare, content_key, request, kind, sha256)
                content = await self._preparing.result(content_key, prepare)
            if content is not None:
                page = await asyncio.to_thread(_page, request, content, sha256)
                return _Known(page, content_key)
        raise DoubtfulPageError("replaced again and again while it was read from the cache")

    async def _prepare(
        self,
        content_key: Hashable,
        request: PageRequest,
        kind: PageKind,
        sha256: str | None,
    ) -> PreparedPage | None:
        """Prepare a page and keep it; ``None`` if it was replaced and has another digest."""
        try:
            content = await prepare_content(
                request.cache,
                request.url,
                kind,
                request.settings,
                request.with_images,
            )
        except CaptureError:
            if sha256 is None:
                raise
            return None  # another cache may still have the same page
        if sha256 != await asyncio.to_thread(page_digest, request.cache, request.url):
            return None
        if dropped := self._memory.keep(content_key, content):
            still_known = {
                key: known for key, known in self._known.items() if known.content_key not in dropped
            }
            self._known = still_known
        return content


@dataclass(frozen=True, slots=True)
class _PageKey:
    cache_id: int
    edition: int
    url: str
    settings: PageSettings
    with_images: bool


@dataclass(frozen=True, slots=True)
class _Known:
    """The outcome of a request for a page.

    Args:
        page: the page, or why it is unavailable.
        content_key: key of its content in memory.
    """

    page: PreparedPage | CaptureError
    content_key: Hashable = None


async def _capture(request: PageRequest) -> PageKind:
    shared = request.cache
    if request.capture is None:
        raise CaptureError(await asyncio.to_thread(_why_not_there, request))
    await request.capture.capture_into(request.url, shared, request.limit, request.logger)
    kind = await asyncio.to_thread(shared.has, request.url)
    if kind is None:
        raise CaptureError("no longer in the cache, though it was captured just now")
    return kind


async def _kind_after_another_try(
    request: PageRequest, captures: SharedCaptures
) -> PageKind | None:
    """Return how a page is stored after another capture, for an error that may have passed.

    Else ``None``.
    """
    shared = request.cache
    record = await asyncio.to_thread(capture_record, request.cache, request.url)
    if record is None or record.kind is None or not record.is_transient:
        return None
    try:
        await captures.capture_into(
            request.url, shared, request.limit, request.logger, is_retry=True
        )
    except (CaptureError, MachineError) as error:
        log.info("page not captured again url=%s reason=%s", request.url, error)
    return await asyncio.to_thread(shared.has, request.url)


def _why_not_there(request: PageRequest) -> str:
    """Return the failure that an earlier run recorded, so that a replay gives the same reason."""
    record = capture_record(request.cache, request.url)
    if record is not None and record.failure and not record.is_transient:
        return record.failure
    return "not in the cache, and this run captures no pages"


def _page(request: PageRequest, content: PreparedPage, sha256: str | None) -> PreparedPage:
    """Return a page with the notes on its capture; reads the record."""
    flags = one_a_kind((*content.flags, *address_flags(request.url)))
    page = replace(content, url=request.url, sha256=sha256, flags=flags)
    record = capture_record(request.cache, request.url)
    if record is not None and record.kind == page.kind:
        doubt = page.doubt
        if record.is_transient and doubt is None:
            doubt = f"the server answered with an error that may pass: HTTP status {record.status}"
        page = replace(
            page,
            notes=(*page.notes, *notes_for_judge(record)),
            troubles=tuple(dict.fromkeys(trouble.kind for trouble in record.troubles)),
            captured_at=record.captured_at,
            captured_by=record.browser or None,
            doubt=doubt,
        )
    if not page.images and not page.text.strip():
        raise CaptureError("; ".join(("the stored page is empty", *page.notes)))
    return page


def _addresses(cache: PageCache) -> frozenset[str] | None:
    """Return the lookup keys of the stored pages; ``None`` if the cache does not list them."""
    urls = addresses(cache)
    if urls is None:
        return None
    return frozenset(filter(None, map(lookup_key, urls)))
