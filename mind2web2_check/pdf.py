"""A PDF as markdown, read by its layout: paragraphs, headings, rows, notes, links, raised marks."""

from __future__ import annotations

import ctypes
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, pairwise
from statistics import median

import pypdfium2  # type: ignore[import-untyped] # it ships no types
from pypdfium2 import raw

from mind2web2.errors import DocumentError
from mind2web2_check.pdf_tags import TaggedPart, tagged_parts

# A program that prints a page adds its date, title, address and number.
_MARGIN = re.compile(
    r"\s*|\s*(?:page\s*)?\d{1,4}(?:\s*(?:/|of)\s*\d{1,4})?\s*|(?:https?|file)://\S+\s+\d+/\d+\s*"
    r"|\d{1,4}[/.-]\d{1,2}[/.-]\d{2,4},? \d{1,2}:\d{2}.*",
    re.IGNORECASE,
)
_RAISED = re.compile(r"[\[(]?\d{1,3}(?:[,–-]\s?\d{1,3})*[\])]?|[*†‡§]{1,3}|[a-z]")
_NOTE_MARK = re.compile(r"\d{1,3}|[*†‡§]{1,3}")
_HYPHENS = "-\u00ad\u2010\ufffe\x02"
_AS_HYPHEN = {0xFFFE: "-", 2: "-"}
_BULLET = re.compile(r"[•◦▪‣●○■–]\s*")
_MARKER = re.compile(r"\s*(?:[•◦▪‣●○■–]|[\[(]?\w{1,4}[.)\]])\s*")
_URL = re.compile(r"(?:https?://|www\.|doi\.org/|\b10\.\d{4,9}/)\S*$", re.IGNORECASE)
_URL_REST = re.compile(r"(?!https?:|www\.|[\[(]?\d{1,4}[\]).])\S*[/.?=&_%#~\d-]\S")
_OPEN_END = "/&?=_.-%#"
_SENTENCE_END = re.compile(r"[.!?。！？:：;][\"'”’»)\]*\d]*$")
_CJK = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]")
_SMALLER, _LARGER, _NOTE_SIZE = 0.85, 1.12, 0.94
_WIDE_GAP, _CELL_GAP, _MAX_ROW_LINES, _RISE = 0.8, 0.3, 8, 0.15
_MOST_DECLARED, _SAME_LEFT = 0.8, 4.0
_LEAST_GAP, _USUAL_GAP, _MOST_GAP = 0.7, 1.2, 2.5


@dataclass(slots=True)
class _Char:
    text: str
    left: float
    right: float
    baseline: float
    height: float
    size: float
    link: str = ""
    bottom: float = 0.0
    page: int = 0
    content: int = -1
    is_raised: bool = False

    @property
    def scale(self) -> float:
        return self.height / max(self.size, 1.0)


@dataclass(slots=True)
class _Line:
    """Characters on one baseline without a wide gap between them."""

    chars: list[_Char]
    baseline: float
    height: float

    @property
    def left(self) -> float:
        return self.chars[0].left

    @property
    def right(self) -> float:
        return self.chars[-1].right

    @property
    def text(self) -> str:
        return "".join(each.text for each in self.chars)

    def first_word(self) -> float:
        """Return how wide the first word is, up to a place where a line may break."""
        for before, each in pairwise(self.chars):
            if each.text.isspace() or before.text in "-/" or _CJK.match(each.text):
                return before.right - self.left
        return self.right - self.left


@dataclass(slots=True)
class _Part:
    """A row of cells, each of lines; a paragraph or heading has one cell."""

    cells: list[list[_Line]]
    tag: str = ""

    @property
    def lines(self) -> list[_Line]:
        return [line for cell in self.cells for line in cell]

    @property
    def height(self) -> float:
        return median(line.height for line in self.lines)


