"""Hints that need no judge: what a reader should look at first. A hint is never a verdict."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal
from urllib.parse import urlsplit

from pydantic import BaseModel

from mind2web2.plugin import Fact, facts_in, find_quote, lookup_key
from mind2web2_check.amounts import Amount, amounts_in
from mind2web2_check.sources import SourcePage
from mind2web2_check.statements import ReadReport, Statement
from mind2web2_check.words import QUOTATION

HintKind = Literal[
    "dead source",
    "walled source",
    "unreachable source",
    "invented address",
    "redirected source",
    "duplicate source",
    "retracted source",
    "quotation not on the page",
    "number not on the page",
    "date not on the page",
    "name not on the page",
    "no source",
]
# Chinese and Japanese have no spaces between words.
_QUOTED_WORD = re.compile(r"[\u3040-\u9fff]{3}|\w+")
_MIN_QUOTED_WORDS = 4
_WORD = re.compile(r"[^\W\d_]{3,}")
# Arabic, Persian, Indian and full-width digits.
_OTHER_DIGIT = re.compile(r"(?![0-9])\d")
_OTHER_SEPARATORS = str.maketrans("٫٬", ".,")
# 1,234 in some languages, and a little more than one in others.
_PLAIN_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_POINT_OR_THOUSANDS = re.compile(r"([1-9]\d{0,2})\.(\d{3})")


class Hint(BaseModel):
    """Something that may be wrong.

    Args:
        statement: the number of the statement, from 0; ``None`` for a hint about a source.
        detail: the missing number, the address that was read, and the like.
    """

    kind: HintKind
    statement: int | None = None
    source: str | None = None
    detail: str = ""


def hints_of(report: ReadReport, pages: Mapping[str, SourcePage]) -> list[Hint]:
    """Return the hints about a report.

    Args:
        pages: the pages of its sources, as the report writes their addresses.
    """
    hints = [*_about_sources(pages.values())]
    for number, statement in enumerate(report.statements):
        if not statement.sources:
            hints.append(Hint(kind="no source", statement=number))
            continue
        read = [pages[source] for source in statement.sources]
        # Where one of several pages could not be read, a missing number may be there.
        if all(page.is_readable for page in read):
            hints += _about_statement(number, statement, read)
    return hints


def _about_sources(pages: Iterable[SourcePage]) -> Iterator[Hint]:
    by_content: dict[str, list[str]] = defaultdict(list)
    for page in pages:
        if page.problem is not None:
            yield Hint(kind=_kind_of(page.problem), source=page.source, detail=page.problem)
            continue
        if _is_elsewhere(page):
            yield Hint(kind="redirected source", source=page.source, detail=page.read_at)
        if page.is_retracted:
            yield Hint(kind="retracted source", source=page.source, detail=page.title)
        if page.content:
            by_content[page.content].append(page.source)
    for same in by_content.values():
        for source in same[1:]:
            if lookup_key(source) != lookup_key(same[0]):
                yield Hint(kind="duplicate source", source=source, detail=same[0])


_KINDS: Mapping[str, HintKind] = {
    "invented": "invented address",
    "walled": "walled source",
    "not opened": "unreachable source",
}


def _kind_of(problem: str) -> HintKind:
    return _KINDS.get(problem.partition(":")[0], "dead source")


def _is_elsewhere(page: SourcePage) -> bool:
    """Tell whether an address with a path led to a home page: what was there is gone."""
    asked, read = urlsplit(page.source), urlsplit(page.read_at)
    return len(asked.path.strip("/")) > 0 and not read.path.strip("/") and not read.query


def _about_statement(
    number: int, statement: Statement, pages: Sequence[SourcePage]
) -> Iterator[Hint]:
    claim = _with_plain_digits(statement.plain)
    text = "\n".join(f"{page.title}\n{page.text}" for page in pages)
    for quotation in QUOTATION.findall(claim):
        said = quotation[1:-1].strip()
        if len(_QUOTED_WORD.findall(said)) >= _MIN_QUOTED_WORDS:
            found = find_quote(said.strip(" .,"), (("page", text),))
            if found.match == "not_found":
                kind: HintKind = "quotation not on the page"
                yield Hint(kind=kind, statement=number, detail=said)
    mentioned = _Mentioned(text)
    amounts = list(amounts_in(claim))
    for fact in facts_in(claim):
        around = [each for each in amounts if each.start <= fact.start < each.end]
        if not (mentioned.has(fact) or any(map(mentioned.has_amount, around))):
            kinds: dict[str, HintKind] = {
                "number": "number not on the page",
                "date": "date not on the page",
                "name": "name not on the page",
            }
            yield Hint(kind=kinds[fact.kind], statement=number, detail=fact.text)


class _Mentioned:
    """The numbers, dates and names that a page mentions."""

    def __init__(self, text: str) -> None:
        facts = facts_in(_with_plain_digits(text))
        self._dates = {fact.value for fact in facts if fact.kind == "date"}
        self._numbers = {
            value for fact in facts if fact.kind == "number" for value in _readings(fact)
        }
        plain = filter(_PLAIN_NUMBER.fullmatch, self._numbers)
        self._values = [*map(float, plain), *(amount.value for amount in amounts_in(text))]
        self._text = " ".join(text.casefold().split())
        self._words = set(_WORD.findall(self._text))
        self._initials = "".join(word[0] for word in re.findall(r"[^\W\d_]+", self._text))

    def has(self, fact: Fact) -> bool:
        """Tell whether the page mentions a fact, or one that rounds to it."""
        if fact.kind == "number":
            return any(map(self._has_number, _readings(fact)))
        if fact.kind == "date":
            return self._has_date(fact.value)
        # "GRU-based" names GRU, which a page may write out.
        names = [word for word in _WORD.findall(fact.text) if word.lower() != word]
        return fact.value in self._text or (bool(names) and all(map(self._has_name, names)))

    def has_amount(self, amount: Amount) -> bool:
        """Tell whether the page mentions a number that rounds to an amount."""
        return any(map(amount.is_near, self._values))

    def _has_name(self, name: str) -> bool:
        is_written_out = name.isupper() and name.casefold() in self._initials
        return name.casefold() in self._words or is_written_out

    def _has_number(self, value: str) -> bool:
        return value in self._numbers or value in self._dates or self._has_rounded(value)

    def _has_date(self, value: str) -> bool:
        if value in self._numbers:
            return True
        # A day may be named without its year, ``--05-03``, here or there.
        return any(
            each.startswith(value) or (each[-6:] == value[-6:] and "--" in (each[:2], value[:2]))
            for each in self._dates
        )

    def _has_rounded(self, value: str) -> bool:
        whole, _, decimals = value.partition(".")
        if not whole.isdigit():
            return False
        wanted = float(value)
        return any(round(each, len(decimals)) == wanted for each in self._values)


def _with_plain_digits(text: str) -> str:
    return _OTHER_DIGIT.sub(lambda digit: str(int(digit[0])), text.translate(_OTHER_SEPARATORS))


def _readings(number: Fact) -> set[str]:
    """Return the values that a number may have: ``1.234`` is 1234 in some languages."""
    grouped = _POINT_OR_THOUSANDS.fullmatch(number.text)
    return {number.value, grouped[1] + grouped[2]} if grouped else {number.value}
