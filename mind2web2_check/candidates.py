"""Every place of a text that could be a mark of a list's entries, and what else it could be."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from mind2web2_check.blocks import Block
from mind2web2_check.labels import BY_NAME, IN_SIGNS, content_of, labels_in, look_of
from mind2web2_check.readings import other_reading
from mind2web2_check.source_lists import SourceLists


class Form(NamedTuple):
    """How marks of one kind look.

    Args:
        look: the signs around them, or ``plain``.
        kind: of their labels.
        place: what stands before and behind those whose signs have other uses as well.
    """

    look: str
    kind: str
    place: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A place that could be a mark.

    Args:
        other: what else it is, such as ``decimal``; empty if nothing explains it.
    """

    start: int
    end: int
    mark: str
    labels: tuple[str, ...]
    form: Form
    other: str = ""


# Plain numbers by what stands before and behind them.
_ENDS = r"[\"'”’»)\]*_]*"
_CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_BEFORE = (
    ("cell", re.compile(r"(?:^|\|)[ \t]*\Z", re.MULTILINE)),
    ("stop", re.compile(rf"[.!?…。！？؟]{_ENDS}\Z")),
    ("comma", re.compile(rf"[,;:，、；：]{_ENDS}\Z")),
    ("sign", re.compile(r"[\"'”’»)\]*_%]\Z")),
    ("letter", re.compile(r"[^\W\d_]\Z")),
    ("stop+space", re.compile(rf"[.!?…。！？؟]{_ENDS}[ \t]\Z")),
    ("name+space", re.compile(r"[^.!?\s]\s+[A-ZÀ-ÖØ-Þ][a-zß-ÿ]+[ \t]\Z")),
    ("space", re.compile(rf"(?:(?<!\d)[^\s.|]|(?<!\d)(?:1[5-9]|20)\d\d){_ENDS}[ \t]\Z")),
)
_BEHIND = (
    ("end", re.compile(r"[ \t]*(?:\||$)", re.MULTILINE)),
    (
        "stop",
        re.compile(rf"{_ENDS}(?:[.,;:!?](?=[\s\"”’»)\]*_|]|$)|[。，；：、！？؟])", re.MULTILINE),
    ),
    ("sign", re.compile(r"[\"'”’»)\]*_]")),
    ("next", re.compile(rf"\s+(?:[\"“‘'(*_\[]+\w|[A-ZÀ-ÖØ-Þ\u0400-\u042f]|[{_CJK}])")),
    ("on", re.compile(r"\s+(?=\w)")),
    ("ideograph", re.compile(f"[{_CJK}]")),
)
_PLAIN = re.compile(r"(?<![\d⁰¹²³⁴-⁹])\d{1,3}(?:[,–-] ?\d{1,3}(?!\d))*(?![\d%°])")
_CHARS_AROUND = 60
_PLACE = re.compile(r"\A(?:no|nr)(?=\d)|(?<=\d)[a-z]\Z")
_MIN_WORD = 4
_MIN_NUMBERS = 3
# Each run of letters is tried from its start alone.
_WHOLE_WORD = r"(?<![^\W\d_])[^\W\d_]++"
_LAST_WORD = re.compile(r"([^\W\d_]*)[*_\"”’»)\]]*\s?\Z")
_NEXT_WORD = re.compile(r"\s+([^\W\d_]+)")
# Signs that stand around words of a sentence as well; a place says more about them.
_RAISED = ("¹", "<sup>1</sup>", "^1^", "^{1}", "$^1$")
_PARENTHESES = ("(1)", "（1）")
_MARK = "\x00"
_AROUND = (
    ("closing", re.compile(rf"{_MARK}[*_\"”]*(?:[.,;:!?。，；！？]|\s*(?:$|\||\n))")),
    ("opening", re.compile(rf"(?:\A|[:;,\n|，；：]|\b(?:and|or)\s)\s*{_MARK}")),
    ("behind", re.compile(rf"[.!?。！？]\s*{_MARK}")),
)
_ID_COLUMN = re.compile(
    r".*\b(?:ids?|refs?|references?|sources?|citations?|cites?|quellen?|fuentes?|nr|no)\b.*"
    r"|.*(?:来源|來源|文献|出典|출처|источник).*|#",
    re.IGNORECASE,
)


