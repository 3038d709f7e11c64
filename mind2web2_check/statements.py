"""The statements of a report, each with the sources that it rests on; no model is asked."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile
from typing import Literal

from pydantic import BaseModel, Field

from mind2web2.plugin import visible
from mind2web2_check.addresses import addresses_in
from mind2web2_check.blocks import BOLD_LINE, Block, blocks_of
from mind2web2_check.citations import Citation, read_citations
from mind2web2_check.decision import Evidence
from mind2web2_check.markup import without_markup
from mind2web2_check.source_lists import Entry
from mind2web2_check.words import (
    ABBREVIATION,
    QUOTATION,
    SOURCE_LABELS,
    SOURCE_LINE,
    TALK,
)


class Statement(BaseModel):
    """A sentence, a list's item or a table's row that says something, and what it cites.

    Args:
        plain: its words without marks and markup; not part of the JSON.
        said: the same, each cell of a row behind its column's head; not part of the JSON.
    """

    text: str
    start: int
    end: int
    sources: list[str]
    marks: list[str]
    plain: str = Field(exclude=True)
    said: str = Field(exclude=True)


class Doubt(BaseModel):
    """Something that was not read as a statement's source, with its place in the text."""

    kind: Literal["unresolved", "not taken", "uncited"]
    text: str
    start: int


class ReadReport(BaseModel):
    """The output of ``check REPORT --list``.

    Args:
        doubts: the places of the unresolved marks, of numbers that look like marks in a form with
            too little evidence, and of addresses that nothing cites.
        forms: the evidence for each form of mark; not part of the JSON.
    """

    statements: list[Statement]
    unresolved: list[str]
    uncited: list[str]
    doubts: list[Doubt]
    forms: list[Evidence] = Field(exclude=True)


_OPAQUE = "\x00"
_LINKED = "\x01"
_ASCII_END = r"[.!?…]+(?:[\"'”’»)\]*_~]|</\w+>)*"
_OTHER_END = r"[。！？؟۔।]+[\"'”’」』）)*_]*"
_END = re.compile(
    rf"(?:{_ASCII_END})(?=[\s\u200b\u2060{_OPAQUE}({_LINKED}]|(?:<sup>)?\W{{0,2}}{_OPAQUE}|$)|{_OTHER_END}"
)
# Behind a sentence: its marks, its links in brackets and the words that introduce them.
_RUN = re.compile(
    rf"(?:[\s\u200b\u2060{_OPAQUE}()（）\[\],;、，·|*†\\]|</?su[pb]>|(?<![^\W_])(?:{SOURCE_LABELS}\s?[:：](?:[^.()\[\]\n{_OPAQUE}{_LINKED}]{{1,60}}(?={_OPAQUE}))?|(?:{SOURCE_LABELS}|(?-i:and)|&)(?=\s?{_OPAQUE})))*",
    re.IGNORECASE,
)
_BEFORE_MARK = r"\s(（\[|"
_MARKS = (
    rf"(?>(?:[{_BEFORE_MARK}]*+{_OPAQUE}++[\s)）\],;、，.]*+"
    rf"|[{_BEFORE_MARK}]++{SOURCE_LABELS}[:：]?(?![^{_BEFORE_MARK}{_OPAQUE}]))+)"
)
# The marks at the end, or in the group a piece before them.
_CLOSING_RUN = re.compile(
    rf"{_MARKS}\Z|({_MARKS}|[{_BEFORE_MARK}]++|[^{_BEFORE_MARK}{_OPAQUE}]++)", re.IGNORECASE
)
_LINKED_RUN = re.compile(rf"[\s{_OPAQUE}{_LINKED}()（）\[\],;、，·|*:：—–-]*")
_WORD = re.compile(r"[^\W_]+")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_QUOTE_SIGNS = re.compile(r"\s*(?:^[ \t]*(?:>\s?)+)?\s*", re.MULTILINE)
# A line without a full stop is a heading, a caption or a cell of a table unless it is as long as
# this.
_MIN_OPEN_WORDS = 12
# The least words and ideographs of a statement that cites nothing.
_LEAST = {"closed": (3, 6), "item": (4, 6), "paragraph": (_MIN_OPEN_WORDS, 24)}
_MAX_NAME_CHARS = 200


@dataclass(slots=True)
class _Segment:
    """A sentence with its citations, not yet known to be a statement."""

    start: int
    end: int
    citations: list[Citation]
    is_closed: bool
    block: int


