"""A stored page in the form in which the judge sees it: cut text, parts of the screenshot, PDF pages."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from mind2web2.capture.models import RenderedPdf
from mind2web2.capture.pdf import render_pdf
from mind2web2.errors import CaptureError, DocumentError, WorkerError
from mind2web2.pages.captures import PageRequest
from mind2web2.pages.prepared_page import PageKind, PageSettings, PreparedPage, cut_text
from mind2web2.prompts import HashedText, encodable, flags_of, one_a_kind
from mind2web2.utils.images import cut_screenshot
from mind2web2.utils.invisible_text import made_visible
from mind2web2.utils.workers import run_in_worker

Stored = TypeVar("Stored")
NO_SCREENSHOT = "no screenshot is stored"
_SCREENSHOT_TIMEOUT_S = 60.0
_PDF_TIMEOUT_S = 120.0


async def prepared_content(request: PageRequest, kind: PageKind) -> PreparedPage:
    """Return the content of a stored page as the judge sees it.

    Raises:
        CaptureError: the page is gone.
        DocumentError: it cannot be read.
    """
    return await (_web_page(request) if kind == "web" else _pdf_page(request))


async def _read(read: Callable[..., Stored], *arguments: object) -> Stored:
    """Read from the cache; a page may have been removed since it was found."""
    try:
        return await asyncio.to_thread(read, *arguments)
    except KeyError as error:
        raise CaptureError(f"no longer in the cache: {error}") from error


async def _web_page(request: PageRequest) -> PreparedPage:
    text, screenshot = await _read(
        request.cache.get_web, request.url, request.with_images
    )
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
        notes = (NO_SCREENSHOT,)
    return await asyncio.to_thread(
        page_content, request.settings, "web", text or "", images, notes, doubt
    )


async def _screenshot_parts(
    screenshot: bytes, settings: PageSettings
) -> tuple[tuple[HashedText, ...], tuple[str, ...]]:
    side_px = settings.max_side_px or max(
        settings.image_max_width, settings.part_height
    )
    part_height_px = min(settings.part_height, side_px)
    cut = partial(
        cut_screenshot,
        max_width_px=min(settings.image_max_width, side_px),
        max_height_px=settings.image_max_height,
        part_height_px=part_height_px,
        overlap_px=min(settings.part_overlap, part_height_px // 4),
        jpeg_quality=settings.jpeg_quality,
    )
    parts = await run_in_worker(cut, screenshot, timeout_s=_SCREENSHOT_TIMEOUT_S)
    notes: tuple[str, ...] = ()
    if parts.is_cut:
        notes = (screenshot_note(parts.shown_height_px, parts.height_px),)
    return await asyncio.to_thread(_data_urls, parts.parts), notes


def screenshot_note(shown_px: int, height_px: int) -> str:
    """Return the note that the lower end of a screenshot is not shown."""
    return f"screenshot cut: {shown_px} of {height_px} pixels from the top are shown"


async def _pdf_page(request: PageRequest) -> PreparedPage:
    pdf = await _read(request.cache.get_pdf, request.url)
    settings = request.settings
    rendered = await render_pdf(
        pdf,
        max_image_pages=settings.max_pdf_images if request.with_images else 0,
        max_text_pages=settings.max_pdf_text_pages,
        jpeg_quality=settings.jpeg_quality,
        max_side_px=settings.max_side_px,
        timeout_s=_PDF_TIMEOUT_S,
    )
    images = await asyncio.to_thread(_data_urls, rendered.images)
    notes = pdf_notes(rendered, settings, request.with_images)
    hidden = rendered.hidden_text
    return await asyncio.to_thread(
        page_content, settings, "pdf", rendered.text, images, notes, hidden=hidden
    )


def pdf_notes(
    rendered: RenderedPdf, settings: PageSettings, with_images: bool
) -> tuple[str, ...]:
    """Return the notes on parts of a PDF that are not shown."""
    pages = rendered.page_count
    notes = []
    if pages > settings.max_pdf_text_pages:
        notes.append(
            f"PDF cut: text of the first {settings.max_pdf_text_pages} of {pages} pages is shown"
        )
    if with_images and pages > settings.max_pdf_images:
        notes.append(
            f"PDF cut: images of the first {settings.max_pdf_images} of {pages} pages are shown"
        )
    if with_images and rendered.images and not rendered.text:
        notes.append("PDF without text: its pages are shown as images only")
    if rendered.unreadable_pages:
        notes.append(
            f"PDF damaged: nothing of pages {', '.join(map(str, rendered.unreadable_pages))}"
        )
    return tuple(notes)


def page_content(
    settings: PageSettings,
    kind: PageKind,
    text: str,
    images: tuple[HashedText, ...],
    notes: tuple[str, ...],
    doubt: str | None = None,
    hidden: str = "",
) -> PreparedPage:
    """Return a page's text, cut to the limit, with its images and all that is noted of it."""
    limit = settings.max_text_chars
    # Hidden text of a PDF is not shown, but flagged.
    flags = one_a_kind((*flags_of(text[:limit]), *flags_of(hidden[:limit])))
    text = made_visible(encodable(text))
    if len(text) > limit:
        notes = (
            *notes,
            f"text cut: the first {limit} of {len(text)} characters are shown",
        )
    return PreparedPage(
        url="",
        kind=kind,
        sha256=None,
        text=cut_text(text, limit, len(text)),
        text_chars=min(len(text), limit),
        text_chars_stored=len(text),
        images=images,
        notes=notes,
        flags=flags,
        doubt=doubt,
    )


def _data_urls(jpegs: tuple[bytes, ...]) -> tuple[HashedText, ...]:
    return tuple(
        HashedText(
            "data:image/jpeg;base64," + base64.b64encode(jpeg).decode()
        ).prepared()
        for jpeg in jpegs
    )
