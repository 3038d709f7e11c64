"""Prepare a stored page for the judge: cut text, parts of the screenshot, PDF pages."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TypeAlias, TypeVar

from mind2web2.capture.models import PageKind, RenderedPdf
from mind2web2.errors import CaptureError, DocumentError, WorkerError
from mind2web2.pages.page_cache import PageCache
from mind2web2.pages.prepared_page import (
    NO_SCREENSHOT,
    PageSettings,
    PreparedPage,
    page_content,
    pdf_notes,
    screenshot_note,
)
from mind2web2.prompts import HashedText
from mind2web2.utils.images import cut_screenshot
from mind2web2.utils.workers import run_in_worker

Stored = TypeVar("Stored")
# The parts of a screenshot as ``data:`` URLs, and notes on what they leave out.
ShownParts: TypeAlias = tuple[tuple[HashedText, ...], tuple[str, ...]]
_SCREENSHOT_TIMEOUT_S = 60.0
_PDF_TIMEOUT_S = 120.0


async def screenshot_parts(screenshot: bytes, settings: PageSettings) -> ShownParts:
    """Cut a screenshot into the parts that the judge sees.

    Raises:
        DocumentError: it cannot be read.
    """
    cut_it = partial(
        cut_screenshot,
        max_width_px=settings.image_max_width,
        max_height_px=settings.image_max_height,
        part_height_px=settings.part_height,
        overlap_px=min(settings.part_overlap, settings.part_height // 4),
        jpeg_quality=settings.jpeg_quality,
    )
    parts = await run_in_worker(cut_it, screenshot, timeout_s=_SCREENSHOT_TIMEOUT_S)
    notes: tuple[str, ...] = ()
    if parts.is_cut:
        notes = (screenshot_note(parts.shown_height_px, parts.height_px),)
    return await asyncio.to_thread(_data_urls, parts.parts), notes


async def prepare_content(
    cache: PageCache,
    url: str,
    kind: PageKind,
    settings: PageSettings,
    with_images: bool,
) -> PreparedPage:
    """Return the content of a stored page as the judge sees it.

    Args:
        with_images: ``False`` for the text alone.

    Raises:
        CaptureError: the page is gone.
        DocumentError: it cannot be read.
    """
    if kind == "web":
        return await _web_page(cache, url, settings, with_images)
    return await _pdf_page(cache, url, settings, with_images)


async def _read(read: Callable[..., Stored], *arguments: object) -> Stored:
    """Read from the cache; a page may have been removed since it was found."""
    try:
        return await asyncio.to_thread(read, *arguments)
    except KeyError as error:
        raise CaptureError(f"no longer in the cache: {error}") from error


async def _web_page(
    cache: PageCache, url: str, settings: PageSettings, with_images: bool
) -> PreparedPage:
    text, screenshot = await _read(cache.get_web, url, with_images)
    images: tuple[HashedText, ...] = ()
    notes: tuple[str, ...] = ()
    doubt: str | None = None
    if with_images and screenshot:
        try:
            images, notes = await screenshot_parts(screenshot, settings)
        except DocumentError as error:
            notes = (f"screenshot left out: {error}",)
            doubt = notes[0] if isinstance(error, WorkerError) else None
    elif with_images:
        notes = (NO_SCREENSHOT,)
    return await asyncio.to_thread(page_content, settings, "web", text or "", images, notes, doubt)


async def _pdf_page(
    cache: PageCache, url: str, settings: PageSettings, with_images: bool
) -> PreparedPage:
    pdf = await _read(cache.get_pdf, url)
    rendered: RenderedPdf = await import_module("mind2web2.capture.pdf").render_pdf(
        pdf,
        max_image_pages=settings.max_pdf_images if with_images else 0,
        max_text_pages=settings.max_pdf_text_pages,
        jpeg_quality=settings.jpeg_quality,
        timeout_s=_PDF_TIMEOUT_S,
    )
    images = await asyncio.to_thread(_data_urls, rendered.images)
    notes = pdf_notes(rendered, settings, with_images)
    hidden = rendered.hidden_text
    return await asyncio.to_thread(
        page_content, settings, "pdf", rendered.text, images, notes, hidden=hidden
    )


def _data_urls(jpegs: tuple[bytes, ...]) -> tuple[HashedText, ...]:
    return tuple(
        HashedText("data:image/jpeg;base64," + base64.b64encode(jpeg).decode()).prepare()
        for jpeg in jpegs
    )