def pdf_markdown(data: bytes) -> str:
    """Return a PDF's text by its layout, with links as markdown and raised marks in ``<sup>``.

    Raises:
        DocumentError: it cannot be opened.
    """
    try:
        with pypdfium2.PdfDocument(data) as document:
            # Browsers break lines at hyphens of the text and add none; their spaces are characters.
            is_browser = "Skia" in document.get_metadata_value("Producer")
            chars = [list(_chars(page, number)) for number, page in enumerate(document)]
            tags = list(map(tagged_parts, document))
    except pypdfium2.PdfiumError as error:
        raise DocumentError(f"the PDF cannot be opened: {error}") from error
    # The boxes of a line's fonts differ in height; their sizes do not.
    scale = median([1.0] if not any(chars) else [each.scale for each in chain(*chars)])
    for each in chain(*chars):
        each.height = each.size * scale
    tagged = [_parts_by_tags(page, parts) for page, parts in zip(chars, tags, strict=True)]
    pages = _without_margins([list(_lines(page)) for page in chars])
    sizes = Counter(round(each.height, 1) for each in chain(*chars) if not each.text.isspace())
    body = max(sizes, key=sizes.__getitem__, default=1.0)
    usual = _usual_gap(pages)
    return _Writer(body, keeps_hyphens=is_browser).markdown(
        [parts or _parts(lines, usual) for parts, lines in zip(tagged, pages, strict=True)]
    )


def _chars(page: pypdfium2.PdfPage, number: int) -> Iterator[_Char]:
    text_page = page.get_textpage()
    addresses = {
        place: address
        for first, end, address in _links(page, text_page)
        for place in range(first, end)
    }
    box = raw.FS_RECTF()
    x, y, bottom, other = (ctypes.c_double() for _ in range(4))
    high = ""
    for place in range(text_page.count_chars()):
        text = chr(raw.FPDFText_GetUnicode(text_page, place) or ord("\ufffe"))
        # PDFium counts UTF-16's code units.
        if "\ud800" <= text < "\udc00" or text in "\r\n":
            high = text.strip()
            continue
        text = (high + text).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        high = ""
        raw.FPDFText_GetLooseCharBox(text_page, place, box)
        raw.FPDFText_GetCharOrigin(text_page, place, x, y)
        raw.FPDFText_GetCharBox(text_page, place, other, other, bottom, other)
        yield _Char(
            text,
            box.left,
            box.right,
            y.value,
            box.top - box.bottom,
            raw.FPDFText_GetFontSize(text_page, place),
            addresses.get(place, ""),
            bottom.value,
            number,
            _content(text_page, place),
        )


def _content(text_page: pypdfium2.PdfTextPage, place: int) -> int:
    """Return the number that a tagged PDF gives to the content of a character."""
    found = raw.FPDFText_GetTextObject(text_page, place)
    return int(raw.FPDFPageObj_GetMarkedContentID(found)) if found else -1


def _lines(chars: Iterable[_Char]) -> Iterator[_Line]:
    """Yield the lines in the order of the file; raised and lowered characters go on a line."""
    line: _Line | None = None
    spaces: list[_Char] = []
    for char in chars:
        if char.text.isspace():
            spaces.append(char)
            continue
        if line and _goes_on(line, char):
            line.chars += [*spaces, char]
            if char.height > line.height / _SMALLER:
                # The line began with a raised number.
                line.baseline, line.height = char.baseline, char.height
        else:
            if line:
                yield _with_raised(line)
            line = _Line([char], char.baseline, char.height)
        spaces = []
    if line:
        yield _with_raised(line)


def _goes_on(line: _Line, char: _Char) -> bool:
    tall = max(line.height, char.height)
    is_level = abs(char.baseline - line.baseline) < 0.45 * tall
    is_behind = char.left > line.chars[-1].left - 0.5 * tall
    is_near = char.left - line.right < _WIDE_GAP * tall or _MARKER.fullmatch(line.text) is not None
    return is_level and is_behind and is_near


def _with_raised(line: _Line) -> _Line:
    is_raised = False
    for char in line.chars:
        # A hyphen is high in any case.
        signs = "0123456789,[]()–-" if is_raised else "0123456789,[]()"
        is_raised = char.text in signs and char.bottom - line.baseline > _RISE * line.height
        char.is_raised = is_raised
    return line


