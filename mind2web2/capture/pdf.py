"""A PDF's bytes -> its text and pictures of its pages.

Takes processor time: runs in a worker process.

PDFium is written in C++ and reads hostile files; that too is a reason to keep it out of the main
process.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mind2web2.capture.letters import missing_scripts
from mind2web2.capture.models import RenderedPdf
from mind2web2.capture.pdf_words import PageWords, has_outline, words_of
from mind2web2.errors import DocumentError
from mind2web2.utils.images import encode_jpeg
from mind2web2.utils.workers import run_in_worker

if TYPE_CHECKING:
    import pypdfium2  # type: ignore[import-untyped]  # it ships without types

# Twice a page of A3 at 144 dpi. A page may claim to be 100 m wide.
MAX_PAGE_IMAGE_PIXELS = 12_000_000
MAX_PAGE_IMAGE_SIDE_PX = 10_000
POINTS_PER_INCH = 72
MAX_TEXT_PAGES = 100
# Readers look for the mark within this many bytes, and so do we.
HEADER_BYTES = 1024
PDF_MARK = b"%PDF-"

_PASSWORD_ERROR = 4  # FPDF_ERR_PASSWORD in fpdfview.h
_SECURITY_ERROR = 5  # FPDF_ERR_SECURITY
# Shorter texts may be formulas. In Latin letters, a third are vowels in every language.
_MIN_JUDGED_CHARS = 60
_LEAST_WORDS_SHARE = 0.35
_LEAST_VOWELS = 0.18
_LONGEST_PLACEHOLDER = 1500
# PDFium joins a word hyphenated at a line's end and leaves one of these in the hyphen's place.
_LINE_END_HYPHEN = re.compile(r"[\x02\ufffe](?:\r?\n)?")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class RenderSettings:
    """How much of a PDF is rendered, and how finely."""

    max_image_pages: int = 50
    max_text_pages: int = MAX_TEXT_PAGES
    dpi: int = 144
    jpeg_quality: int = 85


def looks_like_pdf(start: bytes) -> bool:
    """Tell by a file's first bytes whether readers would take it for a PDF."""
    return PDF_MARK in start[:HEADER_BYTES]


def render_pages(data: bytes, settings: RenderSettings) -> RenderedPdf:
    """Return the text and the page images of a PDF.

    Raises:
        DocumentError: not a PDF, encrypted, damaged, or without pages.
    """
    with _open_document(data) as document:
        page_count = len(document)
        pages_to_read = min(page_count, max(settings.max_image_pages, settings.max_text_pages))
        pages = [_render_page(document, index, settings) for index in range(pages_to_read)]
    unreadable = tuple(number for number, page in enumerate(pages, 1) if page.text is None)
    if pages and len(unreadable) == len(pages):
        raise DocumentError("PDF is damaged: none of its pages can be read")
    text_page_count = min(page_count, settings.max_text_pages)
    return RenderedPdf(
        images=tuple(page.image for page in pages if page.image is not None),
        text=_join_texts([page.text for page in pages[:text_page_count]], page_count),
        page_count=page_count,
        text_page_count=text_page_count,
        unreadable_pages=unreadable,
        hidden_text="\n".join(page.hidden_text for page in pages if page.hidden_text),
        missing_scripts=tuple(sorted({name for page in pages for name in page.missing})),
    )


def text_of(data: bytes) -> str:
    """Return the text of a PDF's first pages without drawing them.

    Raises:
        DocumentError: not a PDF, encrypted, damaged, or without pages.
    """
    import pypdfium2

    with _open_document(data) as document:
        try:
            pages = [
                _page(document, index).get_textpage().get_text_range()
                for index in range(min(len(document), MAX_TEXT_PAGES))
            ]
        except pypdfium2.PdfiumError as error:
            raise DocumentError(f"PDF is damaged: {error}") from error
    return "\n".join(map(_clean_text, pages))


@dataclass(frozen=True, slots=True)
class PdfLetters:
    """The letters of a PDF.

    Args:
        has_text: a page has text; without, it is a scan.
        is_garbled: a page's text is none in any language: its fonts do not say which letters they
            draw.
        is_placeholder: it is a form that only Adobe's own reader shows.
        missing: the scripts that a page is written in and no font can draw.
    """

    has_text: bool
    is_garbled: bool
    is_placeholder: bool
    missing: tuple[str, ...]


def letters_of(data: bytes) -> PdfLetters:
    """Look at the letters of a PDF's pages.

    Raises:
        DocumentError: it cannot be read.
    """
    import pypdfium2

    missing: set[str] = set()
    texts = []
    with _open_document(data) as document:
        for index in range(min(len(document), MAX_TEXT_PAGES)):
            with contextlib.suppress(pypdfium2.PdfiumError):  # a damaged page has no text
                page = _page(document, index)
                texts.append(page.get_textpage().get_text_bounded())
                missing |= set(_missing_scripts(page))
    text = "".join(map(_clean_text, texts))
    return PdfLetters(
        has_text=bool(text.strip()),
        is_garbled=any(map(_is_garbled, texts)),
        is_placeholder=len(text) < _LONGEST_PLACEHOLDER and "adobe.com" in text.lower(),
        missing=tuple(sorted(missing)),
    )