def read_report(text: str) -> ReadReport:
    """Find the statements of a report and their sources; each mark and address is accounted for."""
    text = visible(text)
    blocks = blocks_of(text)
    addresses = addresses_in(text)
    citations = read_citations(text, blocks, addresses)
    spans = citations.lists.spans
    statements = _Statements(text, blocks, spans, citations.all).all()
    cited = {url for statement in statements for url in statement.sources}
    doubts = [
        Doubt(kind="unresolved", text=mark, start=each.start)
        for each in citations.all
        for mark in each.missing
    ]
    doubts += [
        Doubt(kind="not taken", text=each.mark, start=each.start) for each in citations.not_taken
    ]
    named: list[Citation | Entry] = [*citations.all, *citations.lists.entries]
    doubts += [
        Doubt(kind="uncited", text=url, start=each.start)
        for each in sorted(named, key=lambda each: each.start)
        for url in each.addresses
        if url not in cited
    ]
    return ReadReport(
        statements=statements,
        unresolved=_texts(doubts, "unresolved"),
        uncited=_texts(doubts, "uncited"),
        doubts=doubts,
        forms=list(citations.forms),
    )


def _texts(doubts: Iterable[Doubt], kind: str) -> list[str]:
    return list(dict.fromkeys(each.text for each in doubts if each.kind == kind))


