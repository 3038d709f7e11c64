"""The words of a PDF's pages, with their places, links and drawn bullets."""

from __future__ import annotations

import ctypes
import math
import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

import pypdfium2  # type: ignore[import-untyped] # it ships no types
from pypdfium2 import raw

from mind2web2.plugin import UsageError

CJK = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]")
_LINE = re.compile(r"[^\r\n]+")
# Marks are words of their own, and so are the pieces between which a line may break.
_WORD = re.compile(
    rf"(\s*)({CJK.pattern}|[^\W\d]+[.,;:]?|\d+|[*†‡§]+|[\ud800-\udbff][\udc00-\udfff]|\S)"
)


@dataclass(slots=True)
class Word:
    """Letters or digits in one style, or a sign.

    Args:
        space: the space before it.
        bottom: where its first sign ends, which a font may raise above the baseline.
    """

    space: str
    text: str
    left: float
    right: float
    baseline: float
    height: float
    size: float = 0.0
    weight: int = 0
    link: str = ""
    page: int = 0
    bottom: float = 0.0
    is_raised: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """A page's words in the order of the file, and its small drawn signs."""

    words: list[Word]
    bullets: list[Word]


class _Link(NamedTuple):
    left: float
    bottom: float
    right: float
    top: float
    url: str


_BOTTOM = attrgetter("bottom")


def pages_of(data: bytes) -> tuple[list[Page], bool]:
    """Return the pages of a PDF, and whether a browser printed it.

    Raises:
        UsageError: it cannot be opened.
    """
    try:
        with pypdfium2.PdfDocument(data) as document:
            is_browser = "Skia" in document.get_metadata_value("Producer")
            pages = [_PageReader(page, number).read() for number, page in enumerate(document)]
    except pypdfium2.PdfiumError as error:
        raise UsageError(f"the PDF cannot be opened: {error}") from error
    return pages, is_browser


class _PageReader:
    """Reads the words of a page.

    A page has thousands of letters, and may have an object for each: calls of PDFium are few, for
    the first and last letter of a word and the first object of a line.
    """

    def __init__(self, page: pypdfium2.PdfPage, number: int) -> None:
        self._number = number
        self._text_page = page.get_textpage()
        # The objects themselves would be converted at each call.
        self._page, self._text = page.raw, self._text_page.raw
        self._links = sorted(_links(page), key=_BOTTOM)
        self._tallest_link = max((link.top - link.bottom for link in self._links), default=0.0)
        self._first, self._last = raw.FS_RECTF(), raw.FS_RECTF()
        self._matrix = raw.FS_MATRIX()
        self._x, self._baseline, self._bottom = (ctypes.c_double() for _ in range(3))
        self._words: list[Word] = []

    def read(self) -> Page:
        """Return what stands on the page."""
        count = self._text_page.count_chars()
        units = (ctypes.c_ushort * (count + 1))()
        length = raw.FPDFText_GetText(self._text, 0, count, units)
        # A character is a code unit of UTF-16, for PDFium as well.
        text = "".join(map(chr, units[: length - 1])).replace("\0", "\ufffe")
        for found in _WORD.finditer(text):
            # PDFium ends its lines also before a raised mark.
            self._add(found[1].strip("\r\n"), found[2], self._place(found.start(2)))
        return Page(self._words, list(self._bullets(text)))

    def _place(self, start: int) -> int:
        return int(raw.FPDFText_GetCharIndexFromTextIndex(self._text, start))

    def _add(self, space: str, text: str, place: int) -> None:
        """Add the text as one word, or in halves if its ends differ in font, level or link."""
        first, last = self._first, self._last
        raw.FPDFText_GetLooseCharBox(self._text, place, first)
        raw.FPDFText_GetLooseCharBox(self._text, place + len(text) - 1, last)
        link = self._link(first)
        if len(text) > 1 and not (first.bottom == last.bottom and link == self._link(last)):
            half = len(text) // 2
            self._add(space, text[:half], place)
            self._add("", text[half:], place + half)
            return
        x = self._x
        raw.FPDFText_GetCharBox(self._text, place, x, x, self._bottom, x)
        raw.FPDFText_GetCharOrigin(self._text, place, x, self._baseline)
        self._words.append(
            Word(
                space,
                text,
                first.left,
                last.right,
                self._baseline.value,
                first.top - first.bottom,
                self._size(place),
                raw.FPDFText_GetFontWeight(self._text, place),
                link,
                self._number,
                self._bottom.value,
            )
        )

    def _size(self, place: int) -> float:
        """Return the size of a letter's font as it is seen."""
        # Some programs write all fonts with size 1 and enlarge them.
        raw.FPDFText_GetMatrix(self._text, place, self._matrix)
        scale = math.hypot(self._matrix.c, self._matrix.d)
        return float(raw.FPDFText_GetFontSize(self._text, place)) * scale

    def _link(self, box: raw.FS_RECTF) -> str:
        middle = (box.left + box.right) / 2
        level = (box.top + box.bottom) / 2
        begin = bisect_left(self._links, level - self._tallest_link, key=_BOTTOM)
        end = bisect_left(self._links, level, key=_BOTTOM)
        for link in self._links[begin:end]:
            if link.left < middle < link.right and level < link.top:
                return link.url
        return ""

    def _bullets(self, text: str) -> Iterator[Word]:
        """Yield the small signs drawn between lines: browsers draw the bullets of lists."""
        left, bottom, right, top = (ctypes.c_float() for _ in range(4))
        number = 0
        for line in _LINE.finditer(text):
            place = self._place(line.start())
            # Pointers are equal if their bytes are.
            first = bytes(raw.FPDFText_GetTextObject(self._text, place))
            while bytes(drawn := raw.FPDFPage_GetObject(self._page, number)) != first and drawn:
                if raw.FPDFPageObj_GetType(drawn) == raw.FPDF_PAGEOBJ_PATH:
                    raw.FPDFPageObj_GetBounds(drawn, left, bottom, right, top)
                    height = top.value - bottom.value
                    yield Word("", "•", left.value, right.value, bottom.value, height)
                number += 1
            number += raw.FPDFText_CountRects(self._text, place, len(line[0]))


def _links(page: pypdfium2.PdfPage) -> Iterator[_Link]:
    """Yield the links, a line each."""
    position = ctypes.c_int(0)
    link = raw.FPDF_LINK()
    while raw.FPDFLink_Enumerate(page, position, link):
        action = raw.FPDFLink_GetAction(link)
        length = raw.FPDFAction_GetURIPath(page.pdf, action, None, 0)
        rect = raw.FS_RECTF()
        raw.FPDFLink_GetAnnotRect(link, rect)
        buffer = ctypes.create_string_buffer(length)
        raw.FPDFAction_GetURIPath(page.pdf, action, buffer, length)
        url = buffer.value.decode("utf-8", "replace")
        yield _Link(rect.left, rect.bottom, rect.right, rect.top, url)
