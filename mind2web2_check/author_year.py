"""Citations by author and year: ``(Roe, 2020; Lee et al., 2021)`` and ``Roe (2020)``."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import product

from mind2web2_check.source_lists import Entry
from mind2web2_check.words import YEAR as _YEAR

_NAME = r"[^\W\d_][\w.’'\- ]{0,80}?"
_PARENTHESIS = re.compile(
    rf"[(（\[]([^()（）\[\]\n]{{0,300}}?{_YEAR}[^()（）\[\]\n]{{0,120}}?)[)）\]](?![(:])"
)
_AUTHOR_YEAR = re.compile(
    rf"\s*(?:see(?: also)?|e\.g\.,?|cf\.|vgl\.|见|参见)?\s*({_NAME}(?:(?:,| and|,? &| et| und| y) "
    rf"{_NAME})*?)"
    rf"(\s+et al\.?|等人?)?\s*[,，]?\s*({_YEAR}(?:\s*,\s*{_YEAR})*)"
    r"(?:[,:，]?\s*(?:[^\W\d_]{1,3}\.)?\s*[\d–-]+)?\s*"
)
_NARRATIVE = re.compile(
    r"([A-ZÀ-ÖØ-Þ][\w’'\-]{1,60}(?:(?:,? and|,? &|,) [A-ZÀ-ÖØ-Þ][\w’'\-]{1,60}){0,20})(\s+et al\.?)?"
    rf"\s*[(（]({_YEAR})(?:[,:，]?\s*(?:[^\W\d_]{{1,3}}\.)?\s*[\d–-]+)?[)）]"
)
# "[Roe; May]", "(Roe 12)"
_NAMED = re.compile(
    r"[(（\[【]([^\W\d_][^()（）\[\]【】\n]{1,80}?)(?P<page>\s\d{1,4}(?:[–-]\d{1,4})?)?[)）\]】](?![(\[:])"
)
# "World Health Organization (WHO)", up to its end or the year.
_ORGANISATION = re.compile(r"\A\W*[A-Z][a-z]+(?: [^\W\d_]+){1,9}(?: ?\(?[A-Z]{2,8}\)?(?![^\W_]))?")
_ABBREVIATION = re.compile(r"\b[A-Z]{2,8}\b")
_NO_LETTERS = re.compile(r"[\W\d_]+")
_PART = re.compile(r"[^;；]+")
_AND = re.compile(r",? and |,? & |,? et |,? und |, ")
# A citation that more works could mean, by their first word, names none: each looks at all of them.
_MOST_ALIKE = 500


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
    by_word = _Authors(entries)
    for match in _PARENTHESIS.finditer(text):
        yield from _in_parenthesis(match, by_word)
    for match in _NAMED.finditer(text):
        named = [by_word.entry(names) for names in _PART.findall(match[1])]
        # In parentheses a name alone may explain a word: "World Health Organization (WHO)".
        if all(named) and (match["page"] or match[0][0] in "[【"):
            yield AuthorCitation(*match.span(), tuple(filter(None, named)))
    for match in _NARRATIVE.finditer(text):
        entry = by_word.entry(match[1], match[3])
        if entry is not None:
            yield AuthorCitation(*match.span(), (entry,), is_text=True)


def _in_parenthesis(parenthesis: re.Match[str], authors: _Authors) -> Iterator[AuthorCitation]:
    parts = list(_PART.finditer(parenthesis.string, *parenthesis.span(1)))
    named = (_AUTHOR_YEAR.fullmatch(part.string, *part.span()) for part in parts)
    found = list(filter(None, named))
    cited = [authors.entries(match[1], match[3]) for match in found]
    for match, entries in zip(found, cited, strict=True):
        # Without any entry a name with a year may be anything, such as a journal or a month.
        if any(cited) or match[2] or "&" in match[1]:
            place = parenthesis.span() if len(parts) == 1 else match.span()
            yield AuthorCitation(*place, entries)


class _Authors:
    """The entries of lists by the first word of each, which is an author's name, and by year."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._known: dict[tuple[str, str], list[tuple[str, Entry]]] = defaultdict(list)
        for entry in entries:
            for name, year in product(_names_of(entry), {*entry.years, ""}):
                self._known[_first_word(name), year].append((name, entry))
        # Reports cite the same names again and again.
        self.entry = cache(self._entry)

    def entries(self, names: str, years: str) -> tuple[Entry, ...]:
        """Return the entries of an author for some years."""
        found = map(partial(self.entry, names), re.findall(_YEAR, years))
        return tuple(filter(None, found))

    def _entry(self, names: str, year: str = "") -> Entry | None:
        """Return the entry that begins with the first name, and has the most of the others.

        Args:
            year: empty if the citation has none; then only one entry may begin with the name.
        """
        first, *others = _AND.split(names.strip())
        first = re.sub(r"['’]s$", "", first.strip().rstrip(".,").lower())
        names_of_others = [other.strip().lower() for other in others]
        alike = self._known.get((_first_word(first), year), ())
        if len(alike) > _MOST_ALIKE:
            return None
        candidates = [entry for name, entry in alike if name.startswith(first)]
        if not year and len(candidates) > 1:
            return None
        return max(
            candidates,
            key=lambda entry: sum(name in entry.first_words for name in names_of_others),
            default=None,
        )


def _names_of(entry: Entry) -> set[str]:
    """Return the first words of an entry, and the abbreviations of an organisation there."""
    words = "".join(_ORGANISATION.findall(entry.text))
    initials = "".join(re.findall(r"\b[A-Z](?=[a-z])", words))
    names = {entry.first_words, *map(str.lower, [initials, *_ABBREVIATION.findall(words)])}
    return names - {""}


def _first_word(text: str) -> str:
    return _NO_LETTERS.split(text, maxsplit=1)[0]
