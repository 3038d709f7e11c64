"""Quotations: where a passage that a judge quotes stands in the texts that it was shown."""

from __future__ import annotations

import asyncio
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from mind2web2.rubric.verdicts import (
    Quote,
    QuoteSource,
)

# How alike a passage must be to count as the quotation, in percent.
_LIKENESS = 85
# A passage is compared with a quotation if they share a piece of this length. The limits bound the
# time.
_PIECE_CHARS = 12
_PLACES_OF_A_PIECE = 4
_LONGEST_CHARS = 240
# A text of this length is looked through in about a millisecond.
_CHARS_ON_THE_LOOP = 20_000
# Soft hyphens, and markdown's signs for emphasis and between the cells of a table.
_LEFT_OUT = "\u00ad*|"
_PLAIN = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc\u00b4\u0060", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2043", "-"),
    **{"\u2026": "...", "\u00d7": "x"},
    **{
        "\ufb00": "ff",
        "\ufb01": "fi",
        "\ufb02": "fl",
        "\ufb03": "ffi",
        "\ufb04": "ffl",
        "\ufb06": "st",
    },
    **dict.fromkeys(_LEFT_OUT, ""),
}
_WORD = re.compile(rf"\S*[^\s{_LEFT_OUT}]\S*")
_WORD_EDGE = re.compile("[0-9A-Za-z]")
_GAP = re.compile(r"[\[(]?\.\.\.[\])]?")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_AROUND = "\"'"


class _Span(NamedTuple):
    start: int
    end: int


async def locate_quote(quote: str, shown: Sequence[tuple[QuoteSource, str]]) -> Quote | None:
    """Return the place of a quotation in the texts shown, ``None`` where nothing is quoted.

    Args:
        shown: the texts by name; the first that has the quotation counts.
    """
    if not quote.strip():
        return None
    if sum(len(text) for _, text in shown) <= _CHARS_ON_THE_LOOP:
        return find_quote(quote, shown)
    return await asyncio.to_thread(find_quote, quote, shown)


def find_quote(quote: str, shown: Sequence[tuple[QuoteSource, str]]) -> Quote:
    """Do as ``locate_quote``, on this thread; a blank quotation is not found."""
    for source, text in shown:
        if span := _verbatim(text, quote.strip()) or _find_folded(text, quote):
            return Quote(text=quote, match="found", source=source, start=span.start, end=span.end)
    for source, text in shown:
        if span := _alike(text, quote):
            return Quote(
                text=quote,
                match="approximate",
                source=source,
                start=span.start,
                end=span.end,
            )
    return Quote(text=quote, match="not_found")


def _verbatim(text: str, quote: str, start: int = 0) -> _Span | None:
    """Return the first place after ``start`` where a quote stands and cuts no word or number."""
    start = text.find(quote, start)
    if start < 0 or not quote:
        return None
    # Scripts without spaces between words have no such edges. "1,200" has neither "200" nor "1".
    before = r"(?<![0-9A-Za-z])(?<!\d[.,](?=\d))" if _WORD_EDGE.match(quote[0]) else ""
    after = r"(?![0-9A-Za-z]|(?<=\d)[.,]\d)" if _WORD_EDGE.match(quote[-1]) else ""
    whole = re.compile(before + re.escape(quote) + after)
    place = whole.search(text, start)
    return None if place is None else _Span(*place.span())


def _find_folded(text: str, quote: str) -> _Span | None:
    folded = _fold(quote)
    for each in dict.fromkeys((folded, folded.strip(_AROUND).strip())):
        if each and (span := _verbatim(_fold_text(text), each)):
            return _unfold(text, span)
    return None