class CandidateFinder:
    """Finds the candidates outside of what is known already: lists, code and addresses."""

    def __init__(
        self, text: str, blocks: Sequence[Block], lists: SourceLists, taken: bytearray
    ) -> None:
        self._text = text
        self._blocks = blocks
        self._lists = lists
        self._taken = bytearray(taken)
        numbers = sorted(filter(str.isdigit, lists.labels), key=len, reverse=True)
        self._known = re.compile("|".join([*numbers, "(?!)"]))
        self._words = Counter(re.findall(rf"{_WHOLE_WORD}(?!\w)", text))
        self._tokens = Counter(re.findall(rf"{_WHOLE_WORD}\d+", text))
        self._numbers_behind: dict[str, set[str]] = defaultdict(set)
        for word, number in re.findall(rf"({_WHOLE_WORD}) (\d{{1,4}})(?!\w)", text):
            self._numbers_behind[word.lower()].add(number)

    def find(self) -> list[Candidate]:
        """Return the candidates in order."""
        found = list(filter(None, map(self._signed, IN_SIGNS.finditer(self._text))))
        for each in found:
            self._taken[each.start : each.end] = b"\1" * (each.end - each.start)
        # Without a list, no evidence would ever be enough for a plain number.
        numbers = _PLAIN.finditer(self._text) if self._lists.labels else ()
        plain = partial(self._plain, columns=self._cells_of_numbers())
        found += filter(None, map(plain, numbers))
        return sorted(found, key=lambda each: each.start)

    def _is_free(self, start: int, end: int) -> bool:
        return not any(self._taken[start:end])

    def _signed(self, match: re.Match[str]) -> Candidate | None:
        labels = labels_in(content_of(match)) if self._is_free(*match.span()) else None
        if labels is None:
            return None
        look = look_of(match)
        is_note = look.name == "[^1]"
        names = tuple(f"{'^' * is_note}{name}" for name in labels.names)
        split = self._adjacent if look.name in _RAISED else self._without_place
        names = tuple(part for name in names for part in split(name))
        known = [self._lists.has(name) for name in names]
        if labels.kind == "key" and not any(known):
            return None
        place = self._place(match) if look.name in _PARENTHESES else ""
        form = Form(look.name, labels.kind, "named" if labels.has_word else place)
        if not self._lists.labels:
            known.append(True)
        other = self._other(look.name, match, known)
        return Candidate(*match.span(), match[0].replace("\\", ""), names, form, other)

    def _adjacent(self, number: str) -> list[str]:
        """Return the labels of adjacent raised marks: ``23`` is 2 and 3 if the list has no 23."""
        parts = self._known.findall(number)
        is_whole = "".join(parts) == number and sorted(parts, key=int) == parts
        return parts if is_whole else [number]

    def _without_place(self, label: str) -> list[str]:
        """Return the number in ``1a`` and ``No. 1`` if the list has it alone."""
        return [next(filter(self._lists.has, (label, _PLACE.sub("", label))), label)]

    def _other(self, where: str, match: re.Match[str], known: Sequence[bool] = ()) -> str:
        before = self._text[max(0, match.start() - _CHARS_AROUND) : match.start()]
        behind = self._text[match.end() : match.end() + _CHARS_AROUND]
        return other_reading(where, before, match[0], behind, known)

    def _place(self, match: re.Match[str]) -> str:
        before = self._text[max(0, match.start() - 5) : match.start()]
        after = self._text[match.end() : match.end() + 3]
        return _named(_AROUND, f"{before}{_MARK}{after}") or "inside"

    def _cells_of_numbers(self) -> set[int]:
        """Return the places in columns of sources."""
        columns: dict[tuple[int, int], bool] = {}
        found: set[int] = set()
        for block in self._blocks:
            for number, (start, end) in enumerate(_cells(self._text, block)):
                column = block.table, number
                if block.kind == "head":
                    columns[column] = bool(_ID_COLUMN.fullmatch(self._text[start:end]))
                elif columns.get(column):
                    found.update(range(start, end))
        return found

    def _plain(self, match: re.Match[str], columns: set[int]) -> Candidate | None:
        start, end = match.span()
        before = self._text[max(0, start - _CHARS_AROUND) : start]
        place = _named(_BEFORE, before) if self._is_free(start, end) else None
        behind = next((name for name, sign in _BEHIND if sign.match(self._text, end)), None)
        labels = labels_in(match[0])
        if place is None or behind is None or labels is None:
            return None
        last_word = _LAST_WORD.findall(before)[0]
        if place == "letter" and not self._is_word(last_word):
            place = "name"
        whole = f"{place}, {behind}"
        if start in columns:
            whole = "column of sources"
        other = self._other(place, match) or self._repeated(place, last_word, match[0])
        if other == "decimal" and self._begins_sentence(end):
            other = ""
        return Candidate(start, end, match[0], labels.names, Form("plain", "number", whole), other)

    def _begins_sentence(self, place: int) -> bool:
        """Tell if a word there has a capital that it has not elsewhere in the text."""
        word = _NEXT_WORD.match(self._text, place)
        return word is not None and word[1][0].isupper() and self._words[word[1].lower()] > 0

    def _is_word(self, name: str) -> bool:
        """Tell whether letters are a word that also stands without a number."""
        is_plain = name.islower() or not name.isascii() or name.istitle()
        return (len(name) >= _MIN_WORD and is_plain) or self._words[name] > 1

    def _repeated(self, place: str, word: str, number: str) -> str:
        """Return what a number behind a word is, if the text has the word with others or again."""
        if place == "name":
            return "name" if self._tokens[word + number] > 1 else ""
        numbers = self._numbers_behind[word.lower()]
        is_counted = len(numbers) >= _MIN_NUMBERS and 2 * len(numbers) >= self._words[word]
        return "counted" if is_counted else ""


