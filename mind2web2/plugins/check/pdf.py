"""The text of a PDF; a report's has its links and raised numbers as markdown writes them."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pypdfium2  # type: ignore[import-untyped] # it ships no types

from mind2web2.errors import DocumentError

_NUMBERS = re.compile(r"(\d{1,3}(?:[,–-]\s?\d{1,3})*)(\r\n)?")
# A program that prints a page adds its date, title, address and number.
_MARGIN = re.compile(
    r"\s*|\s*(?:page\s*)?\d{1,4}(?:\s*(?:/|of)\s*\d{1,4})?\s*|(?:https?|file)://\S+\s+\d+/\d+\s*"
    r"|\d{1,4}[/.-]\d{1,2}[/.-]\d{2,4},? \d{1,2}:\d{2}.*",
    re.IGNORECASE,
)
_RAISED_SIZE = 0.85


class _Change(NamedTuple):
    """The text that replaces a part of a page's text."""

    start: int
    end: int
    written: str


class _Link(NamedTuple):
    start: int
    end: int
    address: str


def pdf_markdown(data: bytes) -> str:
    """Return a PDF's text with the addresses behind its links, and raised numbers in ``<sup>``.

    Raises:
        DocumentError: it cannot be opened.
    """
    with _open_pdf(data) as document:
        return "\n".join(_page_markdown(page) for page in document)


def _open_pdf(data: bytes) -> pypdfium2.PdfDocument:
    try:
        return pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        raise DocumentError(f"the PDF cannot be opened: {error}") from error


def _page_markdown(page: pypdfium2.PdfPage) -> str:
    text_page = page.get_textpage()
    # PDFium counts UTF-16's code units.
    text = _code_units(text_page.get_text_range())
    links = list(_whole_links(text, sorted(_links(page, text_page))))
    changes = [_Change(link.start, link.end, _as_markdown(text, link)) for link in links]
    linked = {place for link in links for place in range(link.start, link.end)}
    changes += [
        change for change in _find_raised_numbers(text_page, text) if change.start not in linked
    ]
    for change in sorted(changes, reverse=True):
        text = text[: change.start] + change.written + text[change.end :]
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return "\n".join(_without_margins(text.replace("\r\n", "\n").replace("\ufffe", "").split("\n")))


def _code_units(text: str) -> str:
    units = text.encode("utf-16-le", "surrogatepass")
    return "".join(
        chr(int.from_bytes(units[at : at + 2], "little")) for at in range(0, len(units), 2)
    )


def _without_margins(lines: list[str]) -> list[str]:
    while lines and _MARGIN.fullmatch(lines[-1]):
        lines = lines[:-1]
    while lines and _MARGIN.fullmatch(lines[0]):
        lines = lines[1:]
    return lines


def _whole_links(text: str, links: Iterable[_Link]) -> Iterator[_Link]:
    """Yield the links; one that was broken over several lines is one link."""
    whole: _Link | None = None
    for link in links:
        is_next = whole is not None and whole.address == link.address
        if whole and is_next and not text[whole.end : link.start].strip():
            whole = whole._replace(end=link.end)
            continue
        if whole:
            yield whole
        whole = link
    if whole:
        yield whole


def _as_markdown(text: str, link: _Link) -> str:
    shown = text[link.start : link.end]
    name = " ".join(shown.split())
    before = shown[: len(shown) - len(shown.lstrip())]
    after = shown[len(shown.rstrip()) :]
    if not name or re.match(r"https?:|www\.", name):
        return f"{before}{link.address if name else ''}{after}"
    if "http" in name:
        return shown
    target = f"<{link.address}>" if re.search(r"[()\s]", link.address) else link.address
    return f"{before}[{name}]({target}){after}"


def _find_raised_numbers(text_page: pypdfium2.PdfTextPage, text: str) -> Iterator[_Change]:
    """Yield the changes for numbers that stand higher and smaller than the text before them.

    PDFium ends the line behind them, though it goes on.
    """
    for match in _NUMBERS.finditer(text):
        start, end = match.span(1)
        while start < end - 1 and _size(text_page, start) > _size(text_page, end - 1):
            start += 1
        before = start - 1
        while before >= 0 and text[before].isspace():
            before -= 1
        if before < 0 or not _is_raised(text_page, start, before):
            continue
        yield _Change(start, end, f"<sup>{text[start:end]}</sup>")
        follows = re.compile(r"\s*\S").match(text, match.end())
        if (
            match[2]
            and follows
            and _baseline(text_page, follows.end() - 1) == _baseline(text_page, before)
        ):
            yield _Change(*match.span(2), "")


def _is_raised(text_page: pypdfium2.PdfTextPage, place: int, before: int) -> bool:
    size, size_before = _size(text_page, place), _size(text_page, before)
    height = _baseline(text_page, place) - _baseline(text_page, before)
    return bool(size < _RAISED_SIZE * size_before and 0 < height < size_before)


def _size(text_page: pypdfium2.PdfTextPage, place: int) -> float:
    return float(pypdfium2.raw.FPDFText_GetFontSize(text_page, place))


def _baseline(text_page: pypdfium2.PdfTextPage, place: int) -> float:
    x, y = ctypes.c_double(), ctypes.c_double()
    pypdfium2.raw.FPDFText_GetCharOrigin(text_page, place, x, y)
    return round(y.value, 1)


def _links(page: pypdfium2.PdfPage, text_page: pypdfium2.PdfPage) -> Iterator[_Link]:
    """Yield the places of the text that links cover, a line each."""
    position = ctypes.c_int(0)
    link = pypdfium2.raw.FPDF_LINK()
    while pypdfium2.raw.FPDFLink_Enumerate(page, position, link):
        action = pypdfium2.raw.FPDFLink_GetAction(link)
        length = pypdfium2.raw.FPDFAction_GetURIPath(page.pdf, action, None, 0) if action else 0
        rect = pypdfium2.raw.FS_RECTF()
        if length < 8 or not pypdfium2.raw.FPDFLink_GetAnnotRect(link, rect):
            continue
        buffer = ctypes.create_string_buffer(length)
        pypdfium2.raw.FPDFAction_GetURIPath(page.pdf, action, buffer, length)
        middle = (rect.top + rect.bottom) / 2
        first, last = (
            pypdfium2.raw.FPDFText_GetCharIndexAtPos(text_page, x, middle, 4, 8)
            for x in (rect.left + 1, rect.right - 1)
        )
        address = buffer.value.decode("utf-8", "replace")
        if 0 <= first <= last and address.startswith("http"):
            yield _Link(first, last + 1, address)
