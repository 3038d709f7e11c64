"""A PDF's bytes -> its text and pictures of its pages. Takes processor time: runs in a worker process.

PDFium is written in C++ and reads hostile files; that too is a reason to keep it out of the main process.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mind2web2.errors import DocumentError
from mind2web2.utils.images import encode_jpeg
from mind2web2.utils.pdf_hidden_text import PageWords, words_of
from mind2web2.utils.workers import run_in_worker

if TYPE_CHECKING:
    import pypdfium2  # type: ignore[import-untyped]  # it ships without types

# Twice a page of A3 at 144 dpi. A page may claim to be 100 m wide.
MAX_PAGE_IMAGE_PIXELS = 12_000_000
MAX_PAGE_IMAGE_SIDE_PX = 10_000
POINTS_PER_INCH = 72
# Readers look for the mark within this many bytes, and so do we.
HEADER_BYTES = 1024
PDF_MARK = b"%PDF-"

_PASSWORD_ERROR, _SECURITY_ERROR = 4, 5  # FPDF_ERR_PASSWORD and FPDF_ERR_SECURITY in fpdfview.h
# PDFium joins a word hyphenated at a line's end and leaves one of these in the hyphen's place.
_LINE_END_HYPHEN = re.compile(r"[\x02\ufffe](?:\r?\n)?")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class RenderedPdf:
    """A PDF as it is shown to a judge.

    Args:
        images: one JPEG a page, from the first page on.
        text: the pages' text, each page under a line ``[page 3 of 12]``; empty if no page has text. What
            nobody sees on a page is left out.
        page_count: pages of the whole document.
        text_page_count: pages looked at for the text, from the first on.
        unreadable_pages: numbers of damaged pages, which have neither image nor text.
        hidden_text: what was left out of the text.
    """

    images: tuple[bytes, ...]
    text: str
    page_count: int
    text_page_count: int
    unreadable_pages: tuple[int, ...] = ()
    hidden_text: str = ""

    @property
    def is_cut(self) -> bool:
        """Whether some page lacks its image or its text."""
        return min(len(self.images), self.text_page_count - len(self.unreadable_pages)) < self.page_count


@dataclass(frozen=True, slots=True)
class RenderSettings:
    """How much of a PDF is rendered, and how finely."""

    max_image_pages: int = 50
    max_text_pages: int = 100
    dpi: int = 144
    jpeg_quality: int = 85
    max_side_px: int = MAX_PAGE_IMAGE_SIDE_PX


def looks_like_pdf(start: bytes) -> bool:
    """Tell by a file's first bytes whether readers would take it for a PDF."""
    return PDF_MARK in start[:HEADER_BYTES]


def render_pages(data: bytes, settings: RenderSettings) -> RenderedPdf:
    """Return the text and the page images of a PDF.

    Raises:
        DocumentError: not a PDF, encrypted, damaged, or without pages.
    """
    with _opened(data) as document:
        page_count = len(document)
        wanted = min(page_count, max(settings.max_image_pages, settings.max_text_pages))
        pages = [_render_page(document, index, settings) for index in range(wanted)]
    readable = [page for page in pages if page is not None]
    if pages and not readable:
        raise DocumentError("PDF is damaged: none of its pages can be read")
    text_page_count = min(page_count, settings.max_text_pages)
    return RenderedPdf(
        images=tuple(page.image for page in readable if page.image is not None),
        text=_join_texts(
            [None if page is None else page.text for page in pages[:text_page_count]], page_count
        ),
        page_count=page_count,
        text_page_count=text_page_count,
        unreadable_pages=tuple(number for number, page in enumerate(pages, 1) if page is None),
        hidden_text="\n".join(page.hidden_text for page in readable if page.hidden_text),
    )


@contextlib.contextmanager
def _opened(data: bytes) -> Iterator[pypdfium2.PdfDocument]:
    """Open a document that has pages, or say why that cannot be."""
    import pypdfium2

    if not looks_like_pdf(data):
        raise DocumentError(f"not a PDF: {_describe_start(data)}")
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        raise DocumentError(_describe_refusal(error.err_code)) from error
    with document:
        # Must come before the first page; a form that fails to load leaves its fields empty, no more.
        with contextlib.suppress(pypdfium2.PdfiumError):
            document.init_forms()
        if len(document) == 0:
            raise DocumentError("PDF has no pages")
        yield document


def _describe_start(data: bytes) -> str:
    start = data[:HEADER_BYTES].lstrip().lower()
    if not data:
        return "the file is empty"
    if start.startswith((b"<!doctype html", b"<html", b"<head", b"<?xml", b"<!--")):
        return "it begins like a web page"
    return "it does not begin with %PDF-"


def _describe_refusal(error_code: int | None) -> str:
    if error_code == _PASSWORD_ERROR:
        return "PDF is encrypted and needs a password"
    if error_code == _SECURITY_ERROR:
        return "PDF is encrypted in a way that cannot be read"
    return "PDF is damaged or has no pages"


@dataclass(frozen=True, slots=True)
class _Page:
    text: str
    hidden_text: str
    image: bytes | None


def _render_page(document: pypdfium2.PdfDocument, index: int, settings: RenderSettings) -> _Page | None:
    """Return a page's text and image, where they are wanted; ``None`` for a damaged page."""
    import pypdfium2

    try:
        page = document[index]
        words = words_of(page) if index < settings.max_text_pages else PageWords("")
        image = _draw(page, settings) if index < settings.max_image_pages else None
        page.close()
    except pypdfium2.PdfiumError:
        return None
    return _Page(_clean_text(words.text), _clean_text(words.hidden), image)


def _draw(page: pypdfium2.PdfPage, settings: RenderSettings) -> bytes:
    width_pt, height_pt = page.get_size()
    scale = min(
        settings.dpi / POINTS_PER_INCH,
        math.sqrt(MAX_PAGE_IMAGE_PIXELS / (width_pt * height_pt)),
        # Rounded up, it is drawn with as many pixels as are allowed.
        (settings.max_side_px - 0.5) / max(width_pt, height_pt),
    )
    picture = page.render(scale=scale).to_pil().convert("RGB")
    return encode_jpeg(picture, settings.jpeg_quality)


def _clean_text(text: str) -> str:
    text = _LINE_END_HYPHEN.sub("-\n", text).replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROL.sub("", text).strip("\n")


def _join_texts(texts: list[str | None], page_count: int) -> str:
    """Put each page's text under its number; ``None`` stands for a damaged page."""
    if not any(text and text.strip() for text in texts):
        return ""
    headed = [
        f"[page {number} of {page_count}]\n{text}"
        if text is not None
        else f"[page {number} of {page_count} is damaged and cannot be read]"
        for number, text in enumerate(texts, 1)
    ]
    return "\n\n".join(headed)


async def render_pdf(
    data: bytes,
    *,
    max_image_pages: int = 50,
    max_text_pages: int = 100,
    dpi: int = 144,
    jpeg_quality: int = 85,
    max_side_px: int | None = None,
    timeout_s: float = 120.0,
) -> RenderedPdf:
    """Return a PDF's page images and text, worked out in another process.

    Raises:
        DocumentError: not a PDF, encrypted, damaged, or too slow to read.
    """
    settings = RenderSettings(
        max_image_pages, max_text_pages, dpi, jpeg_quality, max_side_px or MAX_PAGE_IMAGE_SIDE_PX
    )
    return await run_in_worker(render_pages, data, settings, timeout_s=timeout_s)
