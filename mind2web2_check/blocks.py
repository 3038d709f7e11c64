"""A report cut into blocks by their places in its text.

The blocks are headings, paragraphs, list items, table rows and code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from mind2web2_check.labels import SIGNED_LABEL, entry_label
from mind2web2_check.words import LIST_HEADINGS, SOURCE_LABELS, SOURCE_LINE, is_list_heading

Kind = Literal["heading", "paragraph", "item", "head", "row", "code", "rule"]

# The level of a heading that markdown does not mark as such.
PLAIN_HEADING = 7

_HEADING = re.compile(r"\s{0,3}(?:>\s*)*(#{1,6})\s+(.*?)\s*#*\s*$")
_RULE = re.compile(r"\s{0,3}(?:(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,}|={3,}\s*)$")
_FENCE = re.compile(r"\s*(?:>\s*)*(`{3,}|~{3,}|\$\$(?!.*\$\$)|\\\[\s*$)")
_ROW = re.compile(r"\s*\|(?:.*\|)?\s*")
_DELIMITER_ROW = re.compile(r"\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*$")
_PREFIX = re.compile(r"\s*(?:>\s?)*\s*")
_ITEM = re.compile(
    rf"(?:[-+•·‣◦–]|\*(?!\s+(?i:{SOURCE_LABELS})\s?[:：])|(\d{{1,3}})\\?[.)、．]|\(?([a-z])\))\s+(?=\S)"
)
_ONLY_ADDRESS = re.compile(r"[^\w\[]*(?:https?://\S+|\[[^\[\]]*\]\(\S+\))(?:\s\[\d{1,3}\])?[^\w]*")
_ENDS_IN_ADDRESS = re.compile(r"(?:https?://|www\.|\b10\.\d{4,9}/)\S+$", re.IGNORECASE)
# A definition, or an address.
_IS_ENTRY = re.compile(
    r"\A\\?\[\^?[^\[\]\s]{1,40}?\\?\]:|https?:|www\.|\bdoi\b|\b10\.\d{4}", re.IGNORECASE
)
# A label, and not a mark: an address, a title and an address, or another label stand behind it.
_LABELLED = re.compile(
    rf"(?<![^\s：])(?:\*\*)?(?:(?:{SIGNED_LABEL})(?!\()(?=(?:\*\*)?:?\s*[^\s.,;])"
    r"|\[\d{1,3}\](?=\()|(?:#\d{1,3}|(?:Ref\. )?\d{1,3}[.):](?:\*\*)?)(?=\s))"
)
# "**Sources:** [1] address [2] address", "<b>Sources</b> [1] address"
_SIGNS = r"(?>(?:[^\w\[<]|_|</?\w[^<>]{0,40}>)*)"
_LIST_NAME = re.compile(
    rf"(?:[^\[\].!?\n]{{1,40}}(?:[:：]|\s[–—-])|{_SIGNS}(?:{LIST_HEADINGS}))?{_SIGNS}(?:`{{3}}\w*\n)?",
    re.IGNORECASE,
)
_IS_MOSTLY = 0.9
BOLD_LINE = re.compile(r"(\*\*|__)(?!\s)[^\n]+?\1:?$")
_HARD_BREAK = re.compile(r"(?: {2,}|\\|<br\s*/?>)$")
_SENTENCE_END = re.compile(r"[.!?。！？:：;,，、]\W*$")
_MAX_SHORT_LINE = 50
_MAX_LABEL_CHARS = 200


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of the text.

    Args:
        level: of a heading, from 1.
        number: of a numbered list's item, as it is written.
        table: which table a row belongs to, from 1.
    """

    kind: Kind
    start: int
    end: int
    level: int = 0
    number: str = ""
    table: int = 0


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    text: str

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def blocks_of(text: str) -> list[Block]:
    """Return the blocks of a text in order."""
    return [part for block in _Cutter(text).blocks() for part in _entries_of(block, text)]


def _entries_of(block: Block, text: str) -> Iterator[Block]:
    """Yield a paragraph that is a list of sources in one line as one block for each entry."""
    content = text[block.start : block.end]
    starts = list(map(re.Match.start, _LABELLED.finditer(content)))
    look = _look(content, starts[-1]) if starts else ""
    starts = [start for start in starts if _look(content, start) == look]
    listed = [
        start for start, end in pairwise([*starts, len(content)]) if "http" in content[start:end]
    ]
    parts = list({0: 0} | dict.fromkeys(listed))
    is_list = len(parts) > 1 and _IS_MOSTLY * len(starts) <= len(listed)
    if not is_list or not _LIST_NAME.fullmatch(content[: starts[0]]):
        yield block
        return
    for start, end in pairwise([*parts, len(content)]):
        length = len(content[start:end].rstrip(" ,;|·•`\n"))
        first = block.start + start
        yield Block("paragraph", first, first + length)


def _look(content: str, start: int) -> str:
    """Return the sign by which a label begins; all digits are one."""
    return re.sub(r"[\d¹²³⁴-⁹]", "1", content[start])


