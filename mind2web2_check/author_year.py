"""Citations by author and year: ``(Roe, 2020; Lee et al., 2021)`` and ``Roe (2020)``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mind2web2_check.source_lists import Entry

_YEAR = r"(?:1[5-9]|20)\d\d[a-z]?"
_NAME = r"[^\W\d_][\w.’'\- ]{0,80}?"
_PARENTHESIS = re.compile(
    rf"[(（\[]([^()（）\[\]\n]{{0,300}}?{_YEAR}[^()（）\[\]\n]{{0,120}}?)[)）\]](?![(:])"
)
_AUTHOR_YEAR = re.compile(
    rf"\s*(?:see(?: also)?|e\.g\.,?|cf\.|vgl\.|见|参见)?\s*({_NAME}(?:(?:,| and|,? &| et| und| y) "
    rf"{_NAME})*?)"
    rf"(\s+et al\.?|等人?)?\s*[,，]?\s*({_YEAR}(?:\s*,\s*{_YEAR})*)(?:[,:，]?\s*(?:pp?\.)?\s*[\d–-]+)?\s*"
)
_NARRATIVE = re.compile(
    r"([A-ZÀ-ÖØ-Þ][\w’'\-]+(?:(?:,? and|,? &|,) [A-ZÀ-ÖØ-Þ][\w’'\-]+){0,20})(\s+et al\.?)?"
    rf"\s*[(（]({_YEAR})[)）]"
)
_PART = re.compile(r"[^;；]+")
_AND = re.compile(r",? and |,? & |,? et |,? und |, ")


@dataclass(frozen=True, slots=True)
class AuthorCitation:
    """A citation by author and year, with its entries in the lists.

    Args:
        is_text: the names belong to the sentence.
    """

    start: int
    end: int
    entries: tuple[Entry, ...]
    is_text: bool = False


def author_citations(text: str, entries: Sequence[Entry]) -> Iterator[AuthorCitation]:
    """Yield the citations in parentheses, then those in sentences."""
    for match in _PARENTHESIS.finditer(text):
        yield from _in_parenthesis(match, entries)
    for match in _NARRATIVE.finditer(text):
        entry = _entry_by(match[1], match[3], entries)
        if entry is not None:
            yield AuthorCitation(*match.span(), (entry,), is_text=True)


def _in_parenthesis(
    parenthesis: re.Match[str], entries: Sequence[Entry]
) -> Iterator[AuthorCitation]:
    parts = list(_PART.finditer(parenthesis.string, *parenthesis.span(1)))
    for part in parts:
        found = _AUTHOR_YEAR.fullmatch(part[0])
        if found is None:
            continue
        years = re.findall(_YEAR, found[3])
        cited = tuple(filter(None, (_entry_by(found[1], year, entries) for year in years)))
        # Without an entry a name with a year may be anything, such as a journal or a month.
        if cited or found[2] or "&" in found[1]:
            place = parenthesis.span() if len(parts) == 1 else part.span()
            yield AuthorCitation(*place, cited)


def _entry_by(names: str, year: str, entries: Iterable[Entry]) -> Entry | None:
    """Return the entry of a year that begins with the first name and has the others."""
    first, *others = _AND.split(names.strip())
    first = re.sub(r"['’]s$", "", first.strip().rstrip(".,").lower())
    names_of_others = [other.strip().lower() for other in others]
    candidates = [
        entry for entry in entries if year in entry.years and entry.first_words.startswith(first)
    ]
    # The one that has the most of the other names.
    return max(
        candidates,
        key=lambda entry: sum(name in entry.first_words for name in names_of_others),
        default=None,
    )
