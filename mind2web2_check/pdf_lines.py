"""Lines of a PDF's page, and the paragraphs, headings and rows that they form."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from statistics import median

from mind2web2_check.pdf_words import CJK, Page, Word

# A program that prints a page adds its date, title, address and number.
_MARGIN = re.compile(
    r"\s*|\s*(?:page\s*)?\d{1,4}(?:\s*(?:/|of)\s*\d{1,4})?\s*|(?:https?|file)://\S+\s+\d+/\d+\s*"
    r"|\d{1,4}[/.-]\d{1,2}[/.-]\d{2,4},? \d{1,2}:\d{2}.*",
    re.IGNORECASE,
)
MARKER = re.compile(r"\s*(?:[•◦▪‣●○■–]|[\[(]?\w{1,4}[.)\]])\s*")
URL = re.compile(r"(?:https?://|www\.|doi\.org/|\b10\.\d{4,9}/)\S*$", re.IGNORECASE)
URL_REST = re.compile(r"(?!https?:|www\.|[\[(]?\^?\d{1,4}[\]).])\S*[/.?=&_%#~\d-]\S")
_BREAK = re.compile(rf"-|.(?:\s|{CJK.pattern})", re.DOTALL)
_SMALLER = 0.85
_WIDE_GAP, _SPACE, _RISE = 0.8, 0.15, 0.15
_SAME_LEFT, _CLOSE = 1.0, 1.5
# Lines in a row, and those of them that begin at one place, which make a column.
_AROUND, _LEAST_AROUND = 5, 4
_BASELINE = attrgetter("baseline")
_LEAST_GAP, _USUAL_GAP, _MOST_GAP = 0.7, 1.2, 2.5


@dataclass(slots=True)
class Line:
    """Words on one baseline without a wide gap between them."""

    words: list[Word]
    baseline: float
    height: float

    @property
    def left(self) -> float:
        """Where it begins."""
        return self.words[0].left

    @property
    def right(self) -> float:
        """Where it ends."""
        return self.words[-1].right

    @property
    def text(self) -> str:
        """What it says."""
        return "".join(word.space + word.text for word in self.words)

    def add(self, word: Word) -> None:
        """Add a word, which may show that the line began with a raised number."""
        # PDFium takes a page of narrow lines for a vertical script, and ends a line at each letter.
        word.space = word.space or " " * (word.left - self.right > _SPACE * self.height)
        self.words.append(word)
        if word.height > self.height / _SMALLER:
            self.baseline, self.height = word.baseline, word.height

    def part(self, begin: int, end: int | None = None) -> Line:
        """Return the line with some of its words."""
        return Line(self.words[begin:end], self.baseline, self.height)

    def crosses(self, left: float) -> bool:
        """Tell if the line is on both sides of an edge, and no word begins there."""
        is_across = self.left < left - 1 and left + 1 < self.right
        return is_across and all(abs(word.left - left) > 1 for word in self.words)

    def mark_raised(self) -> None:
        """Mark the words that are raised."""
        is_raised = False
        for word in self.words:
            # A hyphen is high in any case.
            is_mark = word.text.isalnum() or word.text in ("[](),–-" if is_raised else "[](),")
            is_raised = is_mark and word.bottom - self.baseline > _RISE * self.height
            word.is_raised = is_raised

    def first_word(self) -> float:
        """Return how wide the first word is, up to a place where a line may break."""
        for before, word in pairwise(self.words):
            if _BREAK.match(before.text[-1] + word.space + word.text):
                return before.right - self.left
        return self.right - self.left


@dataclass(slots=True)
class Part:
    """A row of cells, each of lines; a paragraph or heading has one cell."""

    cells: list[list[Line]]

    @property
    def lines(self) -> list[Line]:
        """The lines of all cells."""
        return [line for cell in self.cells for line in cell]

    @property
    def height(self) -> float:
        """The usual height of a line."""
        return median(line.height for line in self.lines)

    @property
    def weight(self) -> int:
        """How bold the lightest word is."""
        return min(word.weight for line in self.lines for word in line.words)


def parts_of(pages: Sequence[Page]) -> list[list[Part]]:
    """Return the paragraphs, headings and rows of each page."""
    read = _without_margins([list(_cells(_lines(page.words))) for page in pages])
    for lines, page in zip(read, pages, strict=True):
        bullets = sorted(page.bullets, key=_BASELINE)
        for line in lines:
            line.words[:0] = _bullets_of(line, bullets)
    usual = _usual_gap(read)
    return [_parts(lines, usual) for lines in read]


def _bullets_of(line: Line, bullets: Sequence[Word]) -> list[Word]:
    """Return the bullets right before a line.

    Args:
        bullets: those of the page, from the foot up.
    """
    begin = bisect_right(bullets, line.baseline, key=_BASELINE)
    end = bisect_left(bullets, line.baseline + line.height / 2, key=_BASELINE)
    return [sign for sign in bullets[begin:end] if 0 < line.left - sign.right < line.height]


def _lines(words: Iterable[Word]) -> list[Line]:
    """Return the lines in the order of the file; raised and lowered words go on a line."""
    lines: list[Line] = []
    for word in words:
        if lines and _goes_on(lines[-1], word):
            lines[-1].add(word)
        else:
            word.space = ""
            lines.append(Line([word], word.baseline, word.height))
    for line in lines:
        line.mark_raised()
    return lines


def _cells(lines: Sequence[Line]) -> Iterator[Line]:
    """Yield the lines, cut where a cell of another row begins in the same column.

    Between narrow columns, a gap may be no wider than a space.
    """
    starts: dict[float, list[float]] = defaultdict(list)
    for before, line in pairwise(lines):
        if _begins_cell(before, line):
            starts[round(line.left, 1)].append(line.baseline)
    order = sorted(lines, key=_BASELINE)
    for line in lines:
        begin = 0
        for at, word in enumerate(line.words):
            levels = starts.get(round(word.left, 1))
            is_start = word.space and levels and _is_gutter(order, word.left, line, levels)
            # The lines of a list's entry begin behind its mark.
            if is_start and not MARKER.fullmatch(line.part(begin, at).text):
                yield line.part(begin, at)
                word.space, begin = "", at
        yield line.part(begin)


def _begins_cell(before: Line, line: Line) -> bool:
    """Tell if a line stands beside the line before it in the file, or below the end of it.

    Below it is a further line of the last cell.
    """
    is_below_end = before.left + line.height < line.left and line.right < before.right + line.height
    return line.left > before.right or is_below_end


def _is_gutter(order: Sequence[Line], left: float, line: Line, levels: Iterable[float]) -> bool:
    """Tell if no line crosses the left edge of a column, from a line to the nearest level."""
    nearest = min(levels, key=lambda level: abs(level - line.baseline))
    low, high = sorted((line.baseline, nearest))
    reach = _CLOSE * line.height
    begin = bisect_left(order, low - reach, key=_BASELINE)
    end = bisect_left(order, high + reach, key=_BASELINE)
    return not any(each.crosses(left) for each in order[begin:end])


def _goes_on(line: Line, word: Word) -> bool:
    tall = max(line.height, word.height)
    is_level = abs(word.baseline - line.baseline) < 0.45 * tall
    is_near = word.left - line.right < _WIDE_GAP * tall or MARKER.fullmatch(line.text) is not None
    return is_level and is_near


def _without_margins(pages: list[list[Line]]) -> list[list[Line]]:
    """Return the pages without headers and footers: page numbers, and lines that pages repeat."""

    def shape(line: Line) -> tuple[str, int]:
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


def _usual_gap(pages: Iterable[Sequence[Line]]) -> float:
    """Return the distance of two lines of a paragraph: the smallest frequent one, in heights."""
    gaps = sorted(
        gap
        for lines in pages
        for upper, lower in pairwise(lines)
        if abs(upper.left - lower.left) < _SAME_LEFT
        and _LEAST_GAP < (gap := (upper.baseline - lower.baseline) / lower.height) < _MOST_GAP
    )
    return gaps[len(gaps) // 5] if gaps else _USUAL_GAP


def _parts(lines: Sequence[Line], usual: float) -> list[Part]:
    """Return the paragraphs, headings and rows of a page."""
    parts = [Part([[line]]) for line in lines[:1]]
    ceiling = math.inf
    for edge, line in zip(_edges(lines), lines[1:], strict=False):
        part = parts[-1]
        if _is_next_cell(part, line, ceiling):
            part.cells.append([line])
        elif _begins_part(part, line, edge, usual):
            ceiling = min(each.baseline for each in part.lines)
            parts.append(Part([[line]]))
        else:
            part.cells[-1].append(line)
    return parts


def _is_next_cell(part: Part, line: Line, ceiling: float) -> bool:
    """Tell if a line stands beside a part, below the part above: it is a cell of the same row."""
    bottom = min(each.baseline for each in part.lines)
    right = max(each.right for each in part.cells[-1])
    is_level = bottom - line.height < line.baseline < ceiling
    return is_level and line.left > right


def _begins_part(part: Part, line: Line, edge: float, usual: float) -> bool:
    """Tell if a line begins a paragraph below another one, which may reach to the edge."""
    cell = part.cells[-1]
    last, first = cell[-1], cell[0]
    gap = (last.baseline - line.baseline) / last.height
    if not 0 < gap <= 1.3 * usual:
        return True
    if len(part.cells) > 1:
        return abs(line.left - first.left) > line.height
    label = MARKER.match(line.text)
    hangs = line.left < last.left - 2 and abs(line.left - first.left) < 1
    is_entry = label and line.left <= first.left + 1 and MARKER.match(first.text)
    if is_entry or hangs or line.words[0].is_raised:
        return True
    return _was_broken(last, line, edge) and not _is_address(cell, line)


def _is_address(lines: Sequence[Line], line: Line) -> bool:
    """Tell if an address goes on in a line."""
    written = "".join(each.text for each in lines[-4:])
    return bool(URL.search(written) and URL_REST.match(line.text))


def _edges(lines: Sequence[Line]) -> Iterator[float]:
    """Yield how far each line may reach: as far as the lines of the page that begin where it does.

    An address that cannot be broken may reach beyond the margin. Where lines in a row all end early
    together, beside a picture or in a column below a wide text, they may reach no further.
    """
    rights: dict[int, list[float]] = defaultdict(list)
    for line in lines:
        rights[_place(line)].append(line.right)
    edges = {place: sorted(found)[len(found) * 9 // 10] for place, found in rights.items()}
    for number, line in enumerate(lines):
        edge = edges[_place(line)]
        for start in (number + 1 - _AROUND, number):
            around = lines[max(start, 0) : start + _AROUND]
            ends = sorted(each.right for each in around if _place(each) == _place(line))
            if len(ends) >= _LEAST_AROUND and ends[-1] - ends[-3] < 4 * line.height:
                edge = min(edge, ends[-1])
        yield edge


def _place(line: Line) -> int:
    return round(line.left / _SAME_LEFT)


def _was_broken(last: Line, line: Line, edge: float) -> bool:
    """Tell if the next word had room on the last line, so the text ended there."""
    room = edge - last.right
    return room > line.first_word() + 0.5 * line.height
