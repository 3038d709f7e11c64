"""From a URL to what the judge is shown of the page: cached or captured, and prepared once a run."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar
from weakref import WeakValueDictionary

from mind2web2.api_tools.tool_pdf import render_pdf
from mind2web2.capture.record import CaptureRecord
from mind2web2.capture.trouble_notes import trouble_notes
from mind2web2.errors import CaptureError, DocumentError, MachineError, WorkerError
from mind2web2.llm_client.chat import Limit
from mind2web2.prepared_page import PageKind, PageSettings, PreparedPage, cut_text
from mind2web2.prompts import HashedText, encodable
from mind2web2.shared_captures import DoubtfulPageError, SharedCaptures
from mind2web2.utils.images import cut_screenshot
from mind2web2.utils.pdf_pages import RenderedPdf
from mind2web2.utils.workers import run_in_worker

log = logging.getLogger(__name__)

Stored = TypeVar("Stored")

_SCREENSHOT_TIMEOUT_S = 60.0
_PDF_TIMEOUT_S = 120.0


class PageCache(Protocol):
    """What is asked of a cache (contract.md, "Cache, tools, client")."""

    def has(self, url: str) -> PageKind | None:
        """Tell how the page is stored."""

    def get_web(self, url: str, get_screenshot: bool = True) -> tuple[str, bytes | None]:
        """Return text and screenshot."""

    def get_pdf(self, url: str) -> bytes:
        """Return the PDF."""

    def put_web(self, url: str, text: str, screenshot: str | bytes | None) -> Any:
        """Store a page."""

    def put_pdf(self, url: str, pdf_bytes: bytes) -> Any:
        """Store a PDF."""


class PageLibrary:
    """The pages of a run, each prepared once however many answers and claims refer to it.

    Args:
        memory_bytes: prepared pages kept at most; the least recently used are dropped and prepared
            again when needed.
    """

    def __init__(self, memory_bytes: int = 512 * 1024 * 1024) -> None:
        self._memory_bytes = memory_bytes
        self._used_bytes = 0
        # With each page the cache that it came from, so that the cache's id stays taken.
        self._kept: OrderedDict[_PageKey, tuple[PageCache, PreparedPage | CaptureError]] = OrderedDict()
        self._absent: set[_PageKey] = set()
        self._turns: WeakValueDictionary[_PageKey, asyncio.Lock] = WeakValueDictionary()

    async def page(self, request: PageRequest) -> PreparedPage:
        """Return the page.

        Raises:
            CaptureError: it cannot be had; the text says why.
        """
        # Asked each time, so that every answer's cache knows what the answer rests on.
        kind = await asyncio.to_thread(request.cache.has, request.url)
        shared = _shared_cache(request.cache)
        key = _PageKey(id(shared), request.url, request.settings, request.with_images)
        # Claims on one page arrive together; the first prepares it, or captures it, for all.
        async with self._turns.setdefault(key, asyncio.Lock()):
            if key not in self._kept or (kind is not None and key in self._absent):
                self._keep(key, shared, await _prepared_or_why_not(request, kind))
                self._note_absence(key, kind)
            self._kept.move_to_end(key)
            page = self._kept[key][1]
            self._drop_oldest()
        if isinstance(page, CaptureError):
            raise type(page)(str(page)) from page
        return page

    def forget(self, cache: PageCache) -> None:
        """Drop what was prepared from a cache, since a page in it was written anew."""
        for key in [key for key in self._kept if key.cache_id == id(cache)]:
            self._used_bytes -= _size_bytes(self._kept.pop(key)[1])

    def _keep(self, key: _PageKey, cache: PageCache, page: PreparedPage | CaptureError) -> None:
        self._kept[key] = (cache, page)
        self._used_bytes += _size_bytes(page)

    def _note_absence(self, key: _PageKey, kind: PageKind | None) -> None:
        # What was neither stored nor captured may be stored by the script later on.
        self._absent.discard(key)
        if kind is None and isinstance(self._kept[key][1], CaptureError):
            self._absent.add(key)

    def _drop_oldest(self) -> None:
        while self._used_bytes > self._memory_bytes and len(self._kept) > 1:
            _, (_, page) = self._kept.popitem(last=False)
            self._used_bytes -= _size_bytes(page)


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


@dataclass(frozen=True, slots=True)
class _PageKey:
    cache_id: int
    url: str
    settings: PageSettings
    with_images: bool


async def _prepared_or_why_not(request: PageRequest, kind: PageKind | None) -> PreparedPage | CaptureError:
    try:
        return await _prepared(request, kind)
    except (CaptureError, DocumentError) as error:
        log.info("page cannot be had url=%s reason=%s", request.url, error)
        is_doubtful = isinstance(error, WorkerError | DoubtfulPageError)
        return DoubtfulPageError(str(error)) if is_doubtful else CaptureError(str(error))


async def _prepared(request: PageRequest, kind: PageKind | None) -> PreparedPage:
    if kind is None:
        kind = await _captured_kind(request)
    elif request.capture is not None:
        kind = await _kind_after_another_try(request, request.capture) or kind
    page = await (_web_page(request) if kind == "web" else _pdf_page(request))
    if not page.images and not page.text.strip():
        raise CaptureError("; ".join(("the stored page is empty", *page.notes)))
    return page


async def _captured_kind(request: PageRequest) -> PageKind:
    shared = _shared_cache(request.cache)
    if request.capture is None:
        raise CaptureError(await asyncio.to_thread(_why_not_there, request.url, shared))
    await request.capture.bring(request.url, shared, request.limit, request.logger)
    kind = await asyncio.to_thread(shared.has, request.url)
    if kind is None:
        raise CaptureError("no longer in the cache, though it was captured just now")
    return kind


async def _kind_after_another_try(request: PageRequest, captures: SharedCaptures) -> PageKind | None:
    """Return how a page is stored after another capture, for an error that may have passed; else ``None``."""
    shared = _shared_cache(request.cache)
    record = await asyncio.to_thread(_record_of, request.url, shared)
    if record is None or record.kind is None or not record.is_transient:
        return None
    try:
        await captures.bring(request.url, shared, request.limit, request.logger, anew=True)
    except (CaptureError, MachineError) as error:
        log.info("page not captured anew url=%s reason=%s", request.url, error)
    return await asyncio.to_thread(shared.has, request.url)


def _why_not_there(url: str, cache: PageCache) -> str:
    """Return what an earlier run found out about a page, so that a replay says the same."""
    record = _record_of(url, cache)
    if record is not None and record.failure and not record.is_transient:
        return record.failure
    return "not in the cache, and this run captures no pages"


def _record_of(url: str, cache: PageCache) -> CaptureRecord | None:
    # A cache of another kind may not know records.
    capture_record = getattr(cache, "capture_record", None)
    record: CaptureRecord | None = capture_record(url) if capture_record is not None else None
    return record


def _shared_cache(cache: PageCache) -> PageCache:
    """Return the task's cache behind an answer's."""
    shared: PageCache = getattr(cache, "task_cache", cache)
    return shared


async def _read(read: Callable[..., Stored], *arguments: object) -> Stored:
    """Read from the cache, from which a page may have vanished since it was looked up."""
    try:
        return await asyncio.to_thread(read, *arguments)
    except KeyError as error:
        raise CaptureError(f"no longer in the cache: {error}") from error


async def _web_page(request: PageRequest) -> PreparedPage:
    text, screenshot = await _read(request.cache.get_web, request.url, request.with_images)
    images: tuple[HashedText, ...] = ()
    notes: tuple[str, ...] = ()
    doubt: str | None = None
    if request.with_images and screenshot:
        try:
            images, notes = await _screenshot_parts(screenshot, request.settings)
        except DocumentError as error:
            notes = (f"screenshot left out: {error}",)
            doubt = notes[0] if isinstance(error, WorkerError) else None
    elif request.with_images:
        notes = ("no screenshot is stored",)
    page = await asyncio.to_thread(_assemble, request, "web", text or "", images, notes)
    return page if doubt is None else replace(page, doubt=doubt)


async def _screenshot_parts(
    screenshot: bytes, settings: PageSettings
) -> tuple[tuple[HashedText, ...], tuple[str, ...]]:
    cut = partial(
        cut_screenshot,
        max_width_px=settings.image_max_width,
        max_height_px=settings.image_max_height,
        part_height_px=settings.part_height,
        overlap_px=settings.part_overlap,
        jpeg_quality=settings.jpeg_quality,
    )
    parts = await run_in_worker(cut, screenshot, timeout_s=_SCREENSHOT_TIMEOUT_S)
    notes: tuple[str, ...] = ()
    if parts.is_cut:
        notes = (
            f"screenshot cut: {parts.shown_height_px} of {parts.height_px} pixels from the top are shown",
        )
    return await asyncio.to_thread(_data_urls, parts.parts), notes


async def _pdf_page(request: PageRequest) -> PreparedPage:
    pdf = await _read(request.cache.get_pdf, request.url)
    settings = request.settings
    rendered = await render_pdf(
        pdf,
        max_image_pages=settings.max_pdf_images if request.with_images else 0,
        max_text_pages=settings.max_pdf_text_pages,
        jpeg_quality=settings.jpeg_quality,
        timeout_s=_PDF_TIMEOUT_S,
    )
    images = await asyncio.to_thread(_data_urls, rendered.images)
    notes = _pdf_notes(rendered, settings, request.with_images)
    return await asyncio.to_thread(_assemble, request, "pdf", rendered.text, images, notes)


def _pdf_notes(rendered: RenderedPdf, settings: PageSettings, with_images: bool) -> tuple[str, ...]:
    pages = rendered.page_count
    notes = []
    if pages > settings.max_pdf_text_pages:
        notes.append(f"PDF cut: text of the first {settings.max_pdf_text_pages} of {pages} pages is shown")
    if with_images and pages > settings.max_pdf_images:
        notes.append(f"PDF cut: images of the first {settings.max_pdf_images} of {pages} pages are shown")
    if rendered.unreadable_pages:
        notes.append(f"PDF damaged: nothing of pages {', '.join(map(str, rendered.unreadable_pages))}")
    return tuple(notes)


def _assemble(
    request: PageRequest,
    kind: PageKind,
    text: str,
    images: tuple[HashedText, ...],
    notes: tuple[str, ...],
) -> PreparedPage:
    text = encodable(text)
    limit = request.settings.max_text_chars
    if len(text) > limit:
        notes = (*notes, f"text cut: the first {limit} of {len(text)} characters are shown")
    # A cache of another kind may not know digests; then the result says so with null.
    digest = getattr(request.cache, "digest", None)
    record = _record_of(request.url, request.cache)
    troubles: tuple[str, ...] = ()
    doubt = None
    if record is not None and record.kind == kind:
        notes = (*notes, *trouble_notes(record))
        troubles = tuple(dict.fromkeys(trouble.kind for trouble in record.troubles))
        if record.is_transient:
            doubt = f"the server answered with an error that may pass: HTTP status {record.status}"
    return PreparedPage(
        url=request.url,
        kind=kind,
        sha256=digest(request.url) if digest is not None else None,
        text=cut_text(text, limit, len(text)),
        text_chars=min(len(text), limit),
        text_chars_stored=len(text),
        images=images,
        notes=notes,
        troubles=troubles,
        doubt=doubt,
    )


def _data_urls(jpegs: tuple[bytes, ...]) -> tuple[HashedText, ...]:
    urls = tuple(HashedText("data:image/jpeg;base64," + base64.b64encode(jpeg).decode()) for jpeg in jpegs)
    for url in urls:
        _ = url.sha256
    return urls


def _size_bytes(page: PreparedPage | CaptureError) -> int:
    if isinstance(page, CaptureError):
        return 0
    # A character of text may take up to four bytes in memory; base64 takes one.
    return 4 * len(page.text) + sum(map(len, page.images))