def _without_margins(pages: list[list[_Line]]) -> list[list[_Line]]:
    """Return the pages without headers and footers: page numbers, and lines that pages repeat."""

    def shape(line: _Line) -> tuple[str, int]:
        return re.sub(r"\d+", "#", line.text), round(line.baseline)

    edges = [{id(line): line for line in (*page[:4], *page[-4:])}.values() for page in pages]
    repeated = Counter(shape(line) for lines in edges for line in lines)
    most = max(1, len(pages) // 3)
    kept = []
    for page in pages:
        order = sorted(page, key=lambda line: line.baseline)
        outer = (*order[:3], *order[-3:])
        levels = {round(each.baseline) for each in outer if _MARGIN.fullmatch(each.text)}
        kept.append(
            [
                line
                for line in page
                if repeated[shape(line)] <= most and round(line.baseline) not in levels
            ]
        )
    return kept


def _parts_by_tags(chars: Sequence[_Char], tags: Sequence[TaggedPart]) -> list[_Part]:
    """Return the parts as the PDF declares them; none if it leaves out much of the text."""
    by_content: dict[int, list[_Char]] = defaultdict(list)
    last = -1
    for char in chars:
        last = last if char.text.isspace() else char.content
        by_content[last].append(char)
    parts = []
    for tag in tags:
        cells = [
            list(_lines(char for content in cell for char in by_content[content]))
            for cell in tag.cells
        ]
        if any(cells):
            parts.append(_Part([cell for cell in cells if cell], tag.tag))
    contents = (content for tag in tags for cell in tag.cells for content in cell)
    declared = sum(len(by_content[content]) for content in contents)
    return parts if declared >= _MOST_DECLARED * len(chars) else []


def _usual_gap(pages: Iterable[Sequence[_Line]]) -> float:
    """Return the distance of two lines of a paragraph: the smallest frequent one, in heights."""
    gaps = [
        (upper.baseline - lower.baseline) / upper.height
        for lines in pages
        for upper, lower in pairwise(lines)
    ]
    of_text = sorted(gap for gap in gaps if _LEAST_GAP < gap < _MOST_GAP)
    return of_text[len(of_text) // 5] if of_text else _USUAL_GAP


def _parts(lines: Sequence[_Line], usual: float) -> list[_Part]:
    """Return the paragraphs, headings and rows of a page."""
    parts: list[_Part] = []
    edges = _edges(lines)
    for line in lines:
        part = parts[-1] if parts else None
        if part and _is_next_cell(part, line):
            part.cells.append([line])
        elif part and not _begins_part(part, line, edges, usual):
            part.cells[-1].append(line)
        else:
            parts.append(_Part([[line]]))
    return parts


def _is_next_cell(part: _Part, line: _Line) -> bool:
    """Tell if a line stands beside a part: it is a cell of the same row."""
    baselines = [each.baseline for each in part.lines]
    reach = _MAX_ROW_LINES / 2 * line.height if len(baselines) <= _MAX_ROW_LINES else 0.0
    is_level = min(baselines) - line.height < line.baseline <= max(baselines) + reach
    right = max(each.right for each in part.cells[-1])
    return is_level and line.left > right + _CELL_GAP * line.height


def _begins_part(part: _Part, line: _Line, edges: dict[int, float], usual: float) -> bool:
    """Tell if a line begins a paragraph below another one."""
    cell = part.cells[-1]
    last, first = cell[-1], cell[0]
    gap = (last.baseline - line.baseline) / last.height
    is_other = not _SMALLER < line.height / last.height < 1 / _SMALLER
    if not 0 < gap <= 1.2 * usual or is_other:
        return True
    if len(part.cells) > 1:
        return abs(line.left - first.left) > line.height
    label = _MARKER.match(line.text)
    hangs = line.left < last.left - 2 and abs(line.left - first.left) < 1
    is_entry = label and line.left <= first.left + 1 and _MARKER.match(first.text)
    written = "".join(each.text for each in cell[-4:])
    is_address = _URL.search(written) and _URL_REST.match(line.text)
    was_broken = not is_address and _was_broken(last, line, edges)
    return bool(is_entry) or line.chars[0].is_raised or hangs or was_broken


def _edges(lines: Iterable[_Line]) -> dict[int, float]:
    """Return how far lines reach, by where they begin.

    An address that cannot be broken may reach beyond the margin.
    """
    rights: dict[int, list[float]] = defaultdict(list)
    for line in lines:
        rights[round(line.left / _SAME_LEFT)].append(line.right)
    return {left: sorted(found)[len(found) * 9 // 10] for left, found in rights.items()}


def _was_broken(last: _Line, line: _Line, edges: dict[int, float]) -> bool:
    """Tell if the next word had room on the last line, so the text ended there."""
    room = edges.get(round(last.left / _SAME_LEFT), last.right) - last.right
    return room > line.first_word() + 0.5 * line.height


class _Writer:
    """Writes the parts of all pages as markdown."""

    def __init__(self, body: float, *, keeps_hyphens: bool) -> None:
        self._body = body
        self._keeps_hyphens = keeps_hyphens
        # By page and mark: the notes at the foot of the pages.
        self._notes: dict[tuple[int, str], str] = {}
        self._edges: dict[int, float] = {}

    def markdown(self, pages: Sequence[list[_Part]]) -> str:
        """Return the pages as one text, their notes at the end."""
        body: list[_Part] = []
        notes: list[_Part] = []
        self._edges = _edges(line for parts in pages for part in parts for line in part.lines)
        for parts in pages:
            feet = self._feet(parts)
            notes += feet
            own = parts[: len(parts) - len(feet)]
            if body and own and self._runs_on(body[-1], own[0]):
                body[-1].cells[0] += own.pop(0).cells[0]
            body += own
        written = [*self._blocks(body), *(f"\n\n{self._note(part)}" for part in notes)]
        return "".join(written).strip() + "\n"

    def _feet(self, parts: Sequence[_Part]) -> list[_Part]:
        """Return the parts at the end of a page that are notes: smaller, behind a raised mark."""
        is_small = [part.height < _NOTE_SIZE * self._body for part in parts]
        marks = list(map(_mark_of, parts))
        first = next(
            (at for at, mark in enumerate(marks) if mark and all(is_small[at:])), len(parts)
        )
        for part, mark in zip(parts[first:], marks[first:], strict=True):
            page = part.lines[0].chars[0].page
            self._notes[page, mark] = f"p{page + 1}-{len(self._notes) + 1}"
        return list(parts[first:])

    def _note(self, part: _Part) -> str:
        mark = _mark_of(part)
        if not mark:
            return self._inline(part.lines)
        name = self._notes[part.lines[0].chars[0].page, mark]
        first = part.lines[0]
        rest = _Line(first.chars[len(mark) :], first.baseline, first.height)
        return f"[^{name}]: {self._inline([rest, *part.lines[1:]]).strip()}"

    def _runs_on(self, above: _Part, below: _Part) -> bool:
        """Tell if a paragraph goes on over the page or column."""
        begins = below.lines[0].text
        return (
            above.tag == below.tag
            and abs(above.height - below.height) < 1
            and not _SENTENCE_END.search(above.lines[-1].text)
            and not _MARKER.match(begins)
        )

    def _blocks(self, parts: Sequence[_Part]) -> Iterator[str]:
        for is_table, group in groupby(parts, lambda part: len(part.cells) > 1):
            if is_table:
                yield "\n\n" + "".join(self._rows(list(group)))
                continue
            for part in group:
                yield f"\n\n{self._block(part)}"

    def _rows(self, rows: Sequence[_Part]) -> Iterator[str]:
        for row in rows:
            cells = [self._inline(cell).replace("\n", " ") for cell in row.cells]
            is_head = row.tag == "TH"
            yield "\n" * is_head + f"| {' | '.join(cells)} |\n"
            if is_head:
                yield "|---" * len(cells) + "|\n"

    def _block(self, part: _Part) -> str:
        text = self._inline(part.lines)
        if re.fullmatch(r"H\d?", part.tag):
            return f"{'#' * int(part.tag[1:] or 2)} {text}"
        if part.height > _LARGER * self._body and not part.tag:
            return f"## {text}"
        bullet = _BULLET.match(text)
        if bullet or (part.tag == "LI" and not _MARKER.match(text)):
            return f"- {text[bullet.end() if bullet else 0 :]}"
        return text

    def _inline(self, lines: Sequence[_Line]) -> str:
        chars: list[_Char] = []
        for above, line in zip([None, *lines], lines, strict=False):
            if above is not None:
                self._join(chars, above, line)
            chars += line.chars
        runs = groupby(chars, lambda char: (char.link, char.is_raised))
        pieces: list[tuple[str, str]] = []
        for (link, is_raised), group in runs:
            run = list(group)
            text = "".join(each.text for each in run)
            pieces.append((link, self._raised(text, run[0].page) if is_raised else text))
        written = ""
        for link, linked in groupby(pieces, lambda piece: piece[0]):
            text = "".join(text for _, text in linked)
            written += _as_link(text, link) if link else text
        return written.translate(_AS_HYPHEN)

    def _raised(self, text: str, page: int) -> str:
        mark = text.strip()
        if not _RAISED.fullmatch(mark):
            return text
        note = self._notes.get((page, mark.strip("[]()")))
        return f"[^{note}]" if note else f"<sup>{mark}</sup>"

    def _join(self, chars: list[_Char], above: _Line, line: _Line) -> None:
        """Put a space between two lines, or take the hyphen of a broken word out."""
        written = "".join(each.text for each in chars[-400:])
        last, first = chars[-1], line.chars[0]
        is_link = last.link != first.link
        # Without tags, a line that was broken has begun a part of its own.
        is_own = first.content >= 0 and not (last.link and first.link)
        is_broken = is_own and _was_broken(above, line, self._edges)
        is_address = _URL.search(written) is not None and not (is_link or is_broken)
        if last.text in _HYPHENS:
            is_word = written[-2:-1].isalpha() and first.text.islower()
            if last.text == "\u00ad" or (is_word and not (self._keeps_hyphens or is_address)):
                chars.pop()
            return
        if is_address and (last.text in _OPEN_END or _URL_REST.match(line.text)):
            return
        if _CJK.match(last.text) and _CJK.match(first.text):
            return
        link = last.link if last.link == first.link else ""
        chars.append(_Char("\n" if is_broken else " ", 0, 0, 0, 0, 0, link))


def _mark_of(part: _Part) -> str:
    """Return the raised mark that a note begins with."""
    line = part.lines[0]
    mark = _NOTE_MARK.match(line.text)
    is_raised = line.chars[0].is_raised or line.text[:1] in "*†‡§"
    return mark[0] if mark and is_raised else ""


def _as_link(shown: str, address: str) -> str:
    name = " ".join(shown.split())
    before = shown[: len(shown) - len(shown.lstrip())]
    after = shown[len(shown.rstrip()) :]
    if not name or re.match(r"https?:|www\.", name):
        return f"{before}{address if name else ''}{after}"
    target = f"<{address}>" if re.search(r"[()\s]", address) else address
    number = re.fullmatch(r"<sup>(.*)</sup>", name)
    return f"{before}[{number[1] if number else name}]({target}){after}"


def _links(page: pypdfium2.PdfPage, text_page: pypdfium2.PdfPage) -> Iterator[tuple[int, int, str]]:
    """Yield the places of the text that links cover, a line each, and the addresses."""
    position = ctypes.c_int(0)
    link = raw.FPDF_LINK()
    while raw.FPDFLink_Enumerate(page, position, link):
        action = raw.FPDFLink_GetAction(link)
        length = raw.FPDFAction_GetURIPath(page.pdf, action, None, 0) if action else 0
        rect = raw.FS_RECTF()
        if not raw.FPDFLink_GetAnnotRect(link, rect):
            continue
        buffer = ctypes.create_string_buffer(length)
        raw.FPDFAction_GetURIPath(page.pdf, action, buffer, length)
        middle = (rect.top + rect.bottom) / 2
        first, last = (
            raw.FPDFText_GetCharIndexAtPos(text_page, x, middle, 4, 8)
            for x in (rect.left + 1, rect.right - 1)
        )
        address = buffer.value.decode("utf-8", "replace")
        if 0 <= first <= last:
            yield first, last + 1, address
