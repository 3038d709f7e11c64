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

from mind2web2.plugin import UsageError

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
_BULLET = re.compile(r"\A[•◦▪‣●○■–]\s*")
_MARKER = re.compile(r"\s*(?:[•◦▪‣●○■–]|[\[(]?\w{1,4}[.)\]])\s*")
_URL = re.compile(r"(?:https?://|www\.|doi\.org/|\b10\.\d{4,9}/)\S*$", re.IGNORECASE)
_URL_REST = re.compile(r"(?!https?:|www\.|[\[(]?\^?\d{1,4}[\]).])\S*[/.?=&_%#~\d-]\S")
_OPEN_END = "/&?=_-%#"
_SENTENCE_END = re.compile(r"[.!?。！？:：;][\"'”’»)\]*\d]*$")
_CJK = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]")
_SMALLER, _LARGER, _NOTE_SIZE = 0.85, 1.12, 0.94
_WIDE_GAP, _CELL_GAP, _MAX_ROW_LINES, _RISE = 0.8, 0.05, 8, 0.15
_SAME_LEFT = 1.0
_BOLD = 1.2
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
    is_raised: bool = False
    weight: int = 0

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

    def add(self, chars: Sequence[_Char]) -> None:
        """Add characters, the last of which may show that the line began with a raised number."""
        self.chars += chars
        if chars[-1].height > self.height / _SMALLER:
            self.baseline, self.height = chars[-1].baseline, chars[-1].height

    def mark_raised(self) -> None:
        """Mark the characters that are raised."""
        is_raised = False
        for char in self.chars:
            # A hyphen is high in any case.
            is_mark = char.text.isalnum() or char.text in ("[](),–-" if is_raised else "[](),")
            is_raised = is_mark and char.bottom - self.baseline > _RISE * self.height
            char.is_raised = is_raised

    def first_word(self) -> float:
        """Return how wide the first word is, up to a place where a line may break."""
        for before, each in pairwise(self.chars):
            if each.text.isspace() or before.text == "-" or _CJK.match(each.text):
                return before.right - self.left
        return self.right - self.left


@dataclass(slots=True)
class _Part:
    """A row of cells, each of lines; a paragraph or heading has one cell."""

    cells: list[list[_Line]]

    @property
    def lines(self) -> list[_Line]:
        return [line for cell in self.cells for line in cell]

    @property
    def height(self) -> float:
        return median(line.height for line in self.lines)

    @property
    def weight(self) -> int:
        # Spaces that the reader has put in have none.
        return min(
            char.weight for line in self.lines for char in line.chars if not char.text.isspace()
        )


def pdf_markdown(data: bytes) -> str:
    """Return a PDF's text by its layout, with links as markdown and raised marks in ``<sup>``.

    Raises:
        UsageError: it cannot be opened.
    """
    try:
        with pypdfium2.PdfDocument(data) as document:
            # Browsers break lines at hyphens of the text and add none; their spaces are characters.
            is_browser = "Skia" in document.get_metadata_value("Producer")
            chars = [list(_chars(page, number)) for number, page in enumerate(document)]
            bullets = [list(_bullets(page)) for page in document]
    except pypdfium2.PdfiumError as error:
        raise UsageError(f"the PDF cannot be opened: {error}") from error
    every = list(chain(*chars))
    if not every:
        return ""
    # The boxes of a line's fonts differ in height; their sizes do not.
    scale = median(each.scale for each in every)
    for each in every:
        each.height = each.size * scale
    pages = _without_margins(list(map(_lines, chars)))
    for lines, signs in zip(pages, bullets, strict=True):
        for line in lines:
            line.chars[:0] = [sign for sign in signs if _is_bullet_of(line, sign)]
    sizes = Counter(round(each.height, 1) for each in every)
    usual = _usual_gap(pages)
    weight = median(each.weight for each in every)
    writer = _Writer(sizes.most_common(1)[0][0], weight, keeps_hyphens=is_browser)
    return writer.markdown([_parts(lines, usual) for lines in pages])


def _chars(page: pypdfium2.PdfPage, number: int) -> Iterator[_Char]:
    text_page = page.get_textpage()
    # The object itself would be converted at each call.
    handle = text_page.raw
    links = list(_links(page))
    box = raw.FS_RECTF()
    x, y, bottom, other = (ctypes.c_double() for _ in range(4))
    high = ""
    for place in range(text_page.count_chars()):
        text = chr(raw.FPDFText_GetUnicode(handle, place) or ord("\ufffe"))
        # PDFium counts UTF-16's code units.
        if "\ud800" <= text < "\udc00" or text in "\r\n":
            high = text.strip()
            continue
        if high or text >= "\ud800":
            text = (high + text).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
            high = ""
        raw.FPDFText_GetLooseCharBox(handle, place, box)
        raw.FPDFText_GetCharOrigin(handle, place, x, y)
        raw.FPDFText_GetCharBox(handle, place, other, other, bottom, other)
        middle = (box.left + box.right) / 2
        level = (box.top + box.bottom) / 2
        covering = (
            url
            for rect, url in links
            if rect.left < middle < rect.right and rect.bottom < level < rect.top
        )
        yield _Char(
            text,
            box.left,
            box.right,
            y.value,
            box.top - box.bottom,
            raw.FPDFText_GetFontSize(handle, place),
            next(covering, ""),
            bottom.value,
            number,
            weight=raw.FPDFText_GetFontWeight(handle, place),
        )