def _alike(text: str, quote: str) -> _Span | None:
    """Return a passage that differs a little from a quotation.

    The passage may instead hold the parts around a mark of omission in their order.
    """
    folded = _fold_text(text)
    wanted = _fold(quote).strip(_AROUND)
    wanted = wanted[:_LONGEST_CHARS]
    parts = [part.strip() for part in _GAP.split(wanted)]
    span = _in_order(folded, list(filter(None, parts)))
    span = span or _most_alike(folded, wanted)
    return None if span is None else _unfold(text, span)


def _in_order(folded: str, parts: Sequence[str]) -> _Span | None:
    spans: list[_Span] = []
    for part in parts:
        start = spans[-1].end if spans else 0
        span = _verbatim(folded, part, start)
        if span is None:
            return None
        spans.append(span)
    if not spans:
        return None
    return _Span(spans[0].start, spans[-1].end)


def _most_alike(folded: str, wanted: str) -> _Span | None:
    from rapidfuzz import fuzz

    best: tuple[float, _Span] | None = None
    for window in _windows(folded, wanted):
        passage = folded[window.start : window.end]
        alignment = fuzz.partial_ratio_alignment(wanted, passage, score_cutoff=_LIKENESS)
        if alignment is None:
            continue
        aligned_chars = alignment.src_end - alignment.src_start
        if aligned_chars < len(wanted) * _LIKENESS // 100:
            continue
        start = window.start + alignment.dest_start
        end = window.start + alignment.dest_end
        span = _Span(start, end)
        # Another number is another fact, however alike the words are.
        has_numbers = _numbers_at(folded, span).issuperset(_NUMBER.findall(wanted))
        if has_numbers and (best is None or alignment.score > best[0]):
            best = alignment.score, span
    return None if best is None else best[1]


def _numbers_at(folded: str, span: _Span) -> set[str]:
    """Return the numbers in a passage, whole where its edges cut them."""
    around = _NUMBER.finditer(folded, max(span.start - _PIECE_CHARS, 0), span.end + _PIECE_CHARS)
    return {each[0] for each in around if each.end() > span.start and each.start() < span.end}


def _windows(folded: str, wanted: str) -> Iterator[_Span]:
    """Yield passages that share a piece with a text looked for, each once and not too many."""
    seen: set[int] = set()
    for offset in range(0, len(wanted) - _PIECE_CHARS + 1, _PIECE_CHARS):
        piece = wanted[offset : offset + _PIECE_CHARS]
        at = -1
        for _ in range(_PLACES_OF_A_PIECE):
            at = folded.find(piece, at + 1)
            if at < 0:
                break
            # Where the text would begin here.
            start = at - offset
            number = max(start, 0) // _PIECE_CHARS
            if number in seen:
                continue
            seen.add(number)
            end = start + len(wanted) + 2 * _PIECE_CHARS
            yield _Span(max(start - _PIECE_CHARS, 0), end)


def _fold(text: str) -> str:
    """Return a text's words in lower case with plain signs, a space apart."""
    text = unicodedata.normalize("NFC", text)
    # Faster than one translation: most signs are in hardly any text.
    for sign, plain in _PLAIN.items():
        if sign in text:
            text = text.replace(sign, plain)
    return " ".join(text.lower().split())


# Many claims are about the same page, and all of an answer's about that.
@lru_cache(maxsize=16)
def _fold_text(text: str) -> str:
    return _fold(text)


def _unfold(text: str, span: _Span) -> _Span:
    """Return where a span of the folded text lies in the text itself."""
    folded = _fold_text(text)
    start = _place(text, folded, span.start)
    last = _place(text, folded, max(span.end - 1, span.start))
    return _Span(start, last + 1)


def _place(text: str, folded: str, position: int) -> int:
    """Return the place of a folded text's character in the text.

    A space has the place after the word.
    """
    word_number = folded.count(" ", 0, position)
    within = position - (folded.rfind(" ", 0, position) + 1)
    word = next(islice(_WORD.finditer(text), word_number, None))
    ends = range(1, len(word[0]) + 1)
    return word.start() + bisect_right(ends, within, key=lambda end: len(_fold(word[0][:end])))