class _Cutter:
    def __init__(self, text: str) -> None:
        self._lines = list(_lines(text))
        # So that the end of a fence that has none is not sought in all lines.
        self._last = {line.text.strip(" >")[:2]: at for at, line in enumerate(self._lines)}
        self._open: Block | None = None
        self._last_line = ""
        self._last_look = ""
        self._tables = 0
        # How many items in a row are numbered 1; markdown counts them.
        self._ones = 0

    def blocks(self) -> Iterator[Block]:
        number = 0
        while number < len(self._lines):
            taken, found = self._special(number)
            if taken:
                yield from self._close()
                yield from found
                number += taken
                self._ones = 0
                continue
            line = self._lines[number]
            if not line.text.strip(" \t>"):
                yield from self._close()
            elif _RULE.fullmatch(line.text):
                yield from self._close()
                yield Block("rule", line.start, line.end)
            else:
                yield from self._text_line(line)
            number += 1
        yield from self._close()

    def _special(self, number: int) -> tuple[int, list[Block]]:
        """Return how many lines a heading, code or a table takes, and its blocks."""
        line = self._lines[number]
        if heading := _HEADING.match(line.text):
            start, end = (line.start + place for place in heading.span(2))
            return 1, [Block("heading", start, end, level=len(heading[1]))]
        if fence := _FENCE.match(line.text):
            end = self._end_of_fence(number, fence[1])
            return end - number, [Block("code", line.start, self._lines[end - 1].end)]
        return self._table(number)

    def _end_of_fence(self, number: int, fence: str) -> int:
        """Return the line behind the closing fence; an opening one alone is one line of code."""
        closing = fence[:2].replace("[", "]")
        for after in range(number + 1, self._last.get(closing, 0) + 1):
            if self._lines[after].text.strip(" >").startswith(closing):
                return after + 1
        return number + 1

    def _table(self, number: int) -> tuple[int, list[Block]]:
        lines = self._lines
        has_head = number + 1 < len(lines) and _is_delimiter(lines[number + 1].text)
        if not (has_head or _ROW.fullmatch(lines[number].text)):
            return 0, []
        self._tables += 1
        rows = []
        after = number
        while after < len(lines) and "|" in lines[after].text:
            if not _is_delimiter(lines[after].text):
                kind: Kind = "head" if has_head and after == number else "row"
                rows.append(_row(lines[after], kind, self._tables))
            after += 1
        return after - number, rows

    def _text_line(self, line: _Line) -> Iterator[Block]:
        prefix = _PREFIX.match(line.text)
        assert prefix is not None, "the pattern matches every string"
        content = line.text[prefix.end() :].rstrip()
        start = line.start + prefix.end()
        label = entry_label(content, 0, len(content))
        look = label.look if label else ""
        is_heading = is_list_heading(content)
        if item := _ITEM.match(content):
            yield from self._close()
            number = self._counted(next(filter(None, item.groups()), ""))
            self._open = Block("item", start + item.end(), start + len(content), number=number)
        elif self._open is None or is_heading or self._starts_anew(line.text, content, look):
            yield from self._close()
            self._open = Block("paragraph", start, start + len(content))
            if not line.text.startswith(" "):
                self._ones = 0
        else:
            self._open = replace(self._open, end=start + len(content))
        self._last_line, self._last_look = line.text, look

    def _counted(self, number: str) -> str:
        """Return the number of an item; a list may number each of them 1."""
        if number == "1":
            self._ones += 1
            return str(self._ones)
        if number:
            self._ones = 0
        return number

    def _starts_anew(self, line: str, content: str, look: str) -> bool:
        before = self._last_line
        if look:
            return look == self._last_look or _IS_ENTRY.search(content) is not None
        if (
            _HARD_BREAK.search(before)
            or is_list_heading(before)
            or SOURCE_LINE.match(content[:_MAX_LABEL_CHARS])
            or _ONLY_ADDRESS.fullmatch(content)
        ):
            return True
        if _ENDS_IN_ADDRESS.search(before.rstrip()):
            return not content[0].islower()
        is_title = len(before.strip()) < _MAX_SHORT_LINE and not _SENTENCE_END.search(before)
        return is_title and content[:1].isupper() and not line.startswith("  ")

    def _close(self) -> Iterator[Block]:
        if self._open is not None:
            yield self._open
        self._open = None


def _lines(text: str) -> Iterator[_Line]:
    start = 0
    for line in text.split("\n"):
        yield _Line(start, line)
        start += len(line) + 1


def _is_delimiter(line: str) -> bool:
    return "|" in line and bool(_DELIMITER_ROW.fullmatch(line))


def _row(line: _Line, kind: Kind, table: int) -> Block:
    content = line.text.strip()
    start = line.start + line.text.index(content)
    # An empty first cell keeps the others in their columns.
    inner = content.removeprefix("|").removesuffix("|").strip()
    start += content.index(inner)
    return Block(kind, start, start + len(inner), table=table)