class _Statements:
    def __init__(
        self,
        text: str,
        blocks: Sequence[Block],
        listed: Sequence[tuple[int, int]],
        citations: Sequence[Citation],
    ) -> None:
        self._text = text
        in_lists = {start for start, _ in listed}
        self._blocks = [block for block in blocks if block.start not in in_lists]
        self._citations = [each for each in citations if each.mark or each.addresses]
        self._shadow = _shadow(text, citations)
        self._starts = [each.start for each in self._citations]
        # By table: what its head cites, and its cells.
        self._of_heads: dict[int, list[Citation]] = {}
        self._heads: dict[int, list[str]] = {}

    def all(self) -> list[Statement]:
        segments = [
            segment
            for number, block in enumerate(self._blocks)
            for segment in self._segments(number, block)
        ]
        by_block: dict[int, Sequence[_Segment]] = {
            number: list(group) for number, group in groupby(segments, lambda each: each.block)
        }
        self._attach_source_lines(by_block)
        return [
            self._statement(segment)
            for segment in segments
            if self._is_statement(segment)
            and not self._is_chatter(segment, by_block[segment.block])
        ]

    def _segments(self, number: int, block: Block) -> Iterator[_Segment]:
        citations = self._within(block.start, block.end)
        if block.kind == "head":
            self._of_heads[block.table] = citations
            head = _Segment(block.start, block.end, citations, True, number)
            self._heads[block.table] = self._cells(head)
        if block.kind == "row":
            cited = [*self._of_heads.get(block.table, ()), *citations]
            yield _Segment(block.start, block.end, cited, True, number)
        elif block.kind in ("paragraph", "item"):
            for start, end, after, is_closed in self._sentences(block):
                yield self._trim(
                    _Segment(start, end, self._within(start, after), is_closed, number)
                )

    def _within(self, start: int, end: int) -> list[Citation]:
        return self._citations[bisect_left(self._starts, start) : bisect_left(self._starts, end)]

    def _sentences(self, block: Block) -> Iterator[tuple[int, int, int, bool]]:
        """Yield start, end, the place behind its marks, and whether it ends in a full stop."""
        first = block.start
        for end, after in self._ends(block):
            yield first, end, after, True
            first = after
        if first < block.end:
            yield first, block.end, block.end, False

    def _skip_run(self, start: int, end: int) -> int:
        """Return the place behind marks, before a bracket that opens the next words."""
        run = self._shadow[start : _end_of(_RUN, self._shadow, start, end)]
        return start + len(run.rstrip("([（*"))

    def _ends(self, block: Block) -> Iterator[tuple[int, int]]:
        shadow = self._shadow
        for match in _END.finditer(shadow, block.start, block.end):
            end = match.end()
            after = self._skip_run(end, block.end)
            beyond = _end_of(_LINKED_RUN, shadow, after, block.end)
            if _LINKED in shadow[after:beyond] and self._begins_sentence(beyond, block.end):
                after = beyond
            before = shadow[max(block.start, match.start() - 12) : match.start() + 1]
            is_ascii = match[0][0] in ".!?…"
            if is_ascii and after < block.end:
                is_marked = _OPAQUE in shadow[end:after]
                is_abbreviation = ABBREVIATION.search(before) is not None
                if not self._begins_sentence(after, block.end):
                    # "It is old. [3] says so": the mark is the next sentence's first word.
                    if is_marked and not is_abbreviation:
                        yield end, end
                    continue
                if is_abbreviation and not is_marked:
                    continue
            yield end, after

    def _begins_sentence(self, place: int, end: int) -> bool:
        rest = self._shadow[place : min(place + 4, end)].lstrip("*_\"'“‘«([{¿¡<>#-–— ")
        return not rest or not (rest[0].islower() or rest[0] in ",;:)=+/")

    def _trim(self, segment: _Segment) -> _Segment:
        """Cut the marks before and behind a sentence off."""
        shadow = self._shadow
        start = self._skip_run(segment.start, segment.end)
        end = segment.end
        if not segment.is_closed:
            end = start + len(_without_run(shadow[start:end]))
        start = _end_of(_QUOTE_SIGNS, shadow, start, end)
        return _Segment(start, end, segment.citations, segment.is_closed, segment.block)

    def _attach_source_lines(self, by_block: dict[int, Sequence[_Segment]]) -> None:
        """Give marks that stand alone to what stands above: below a table to its rows."""
        attached: set[int] = set()
        tables = [*(block.table for block in self._blocks), 0]
        for number, group in by_block.items():
            content = self._shadow[self._blocks[number].start : self._blocks[number].end]
            named = SOURCE_LINE.match(content[:_MAX_NAME_CHARS])
            is_named = named is not None
            words = _WORD.findall(content.replace(_LINKED, " "))
            citations = [citation for each in group for citation in each.citations]
            is_above_row = 0 < tables[number] == tables[number + 1]
            if is_above_row or len(words) > _MIN_OPEN_WORDS * is_named:
                continue
            above = self._above(number, by_block)
            if not above:
                continue
            table = self._blocks[above[-1].block].table
            cited = above if is_named or table or number - 1 in attached else above[-1:]
            for segment in cited:
                segment.citations += citations
            for segment in group:
                segment.end, segment.citations = segment.start, []
            # The next line with sources goes with the same sentences.
            by_block[number] = cited
            attached.add(number)

    def _above(self, number: int, by_block: Mapping[int, Sequence[_Segment]]) -> Sequence[_Segment]:
        """Return the sentences of the block above, or all rows of its table."""
        table = self._blocks[number - 1].table
        if not table:
            return by_block.get(number - 1, ())
        rows = takewhile(lambda at: self._blocks[at].table == table, range(number - 1, -1, -1))
        return [segment for at in rows for segment in by_block.get(at, ())]

    def _is_chatter(self, segment: _Segment, group: Sequence[_Segment]) -> bool:
        """Tell if a sentence that cites nothing is the agent's own talk or goes with it."""
        first = self._text[group[0].start : group[0].end]
        own = self._text[segment.start : segment.end]
        said = {QUOTATION.sub("", sentence) for sentence in (first, own)}
        return not segment.citations and any(map(TALK.search, said))

    def _is_statement(self, segment: _Segment) -> bool:
        content = self._shadow[segment.start : segment.end].replace(_OPAQUE, " ")
        words = len(_WORD.findall(content))
        ideographs = len(_CJK.findall(content))
        if segment.citations:
            return words > 0 or _LINKED in content
        block = self._blocks[segment.block]
        if content.rstrip(" *_").endswith((":", "：", "?", "？")) or (
            BOLD_LINE.fullmatch(content.strip()) and not segment.is_closed
        ):
            return False
        least_words, least_ideographs = _LEAST["closed" if segment.is_closed else block.kind]
        return words >= least_words or ideographs >= least_ideographs

    def _statement(self, segment: _Segment) -> Statement:
        sources = [url for each in segment.citations for url in each.addresses]
        marks = [each.mark for each in segment.citations if each.mark]
        uncited = self._uncited(segment)
        plain = said = without_markup(uncited)
        heads = self._heads.get(self._blocks[segment.block].table, [])
        # Rows may have cells that reach over several columns.
        if len(heads) == 1 + uncited.count("|"):
            said = _with_heads(heads, self._cells(segment))
        return Statement(
            text=self._text[segment.start : segment.end],
            start=segment.start,
            end=segment.end,
            sources=list(dict.fromkeys(sources)),
            marks=list(dict.fromkeys(marks)),
            plain=plain,
            said=said,
        )

    def _cells(self, segment: _Segment) -> list[str]:
        return list(map(without_markup, self._uncited(segment).split("|")))

    def _uncited(self, segment: _Segment) -> str:
        pieces, position = [], segment.start
        for citation in segment.citations:
            if not citation.is_text and position <= citation.start < segment.end:
                pieces.append(self._text[position : citation.start])
                position = citation.end
        pieces.append(self._text[position : segment.end])
        return " ".join(pieces)


def _with_heads(heads: Iterable[str], cells: Iterable[str]) -> str:
    """Return the cells of a row, each behind its column's head."""
    named = zip(heads, cells, strict=True)
    return " | ".join(": ".join(filter(None, pair)) for pair in named if pair[1])


def _end_of(pattern: re.Pattern[str], text: str, start: int, end: int) -> int:
    """Return where a match that begins at a place ends, or the place itself."""
    found = pattern.match(text, start, end)
    assert found is not None, "the pattern matches every string"
    return found.end()


def _without_run(content: str) -> str:
    """Return an open sentence without the marks behind it."""
    return _CLOSING_RUN.sub(r"\1", content.rstrip()).rstrip(" \n\t([（|")


def _shadow(text: str, citations: Iterable[Citation]) -> str:
    """Return a text of the same length in which citations do not count as words."""
    pieces, position = [], 0
    for citation in citations:
        mark = _LINKED if citation.is_text else _OPAQUE
        pieces += [
            text[position : citation.start],
            mark * (citation.end - citation.start),
        ]
        position = citation.end
    return "".join([*pieces, text[position:]])