def _missing_scripts(page: pypdfium2.PdfPage) -> tuple[str, ...]:
    """Return the scripts of a page for which neither the file nor this machine has a font."""
    from pypdfium2 import raw

    text_page = page.get_textpage()
    drawn: Counter[str] = Counter()
    missing: Counter[str] = Counter()
    objects = list(page.get_objects(filter=[raw.FPDF_PAGEOBJ_TEXT], textpage=text_page))
    fonts = [raw.FPDFTextObj_GetFont(text_object.raw) for text_object in objects]
    embedded = list(map(raw.FPDFFont_GetIsEmbedded, fonts))
    if all(embedded):
        # PDFium looks through the whole page for the letters of each object.
        return ()
    for text_object, font, is_embedded in zip(objects, fonts, embedded, strict=True):
        mode = raw.FPDFTextObj_GetTextRenderMode(text_object.raw)
        if mode == raw.FPDF_TEXTRENDERMODE_INVISIBLE:
            continue  # beneath a scan, which shows the letters
        for letter, count in Counter(text_object.extract()).items():
            is_drawn = is_embedded or has_outline(font, letter)
            (drawn if is_drawn else missing)[letter] += count
    return missing_scripts(missing, drawn)


def _page(document: pypdfium2.PdfDocument, index: int) -> pypdfium2.PdfPage:
    """Return a page on which form fields and notes that show are text like the rest."""
    from pypdfium2 import raw

    page = document[index]
    raw.FPDFPage_Flatten(page.raw, raw.FLAT_NORMALDISPLAY)
    page.close()
    return document[index]


@contextlib.contextmanager
def _open_document(data: bytes) -> Iterator[pypdfium2.PdfDocument]:
    """Open a document that has pages, or say why that cannot be."""
    import pypdfium2

    if not looks_like_pdf(data):
        raise DocumentError(f"not a PDF: {_describe_start(data)}")
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        raise DocumentError(_describe_refusal(error.err_code)) from error
    with document:
        # Must come before the first page; a form that fails to load leaves its fields empty, no
        # more.
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
    """The text and image of a page; a damaged one has neither, not even an empty text."""

    text: str | None = None
    hidden_text: str = ""
    image: bytes | None = None
    missing: tuple[str, ...] = ()


def _render_page(document: pypdfium2.PdfDocument, index: int, settings: RenderSettings) -> _Page:
    """Return a page's text and image, where they are wanted."""
    import pypdfium2

    try:
        page = _page(document, index)
        words = words_of(page) if index < settings.max_text_pages else PageWords("")
        image = None
        missing: tuple[str, ...] = ()
        if index < settings.max_image_pages:
            missing = _missing_scripts(page)
            image = None if missing else _draw(page, settings)
        page.close()
    except pypdfium2.PdfiumError:
        return _Page()
    return _Page(_clean_text(words.text), _clean_text(words.hidden), image, missing)


def _draw(page: pypdfium2.PdfPage, settings: RenderSettings) -> bytes:
    width_pt, height_pt = page.get_size()
    scale = min(
        settings.dpi / POINTS_PER_INCH,
        math.sqrt(MAX_PAGE_IMAGE_PIXELS / (width_pt * height_pt)),
        # Rounded up, it is drawn with as many pixels as are allowed.
        (MAX_PAGE_IMAGE_SIDE_PX - 0.5) / max(width_pt, height_pt),
    )
    picture = page.render(scale=scale).to_pil().convert("RGB")
    return encode_jpeg(picture, settings.jpeg_quality)


def _is_garbled(text: str) -> bool:
    """Tell whether the text of a page is none in any language."""
    letters = re.sub(r"[\s._\u2026\u00b7-]", "", text)
    if len(letters) < _MIN_JUDGED_CHARS:
        return False
    words = re.findall(r"\w", letters)
    latin = [letter for letter in words if letter.isascii() and letter.isalpha()]
    vowels = [letter for letter in latin if letter in "aeiouyAEIOUY"]
    is_no_writing = len(words) < _LEAST_WORDS_SHARE * len(letters)
    has_no_vowels = len(latin) >= _MIN_JUDGED_CHARS and len(vowels) < _LEAST_VOWELS * len(latin)
    return is_no_writing or has_no_vowels


def _clean_text(text: str) -> str:
    if _is_garbled(text):
        return ""
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
    max_text_pages: int = MAX_TEXT_PAGES,
    dpi: int = 144,
    jpeg_quality: int = 85,
    timeout_s: float = 120.0,
) -> RenderedPdf:
    """Return a PDF's page images and text, worked out in another process.

    Raises:
        DocumentError: not a PDF, encrypted, damaged, or too slow to read.
    """
    settings = RenderSettings(max_image_pages, max_text_pages, dpi, jpeg_quality)
    return await run_in_worker(render_pages, data, settings, timeout_s=timeout_s)
