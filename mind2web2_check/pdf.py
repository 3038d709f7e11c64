"""A PDF as markdown, read by its layout: paragraphs, headings, rows, notes, links, raised marks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from statistics import median

from mind2web2_check.pdf_lines import MARKER, URL, URL_REST, Line, Part, parts_of
from mind2web2_check.pdf_words import CJK, Word, pages_of

_RAISED = re.compile(r"[\[(]?\d{1,3}(?:[,–-]\s?\d{1,3})*[\])]?|[*†‡§]{1,3}|[a-z]")
_NOTE_MARK = re.compile(r"\d{1,3}|[*†‡§]{1,3}")
_HYPHENS = "-\u00ad\u2010\ufffe\x02"
_AS_HYPHEN = {0xFFFE: "-", 2: "-"}
_BULLET = re.compile(r"\A[•◦▪‣●○■–]\s*")
_OPEN_END = "/&?=_-%#"
_SENTENCE_END = re.compile(r"[.!?。！？:：;][\"'”’»)\]*\d]*$")
_BETWEEN_CJK = re.compile(CJK.pattern * 2)
_LARGER, _NOTE_SIZE = 1.12, 0.94
_BOLD = 1.2


def pdf_markdown(data: bytes) -> str:
    """Return a PDF's text by its layout, with links as markdown and raised marks in ``<sup>``.

    Raises:
        UsageError: it cannot be opened.
    """
    pages, is_browser = pages_of(data)
    words = [word for page in pages for word in page.words]
    if not words:
        return ""
    # The boxes of a line's fonts differ in height; their sizes do not.
    scale = median(word.height / max(word.size, 1.0) for word in words)
    sizes: Counter[float] = Counter()
    for word in words:
        word.height = word.size * scale
        sizes[round(word.height, 1)] += len(word.text)
    weight = median(word.weight for word in words)
    # Browsers break lines at hyphens of the text and add none.
    writer = _Writer(sizes.most_common(1)[0][0], weight, keeps_hyphens=is_browser)
    return writer.markdown(parts_of(pages))


class _Writer:
    """Writes the parts of all pages as markdown."""

    def __init__(self, body: float, weight: float, *, keeps_hyphens: bool) -> None:
        self._body = body
        self._weight = weight
        self._keeps_hyphens = keeps_hyphens
        # By page and mark: the notes at the foot of the pages.
        self._notes: dict[tuple[int, str], str] = {}

    def markdown(self, pages: Sequence[list[Part]]) -> str:
        """Return the pages as one text, their notes at the end."""
        body: list[Part] = []
        notes: list[Part] = []
        for parts in pages:
            feet = self._feet(parts)
            notes += feet
            for number, part in enumerate(parts[: len(parts) - len(feet)]):
                is_over = body and (number == 0 or _is_next_column(body[-1], part))
                if is_over and self._runs_on(body[-1], part):
                    body[-1].cells[0] += part.cells[0]
                else:
                    body.append(part)
        written = [*self._blocks(body), *(f"\n\n{self._note(part)}" for part in notes)]
        return re.sub(r"\n{3,}", "\n\n", "".join(written).strip()) + "\n"

    def _feet(self, parts: Sequence[Part]) -> list[Part]:
        """Return the parts at the end of a page that are notes: smaller, behind a raised mark."""
        is_small = [part.height < _NOTE_SIZE * self._body for part in parts]
        marks = list(map(_mark_of, parts))
        first = next(
            (at for at, mark in enumerate(marks) if mark and all(is_small[at:])), len(parts)
        )
        for part, mark in zip(parts[first:], marks[first:], strict=True):
            page = part.lines[0].words[0].page
            self._notes[page, mark] = f"[^p{page + 1}-{len(self._notes) + 1}]"
        return list(parts[first:])

    def _note(self, part: Part) -> str:
        mark = _mark_of(part)
        if not mark:
            return self._inline(part.lines)
        name = self._notes[part.lines[0].words[0].page, mark]
        first, *others = part.lines
        return f"{name}: {self._inline([first.part(1), *others]).strip()}"

    def _runs_on(self, above: Part, below: Part) -> bool:
        """Tell if a paragraph goes on over the page or column."""
        begins = below.lines[0].text
        return (
            len(above.cells) == len(below.cells) == 1
            and abs(above.height - below.height) < 1
            and not _SENTENCE_END.search(above.lines[-1].text)
            and not MARKER.match(begins)
        )

    def _blocks(self, parts: Sequence[Part]) -> Iterator[str]:
        for part in parts:
            is_row = len(part.cells) > 1
            yield self._row(part) if is_row else f"\n\n{self._block(part)}\n\n"

    def _row(self, row: Part) -> str:
        cells = map(self._inline, row.cells)
        is_head = row.weight > _BOLD * self._weight
        rule = "|---" * len(row.cells) + "|\n"
        return "\n" * is_head + f"| {' | '.join(cells)} |\n" + rule * is_head

    def _block(self, part: Part) -> str:
        is_heading = part.height > _LARGER * self._body
        return "## " * is_heading + _BULLET.sub("- ", self._inline(part.lines), count=1)

    def _inline(self, lines: Sequence[Line]) -> str:
        words = list(lines[0].words)
        for line in lines[1:]:
            self._join(words, line)
            words += line.words
        written = ""
        for link, linked in groupby(words, lambda word: word.link):
            runs = groupby(linked, lambda word: word.is_raised)
            text = "".join(self._run(list(run)) for _, run in runs)
            written += _as_link(text, link) if link else text
        return written.translate(_AS_HYPHEN)

    def _run(self, words: Sequence[Word]) -> str:
        text = "".join(word.space + word.text for word in words)
        mark = text.strip()
        if not (words[0].is_raised and _RAISED.fullmatch(mark)):
            return text
        key = (words[0].page, mark.strip("[]()"))
        return text.replace(mark, self._notes.get(key, f"<sup>{mark}</sup>"))

    def _join(self, words: list[Word], line: Line) -> None:
        """Put a space between two lines, or take the hyphen of a broken word out."""
        written = Line(words[-99:], 0, 0).text
        last, first = words[-1], line.words[0]
        is_address = URL.search(written) is not None and last.link == first.link
        if last.text in _HYPHENS:
            is_word = written[-2:-1].isalpha() and first.text[0].islower()
            if last.text == "\u00ad" or (is_word and not (self._keeps_hyphens or is_address)):
                words.pop()
            return
        if is_address and (last.text in _OPEN_END or URL_REST.match(line.text)):
            return
        if _BETWEEN_CJK.match(last.text[-1] + first.text):
            return
        first.space = " "


def _is_next_column(above: Part, below: Part) -> bool:
    """Tell whether a part begins higher on the page than the one before it ends, and beside it."""
    last, first = above.lines[-1], below.lines[0]
    return first.baseline > last.baseline and first.left > last.left + last.height


def _mark_of(part: Part) -> str:
    """Return the raised mark that a note begins with."""
    line = part.lines[0]
    mark = _NOTE_MARK.match(line.text)
    is_raised = line.words[0].is_raised or line.text[:1] in "*†‡§"
    return mark[0] if mark and is_raised else ""


def _as_link(shown: str, address: str) -> str:
    name = " ".join(shown.split())
    before = shown[: len(shown) - len(shown.lstrip())]
    after = shown[len(shown.rstrip()) :]
    if re.match(r"https?:|www\.", name):
        return f"{before}{address}{after}"
    name = re.sub(r"\A<sup>(.*)</sup>\Z", r"\1", name)
    return f"{before}[{name}](<{address}>){after}"
