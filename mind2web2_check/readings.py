"""Other meanings of a place that looks like a mark: a decimal, a count, a name, a unit, an index.

Each reading is a line of a table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from mind2web2_check.words import COUNTING, FOLLOWING, NUMBERED, NUMBERING, UNITS


def _never(_: Iterable[object]) -> bool:
    return False


def _first(known: Iterable[object]) -> bool:
    """Tell whether the mark's first label has an entry."""
    return bool(next(iter(known)))


@dataclass(frozen=True, slots=True)
class Reading:
    """A reading of a mark by the text around it.

    Args:
        where: the looks of marks, or the places of plain numbers, at which it is possible.
        before: what the text before the mark ends in; ``mark`` and ``behind`` are its beginnings.
        unless: asked which of the labels have an entry; ``any`` or ``all`` of them, or the first,
            exclude it.
    """

    name: str
    where: str
    before: str = ""
    mark: str = ""
    behind: str = ""
    unless: Callable[[Iterable[object]], bool] = _never


def _any(words: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


_ENDS = r"[\"”’»)\]*_]*"
_IS_YEAR = r"(?<![\d.])(?:1[5-9]|20)\d\d"
# "Their outer layer 8" has a mark, "in layer 8" has not.
_NOT_DESCRIBED = (
    r"(?:^|[.!?;:,(\[“\"*/—–]\s*|(?<![^\W_])(?i:in|at|of|to|from|by|on|see|and|or|is|are|with|than|for"
    r"|under|per|the|this|each|both|between|during|through|as)\s+)"
)
_INDEXED = r"(?:(?:^|[^\w.’'\s]|(?<!\d)\s)[a-zA-Z]|\w_)"
_NO_BASE = r"(?:^\s*|[⁻⁺\n])"
_BASE = rf"(?:(?<![^\W_])(?:[^\W\d_]|(?i:{_any(UNITS)}))|[μµΩ°])"
_RAISED = "<sup>1</sup> ¹ ^1^ ^{1} $^1$"
_NO_YEAR = r"(?<!1[5-9]\d\d)(?<!20\d\d)"

READINGS = (
    # Numbers without signs around them.
    Reading(
        "counted", "space name+space stop+space", rf"(?<![^\W_])(?i:{_any(COUNTING)}){_ENDS}\s"
    ),
    Reading("counted", "space name+space stop+space", rf"\d{_NO_YEAR}[^\w.!?。！？]*\s"),
    Reading(
        "counts", "stop", behind=r"[年月日个個项項种種家亿億万萬千号號位名次人岁大点點つ年월일]"
    ),
    Reading("counts", "space name+space", behind=rf"[ \t]*\s(?!(?:{_any(FOLLOWING)})\b)\w"),
    Reading("numbered", "space name+space", rf"{_NOT_DESCRIBED}(?i:{_any(NUMBERED)})s?{_ENDS}\s"),
    Reading(
        "numbered",
        "stop stop+space space name+space",
        rf"(?<![^\W_])(?i:{_any(NUMBERING)})\.?{_ENDS}\s?",
    ),
    Reading(
        "section",
        "stop comma",
        rf"(?:^[^\w\n]*|(?<![^\W_])(?i:{_any(NUMBERED | NUMBERING)})s?\.?{_ENDS}\s)[\d.]*\d[.:]",
    ),
    Reading(
        "decimal",
        "stop comma",
        r"(?:^|[\s(\[\"“‘$€£+−–~≈<>=/-])[\d.,]*\d(?<!1[5-9]\d\d)(?<!20\d\d)[.,:]",
    ),
    Reading("decimal", "stop", rf"{_IS_YEAR}[.:]", behind=r"\s+[a-zß-ÿ]|[.,;:]"),
    Reading("thousands", "comma", rf"{_IS_YEAR}[,:]", behind=r"(?!\s+\w)"),
    Reading("thousands", "comma", r"[^\W\d_]\d+[,:]"),
    Reading(
        "code",
        "sign",
        r"(?<![^\W\d_][^\W\d_])(?<!\d{4})(?<!\d{4}\\)(?<![^\w\s\\])[^\w\s]{1,4}(?<!\]\([<>]{2}\))",
    ),
    Reading("unit", "letter name", rf"(?<![^\W_])(?i:{_any(UNITS)})"),
    Reading("index", "letter name", r"(?<![^\W_])[a-zA-Z]"),
    Reading("number at the start", "cell", behind=r"(?!\s*(?:\||\n|$))"),
    # Raised numbers.
    Reading("exponent", _RAISED, r"(?<![\d.,])\d{1,2}\n?"),
    Reading("exponent", _RAISED, rf"(?<![\d.,])\d{{3,4}}{_NO_YEAR}\n?", behind=r"\s+\w"),
    Reading("index", "^1^ ^{1} $^1$", _INDEXED),
    Reading("unit or exponent", _RAISED, _BASE),
    Reading("exponent", _RAISED, r"(?<![^\W_])[a-z]{1,3}|[)\]}]|</sub>", unless=_first),
    Reading("exponent", _RAISED, r"(?:\s[=+*·×−]\s|[=√π·×])[a-zA-Z]{1,3}"),
    Reading("exponent", _RAISED, r"(?<![^\W_])(?:log|ln|exp|sin|cos|tan)"),
    # "Ca²⁺ and Cu²": the charge of an ion that lost its sign, behind one that has it.
    Reading("charge", _RAISED, r"[⁺⁻][^.!?\n]*(?<![^\W_])[A-Z][a-z]?"),
    Reading("isotope", _RAISED, r"(?<![.!?])(?:^|[\s(–-])", behind=r"[A-Z]"),
    Reading("exponent", "¹", _NO_BASE),
    Reading("exponent", "¹", behind=r"[a-zA-Zß-ÿ]"),
    # Numbers in signs that have other uses.
    Reading("formula", "{1}", r"(?:\\[a-zA-Z]+(?:\{[^{}]*\})*|[_^]|(?<![^\W_])[a-zA-Z])"),
    Reading("index", "[1] {1} (1)", _INDEXED, mark=r"\W*\d"),
    Reading("uncertainty", "(1) （1） «1» ⟨1⟩", r"[\d₀-₉]", mark=r"\W*\d"),
    Reading(
        "year or code",
        "[1] [[1]] ［1］ 【1】 (1) （1） {1}",
        mark=r"[^\w\n]*(?:0\b|\d{4})",
        unless=all,
    ),
    Reading(
        "author and year", "[1] ［1］ 【1】", mark=r"\W*[^\W\d_]+\s(?:1[5-9]|20)\d\d", unless=all
    ),
    Reading("code", "[[1]]", mark=r"\[\[\s*\d+\s*,"),
    Reading("values", "[1] {1} (1) （1） ［1］", mark=r"\W*\d+\W+\d", unless=any),
    Reading(
        "enumeration", "(1) （1）", mark=r"\W1\W", behind=r"\s*\w[^.!?。()（）]*[(（]2[)）]\s*\w"
    ),
    Reading(
        "interval",
        "[1] (1)",
        r"(?i:interval|range|within|∈|\bci:?|=)(?:\s(?:of|from|was|is))?\s*",
        mark=r"\W*\d+,\s*\d+\W*$",
    ),
)
_COMPILED = [
    (
        reading,
        frozenset(reading.where.split()),
        re.compile(rf"(?:{reading.before})\Z", re.MULTILINE),
        re.compile(reading.mark),
        re.compile(reading.behind, re.MULTILINE),
    )
    for reading in READINGS
]


def other_reading(where: str, before: str, mark: str, behind: str, known: Sequence[bool]) -> str:
    """Return what else a mark is, empty if nothing explains it.

    Args:
        where: its look, or the place of a plain number.
        known: for each of its labels, whether a list has it.
    """
    for reading, places, ends_before, begins, begins_behind in _COMPILED:
        if (
            where in places
            and ends_before.search(before)
            and begins.match(mark)
            and begins_behind.match(behind)
            and not reading.unless(known)
        ):
            return reading.name
    return ""