def _bullets(page: pypdfium2.PdfPage) -> Iterator[_Char]:
    """Yield small drawn signs: browsers draw the bullets of lists."""
    # Each letter may be an object.
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    for place in range(raw.FPDFPage_CountObjects(page.raw)):
        drawn = raw.FPDFPage_GetObject(page.raw, place)
        if raw.FPDFPageObj_GetType(drawn) == raw.FPDF_PAGEOBJ_PATH:
            raw.FPDFPageObj_GetBounds(drawn, left, bottom, right, top)
            height = top.value - bottom.value
            yield _Char("•", left.value, right.value, bottom.value, height, 0)


def _is_bullet_of(line: _Line, sign: _Char) -> bool:
    is_level = line.baseline < sign.baseline < line.baseline + line.height / 2
    is_beside = 0 < line.left - sign.right < line.height
    return is_level and is_beside


def _lines(chars: Iterable[_Char]) -> list[_Line]:
    """Return the lines in the order of the file; raised and lowered characters go on a line."""
    lines: list[_Line] = []
    spaces: list[_Char] = []
    for char in chars:
        if char.text.isspace():
            spaces.append(char)
            continue
        if lines and _goes_on(lines[-1], char):
            lines[-1].add([*spaces, char])
        else:
            lines.append(_Line([char], char.baseline, char.height))
        spaces = []
    for line in lines:
        line.mark_raised()
    return lines


def _goes_on(line: _Line, char: _Char) -> bool:
    tall = max(line.height, char.height)
    is_level = abs(char.baseline - line.baseline) < 0.45 * tall
    is_near = char.left - line.right < _WIDE_GAP * tall or _MARKER.fullmatch(line.text) is not None
    return is_level and is_near


def _without_margins(pages: list[list[_Line]]) -> list[list[_Line]]:
    """Return the pages without headers and footers: page numbers, and lines that pages repeat."""

    def shape(line: _Line) -> tuple[str, int]:
        return re.sub(r"\d+", "#", line.text), round(line.baseline)

    repeated = Counter(shape(line) for page in pages for line in (*page[:4], *page[4:][-4:]))
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
    if not 0 < gap <= 1.3 * usual:
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

    def __init__(self, body: float, weight: float, *, keeps_hyphens: bool) -> None:
        self._body = body
        self._weight = weight
        self._keeps_hyphens = keeps_hyphens
        # By page and mark: the notes at the foot of the pages.
        self._notes: dict[tuple[int, str], str] = {}

    def markdown(self, pages: Sequence[list[_Part]]) -> str:
        """Return the pages as one text, their notes at the end."""
        body: list[_Part] = []
        notes: list[_Part] = []
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
            abs(above.height - below.height) < 1
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
            cells = map(self._inline, row.cells)
            is_head = row.weight > _BOLD * self._weight
            yield "\n" * is_head + f"| {' | '.join(cells)} |\n"
            if is_head:
                yield "|---" * len(row.cells) + "|\n"

    def _block(self, part: _Part) -> str:
        text = self._inline(part.lines)
        if part.height > _LARGER * self._body:
            return f"## {text}"
        return _BULLET.sub("- ", text, count=1)

    def _inline(self, lines: Sequence[_Line]) -> str:
        chars: list[_Char] = []
        for line in lines:
            if chars:
                self._join(chars, line)
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

    def _join(self, chars: list[_Char], line: _Line) -> None:
        """Put a space between two lines, or take the hyphen of a broken word out."""
        written = "".join(each.text for each in chars[-400:])
        last, first = chars[-1], line.chars[0]
        is_link = last.link != first.link
        is_address = _URL.search(written) is not None and not is_link
        if last.text in _HYPHENS:
            is_word = written[-2:-1].isalpha() and first.text.islower()
            if last.text == "\u00ad" or (is_word and not (self._keeps_hyphens or is_address)):
                chars.pop()
            return
        if is_address and (last.text in _OPEN_END or _URL_REST.match(line.text)):
            return
        if _CJK.match(last.text) and _CJK.match(first.text):
            return
        chars.append(_Char(" ", 0, 0, 0, 0, 0, last.link))


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
    if not name:
        return shown
    if re.match(r"https?:|www\.", name):
        return f"{before}{address}{after}"
    name = re.sub(r"\A<sup>(.*)</sup>\Z", r"\1", name)
    return f"{before}[{name}](<{address}>){after}"


def _links(page: pypdfium2.PdfPage) -> Iterator[tuple[raw.FS_RECTF, str]]:
    """Yield where links are, a line each, and their addresses."""
    position = ctypes.c_int(0)
    link = raw.FPDF_LINK()
    while raw.FPDFLink_Enumerate(page, position, link):
        action = raw.FPDFLink_GetAction(link)
        length = raw.FPDFAction_GetURIPath(page.pdf, action, None, 0) if action else 0
        rect = raw.FS_RECTF()
        raw.FPDFLink_GetAnnotRect(link, rect)
        buffer = ctypes.create_string_buffer(length)
        raw.FPDFAction_GetURIPath(page.pdf, action, buffer, length)
        yield rect, buffer.value.decode("utf-8", "replace")