def weight_of(form: Form) -> float:
    """Return the logarithm of the odds that a form cites, by its look alone."""
    if form.look == "plain":
        return _PLAIN_WEIGHTS.get(form.place) or sum(
            map(_PLACES.__getitem__, form.place.split(", "))
        )
    return BY_NAME[form.look].weight + _PLACES.get(form.place, 0)


_PLAIN_WEIGHTS = {"column of sources": 6.0, "cell, end": -6.0, "stop, ideograph": 0.5}
_PLACES = {
    **{"closing": 0.0, "inside": -2.0, "behind": -6.0, "opening": -9.0, "named": 4.0},
    **{"stop": 0.5, "comma": 0.0, "sign": 0.0, "letter": 0.0, "name": -2.0},
    **{"space": -1.0, "name+space": -3.0, "stop+space": -1.0, "cell": -6.0},
    **{"end": 0.5, "next": 0.5, "on": -2.0, "ideograph": -9.0},
}


def _named(signs: Iterable[tuple[str, re.Pattern[str]]], text: str) -> str | None:
    return next((name for name, sign in signs if sign.search(text)), None)


def _cells(text: str, row: Block) -> Iterator[tuple[int, int]]:
    """Yield the places of a row's cells without the spaces around them."""
    start = row.start
    for cell in re.split(r"(?<!\\)\|", text[row.start : row.end]):
        stripped = cell.strip()
        begin = start + cell.index(stripped)
        yield begin, begin + len(stripped)
        start += len(cell) + 1
