"""Numbers, dates and names that a text mentions, each with its place and its value."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

FactKind = Literal["number", "date", "name"]


@dataclass(frozen=True, slots=True)
class Fact:
    """One mention of a number, a date or a name.

    Args:
        start: the place of the mention, in characters of the text.
        end: the place behind its last character.
        value: equal for all spellings of one value: ``1234.5``, ``2024-03-12``, ``2024-03``,
            ``--03-12`` (a day without a year), ``1998``, or a name in lower case.
    """

    kind: FactKind
    start: int
    end: int
    text: str
    value: str


def facts_in(text: str, kind: FactKind | None = None) -> list[Fact]:
    """Return the dates, numbers and names of a text in their order; no two of them overlap.

    Args:
        kind: of the only facts that are wanted, which takes less time.
    """
    dates, rest = _split_dates(text)
    if kind == "date":
        return list(dates)
    numbers = list(_numbers(rest))
    if kind == "number":
        return numbers
    names = list(_names(_without(rest, numbers)))
    if kind == "name":
        return names
    return sorted([*dates, *numbers, *names], key=lambda fact: fact.start)


@lru_cache(maxsize=4)
def _split_dates(text: str) -> tuple[tuple[Fact, ...], str]:
    """Return the dates, and the text without them."""
    dates: list[Fact] = []
    rest = text
    windows = list(_around_digits(text))
    for form in (*_DATE_FORMS, _BARE_YEAR):
        of_form = [date for start, end in windows for date in _dates(rest, form, start, end)]
        rest = _without(rest, of_form)
        dates += of_form
    return tuple(sorted(dates, key=lambda fact: fact.start)), rest


def _around_digits(text: str) -> Iterator[tuple[int, int]]:
    """Yield the passages that may have a date."""
    start = end = 0
    for digits in _DIGIT_RUN.finditer(text):
        if digits.start() > end + _DATE_REACH:
            if end:
                yield start, end
            start = max(0, digits.start() - _DATE_REACH)
        end = min(len(text), digits.end() + _DATE_REACH)
    if end:
        yield start, end


def _without(text: str, facts: Iterable[Fact]) -> str:
    """Return the text with a mark of the same length in place of each fact."""
    pieces, last = [], 0
    for fact in facts:
        pieces += [text[last : fact.start], "\0" * (fact.end - fact.start)]
        last = fact.end
    return "".join([*pieces, text[last:]])


# Dates

_DIGIT_RUN = re.compile(r"\d+")
# No date reaches farther from its nearest digit.
_DATE_REACH = 40
_WORD = re.compile(r"\w+")
MONTHS = _WORD.findall(
    "January February March April May June July August September October November December"
)
_MONTH_NUMBERS = {name.lower(): number for number, name in enumerate(MONTHS, start=1)}
_MONTH_NUMBERS |= {name[:3]: number for name, number in _MONTH_NUMBERS.items()}
_MONTH_NUMBERS["sept"] = 9
# In German, French (but for "mars", which in other languages is a planet), Spanish, Portuguese,
# Italian and Russian.
_MONTH_NUMBERS |= {
    name: number
    for names in (
        "januar februar märz april mai juni juli august september oktober november dezember",
        "janvier février - avril mai juin juillet août septembre octobre novembre décembre",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
        "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre "
        "dicembre",
        "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
    )
    for number, name in enumerate(names.split(), start=1)
    if name != "-"
}
# The first letters spare most places of a text the list of months.
_MONTH = (
    r"(?=[jfmasondegl\u0430-\u044f])(?P<month>"
    + "|".join(sorted(_MONTH_NUMBERS, key=len, reverse=True))
    + r")\b\.?"
)
_DAY = r"(?<!\d)(?P<day>[0-3]?\d)(?:st|nd|rd|th|\.)?"
_YEAR = r"(?P<year>(?:1[0-9]|20)\d\d)(?!\d)"
_DATE_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"(?<!\d){_YEAR}([-/.])(?P<month_number>[01]?\d)\2(?P<day>[0-3]?\d)(?!\d)",
        rf"(?<!\d){_YEAR}[年년] ?(?P<month_number>[01]?\d)[月월](?: ?(?P<day>[0-3]?\d)[日일])?",
        rf"(?<!\d)(?P<day>[0-3]?\d)([./])(?P<month_number>[01]?\d)\2{_YEAR}",
        rf"{_DAY}(?: of| de)? {_MONTH},?(?: de)? {_YEAR}",
        rf"\b{_MONTH} {_DAY},? {_YEAR}",
        rf"\b{_MONTH},? {_YEAR}",
        rf"{_DAY}(?: of| de)? {_MONTH}(?!\w)",
        rf"\b{_MONTH} {_DAY}(?![\d:])",
    )
)
# A year stands alone: not within a longer number, an amount or an identifier.
_BARE_YEAR = re.compile(
    r"(?<![A-Za-z0-9_$€£¥.,/#-])(?P<year>1[5-9]\d\d|20\d\d)(?![A-Za-z0-9_%€£¥/]|[.,]\d)"
)


def _dates(text: str, form: re.Pattern[str], start: int, end: int) -> Iterator[Fact]:
    for match in form.finditer(text, start, end):
        value = _date_value(match)
        if value is not None:
            yield Fact("date", match.start(), match.end(), match[0], value)


def _date_value(match: re.Match[str]) -> str | None:
    parts = match.groupdict()
    year, day = parts.get("year"), parts.get("day")
    month = parts.get("month_number") or _MONTH_NUMBERS.get((parts.get("month") or "").lower())
    if month is None:
        return year
    if not 1 <= int(month) <= 12 or (day and not 1 <= int(day) <= 31):
        return None
    value = f"{year or '-'}-{int(month):02}"
    return f"{value}-{int(day):02}" if day else value


# Numbers

_SMALL_NUMBERS = _WORD.findall(
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty"
)
NUMBER_WORDS = {word: number for number, word in enumerate(_SMALL_NUMBERS, start=2)}
NUMBER_WORDS |= {
    word: tens * 10
    for tens, word in enumerate(
        _WORD.findall("thirty forty fifty sixty seventy eighty ninety"), start=3
    )
}
_BETWEEN_THOUSANDS = r"[,'\u2019\u00a0\u202f ]"
_CLOCK_TIME = r"[0-2]?\d:[0-5]\d"
_GROUPED = rf"\d{{1,3}}(?:{_BETWEEN_THOUSANDS}\d{{3}})+(?!\d)(?:\.\d+)?"
# Where decimals follow a comma, thousands are grouped by points, spaces or apostrophes.
_WITH_COMMA = r"\d{1,3}(?:[.'\u2019\u00a0\u202f ]\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}"
_DIGITS = re.compile(
    rf"(?<![A-Za-z0-9_.:])(?<!\d,)(?:{_CLOCK_TIME}|{_WITH_COMMA}|{_GROUPED}|\d+(?:[.,]\d+)?)(?!\d)"
)
_NUMBER_WORD = re.compile(rf"\b(?=[tfsen])(?:{'|'.join(NUMBER_WORDS)})\b", re.IGNORECASE)
_POINTS = re.compile(r"\.(?=\d{3}(?:\.\d{3})*,|\d{3}\.)|(?<=\.\d{3})\.")
_THOUSANDS = re.compile(rf"{_BETWEEN_THOUSANDS}(?=\d{{3}}(?!\d))")


def _numbers(text: str) -> Iterator[Fact]:
    for match in _DIGITS.finditer(text):
        yield Fact("number", *match.span(), match[0], _number_value(match[0]))
    for match in _NUMBER_WORD.finditer(text):
        yield Fact("number", *match.span(), match[0], str(NUMBER_WORDS[match[0].lower()]))


def _number_value(written: str) -> str:
    if ":" in written:
        return written.lstrip("0")
    digits = _THOUSANDS.sub("", _POINTS.sub("", written)).replace(",", ".")
    whole, _, decimals = digits.partition(".")
    decimals = decimals.rstrip("0")
    whole = whole.lstrip("0") or "0"
    return f"{whole}.{decimals}" if decimals else whole


# Names

# The capital letters of all scripts that have some; in others, names look like all words.
_CAPITALS = "".join(filter(str.isupper, map(chr, range(0x2000))))
_NAME_WORD = rf"[{_CAPITALS}][\w\u2019'-]*[^\W_]"
_LINK_WORD = r"(?:of|the|de|del|der|des|di|du|la|le|van|von|and|&|for|in)"
_NAME = re.compile(rf"\b{_NAME_WORD}(?:(?: {_LINK_WORD}){{0,2}} {_NAME_WORD})*")
_SENTENCE_END = re.compile(r"(?:^|[.!?:;•|\n\t]|[\"“(])\s*$")
# A capital letter makes none of these a name.
_ORDINARY = {
    *_WORD.findall(
        """a an the this that these those it its he she they we you i his her their our your there here in on
        at by for from of to with and or but if when while as after before since until during not no yes all
        some any each every both most more many one two three is are was were has have had can may will would
        should see read page table figure section chapter monday tuesday wednesday thursday friday saturday
        sunday"""
    ),
    *_MONTH_NUMBERS,
}


def _names(text: str) -> Iterator[Fact]:
    for match in _NAME.finditer(text):
        start, end = _without_ordinary_words(text, *match.span())
        name = text[start:end]
        is_alone = " " not in name and "-" not in name
        opens_sentence = start == match.start() and _opens_sentence(text, start)
        if len(name) < 3 or (is_alone and opens_sentence and not name.isupper()):
            continue
        yield Fact("name", start, end, name, name.casefold())


def _without_ordinary_words(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a name's place without the ordinary words at its two ends."""
    written = text[start:end].split()
    if not {written[0].casefold(), written[-1].casefold()} & _ORDINARY:
        return start, end
    words = [
        (match.start() + start, match.end() + start)
        for match in re.finditer(r"\S+", text[start:end])
    ]
    while words and text[slice(*words[0])].casefold() in _ORDINARY:
        words.pop(0)
    while words and text[slice(*words[-1])].casefold() in _ORDINARY:
        words.pop()
    return (words[0][0], words[-1][1]) if words else (start, start)


def _opens_sentence(text: str, start: int) -> bool:
    return _SENTENCE_END.search(text[max(0, start - 4) : start]) is not None or start == 0
