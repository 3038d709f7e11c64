"""Citations by author and year: ``(Roe, 2020; Lee et al., 2021)`` and ``Roe (2020)``."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain, islice, product
from operator import attrgetter

from mind2web2_check.source_lists import Entry
from mind2web2_check.words import LOCATOR, NO_AUTHORS
from mind2web2_check.words import YEAR as _YEAR

_AND = r"(?:and|und|et|y|&)"
_PARTICLE = r"(?:al|d[aeiou]|del|della|den|der|des|el|la|le|ten|ter|van|von|zu)"
_SMALL_WORD = rf"(?:of|for|the|{_PARTICLE}|{_AND})"
_CAPITAL = r"[A-ZÀ-ÖØ-Þ](?:[\w’'-]{1,60}+|\.(?>(?:[ -]?[A-Z]\.){0,4}))"
_NAMES = (
    rf"(?<![\w’'.-]){_CAPITAL}(?>(?:,?(?: {_AND})?(?: {_SMALL_WORD}){{0,3}} {_CAPITAL}){{0,20}})"
    r"(?:,? et al\.?| and (?:colleagues|others))?(?:['’]s)?\s?"
)
# A line of a paragraph may end in it, and "[WHO]" may stand behind a name.
_INSIDE = r"(?>(?:[^()（）\[\]\n]|\n(?=[^\W\d_])|[(\[][^()\[\]\n\d]{1,40}[)\]]|\[(?:1[5-9]|20)\d\d\]){4,420})"
_PARENTHESIS = re.compile(rf"(?P<names>(?:{_NAMES})?)[(（\[](?P<inside>{_INSIDE})[)）\]](?![(:])")
# "2020", "2020a, b", "2020, p. 3"; a reprint has the later year: "[1998] 2020".
_DATE = re.compile(
    rf"(?:\[{_YEAR}\]\s*|{_YEAR}/)?(?P<year>{_YEAR})"
    rf"(?P<letters>(?:(?<=\d[a-z])(?:\s?(?:[,;&–-]|{_AND})\s?[a-z]\b(?!['’.]|\s\d)){{1,20}})?)"
    rf"(?:{LOCATOR}|\s?\[{_YEAR}\]){{0,4}}"
)
_ALPHABET = "abcdefghijklmnopqrstuvwxyz"
_LETTER_RANGE = re.compile(r"\b([a-z])\s?[–-]\s?([a-z])\b")
# Signs between two works, and words before the names: "see also", "as cited in".
_LEAD = re.compile(
    rf"\A(?:[\s,;:，；、/&–—-]|\b{_AND}\b)*"
    rf"(?:(?:(?:.*[,:]\s+)?(?:(?!{_SMALL_WORD}\b)[a-zß-ÿ][\w.’'-]*+[\s,:]+)+"
    r"|(?:See|Cf|E\.g|Vgl)\b[.,]*\s+(?:also\s+)?|参?见)(?!\Z))?"
)
# So few words are left out with the citations of a parenthesis: "for reviews", "emphasis added".
_FEW_WORDS = re.compile(r"[\s,;:.，；、&]*(?:[^\W\d_]+[\s,;:.，；、&]*){0,4}")
# "[Roe; May]", "(Roe 12)"
_NAMED = re.compile(
    rf"[(（\[【]([^\W\d_][^()（）\[\]【】\n]{{1,80}}?)(?P<page>\s(?!{_YEAR})\d{{1,4}}(?:[–-]\d{{1,4}})?)?[)）\]】](?![(\[:])"
)
# "World Health Organization (WHO)", up to its end or the year.
_ORGANISATION = re.compile(r"\A\W*[A-Z][a-z]+(?: [^\W\d_]+){1,9}(?: ?\(?[A-Z]{2,8}\)?(?![^\W_]))?")
_ABBREVIATION = re.compile(r"\b[A-Z]{2,8}\b")
_NO_LETTERS = re.compile(r"[\W\d_]+")
_PART = re.compile(r"[^;；]+")
_BETWEEN_AUTHORS = re.compile(rf"\s*,?\s+{_AND}\s+|\s*[,，、]\s*")
_NO_NAMES = re.compile(
    r"\s*[(\[][^()\[\]]*[)\]]|,?\s+et al\b\.?|等人?\s*[,，]?\s*\Z| and (?:colleagues|others)|['’]s\b"
    r"|,\s[A-Z]\.(?:[ -]?[A-Z]\.){0,3}|[\s,，;；(（\[]+\Z"
)
_WORD = re.compile(r"[^\W\d_]+")
_NO_SIGN = re.compile(r"[\w.’')\]]")
# Each word at the start of names may be a word of the sentence, up to the last of the first author.
_BETWEEN_LAST = re.compile(rf"\s{_AND}\s|\bet al\b")
_NEXT_NAME = re.compile(r"(?<![\w’'.-])\w")
_MAX_NAMES_TRIED = 12
# The year of a work stands behind its authors; its title may have others.
_PUBLISHED = re.compile(
    rf"(?:[(（\[]|(?<!\d)[.,，]\s)\s*({_YEAR}(?:\s?[/,–-]\s?{_YEAR})*)(?=[)）\].,:;，。])"
)
_MAX_AUTHORS_CHARS = 1000
# Before each author but the first; "et al." stands for two.
_FURTHER_AUTHOR = re.compile(rf"\bet (?=al\b)|\bal\b|\s{_AND}\s|[A-Z]\.?, [A-Z]|等", re.DOTALL)
_MORE_AUTHORS = r"\bet al\b|\.\.\.|…|等"
_MOST_COUNTED = 2
# How many of the other authors an entry has to have, and what stands behind the first: if words
# are left out before it, "Bank" is not "Bank of England".
_WHOLE_NAME = (0, r"(?![\w-])")
_SURNAME = (99, r"(?=\s*+(?:[^\w\s-]|(?:and|et|[a-z]|\d+)\b|\Z))")
_ONE = rf"(?:{_PARTICLE} ){{0,3}}[A-ZÀ-ÖØ-Þ][^\W\d_]*(?:['’-][^\W\d_]+)?[a-zß-ÿ]"
# Surnames before a year in a parenthesis, as those of a person or of anything else look.
_PEOPLE = re.compile(
    rf"{_ONE}(?:(?:, {_ONE}){{0,20}},? {_AND} {_ONE})?[,，]?\s+|{_ONE} et al\.?\s?[(（\[]"
)
# In every report these are authors.
_SURE = re.compile(r"\bet al\b\.?[,，]?\s*\Z|等人?[,，]?\s*\Z| & [^&\n]{0,80}[,，]\s*\Z")
# A citation that more works could mean, by their first word, names none: each looks at all of them.
_MOST_ALIKE = 500


@dataclass(frozen=True, slots=True)
class AuthorCitation:
    """A citation by author and year.

    Args:
        entries: by what is written for each, ``None`` if the lists do not have it.
        is_text: the names belong to the sentence.
    """

    start: int
    end: int
    entries: Mapping[str, Entry | None]
    is_text: bool = False


@dataclass(frozen=True, slots=True)
class _Work:
    """Names and a year in a text; the year may stand apart from them: ``Roe 2020, 2021``."""

    start: int
    end: int
    names: str
    year: str
    entry: Entry | None

    @property
    def mark(self) -> str:
        return f"{self.names.rstrip(' ([（')} {self.year}"

    @property
    def sign(self) -> str:
        """Return what stands between the names and the year, a comma or a bracket."""
        return _NO_SIGN.sub("", self.names.rstrip()[-1:])


def author_citations(text: str, entries: Sequence[Entry], others: int) -> Iterator[AuthorCitation]:
    """Yield the citations by author and year, then those by author alone.

    Args:
        text: with blanks for the lists and what else is known.
        others: how many citations of other kinds it has.
    """
    authors = _Authors(entries)
    yield from _ByYear(text, authors, others).citations()
    for match in _NAMED.finditer(text):
        named = {names: authors.only_entry(names) for names in _PART.findall(match[1])}
        # In parentheses a name alone may explain a word: "World Health Organization (WHO)".
        if all(named.values()) and (match["page"] or match[0][0] in "[【"):
            yield AuthorCitation(*match.span(), named)


class _ByYear:
    """The citations of a text by author and year."""

    def __init__(self, text: str, authors: _Authors, others: int) -> None:
        self._text = text
        self._authors = authors
        self._found = [(each, [*_works(each, authors)]) for each in _PARENTHESIS.finditer(text)]
        works = chain.from_iterable(works for _, works in self._found)
        resolved = list(filter(attrgetter("entry"), works))
        # Where numbers or links cite, names with years may be words.
        self._is_style = len(resolved) >= max(others, 1)
        self._signs = set(map(attrgetter("sign"), resolved))

    def citations(self) -> Iterator[AuthorCitation]:
        for match, works in self._found:
            if cited := list(filter(self._is_citation, works)):
                inside, end = match.span("inside")
                first, last = cited[0].start, cited[-1].end
                rest = f"{self._text[inside:first]} {self._text[last:end]}"
                if _FEW_WORDS.fullmatch(rest):
                    first, last = min(match.end("names"), first), match.end()
                entries = {work.mark: work.entry for work in cited}
                # The names of "Roe (2020)" are words of the sentence.
                yield AuthorCitation(first, last, entries, cited[0].start < inside)

    def _is_citation(self, work: _Work) -> bool:
        """Tell if names and a year cite an entry, or one that the lists do not have.

        A month, a place or a product looks the same with its year, so it counts what the report
        has elsewhere.
        """
        words = set(_WORD.findall(work.names.lower()))
        return (
            work.entry is not None
            or _SURE.search(work.names) is not None
            or (self._is_style and NO_AUTHORS.isdisjoint(words) and self._is_name(work, words))
        )

    def _is_name(self, work: _Work, words: set[str]) -> bool:
        """Tell if names are an author's of another year, or look like those that have entries."""
        is_alike = work.sign in self._signs and self._prose.isdisjoint(words)
        is_usual = is_alike and _PEOPLE.fullmatch(work.names) is not None
        return is_usual or self._authors.entry(work.names, "")[0] is not None

    @cached_property
    def _prose(self) -> set[str]:
        """Return the words outside of parentheses: a name among them is that of something else."""
        return set(_WORD.findall(_PARENTHESIS.sub(r"\g<names> ", self._text).lower()))


def _works(parenthesis: re.Match[str], authors: _Authors) -> Iterator[_Work]:
    """Yield the works of a parenthesis; a year without names has those before it."""
    text, (place, end) = parenthesis.string, parenthesis.span("inside")
    named = text[parenthesis.start("names") : place], place
    for date in _DATE.finditer(text, place, end):
        if names := _LEAD.sub("", text[place : date.start()], count=1):
            named = names, date.start()
        for year in _years(date):
            entry, own = authors.entry(named[0], year)
            yield _Work(named[1] - len(own), date.end(), own, year, entry)
        place = date.end()


def _years(date: re.Match[str]) -> Iterator[str]:
    """Yield each year of ``2020a, b``."""
    year = date["year"].replace(" ", "")
    letters = _LETTER_RANGE.sub(_letters_between, year[4:] + date["letters"])
    for letter in re.findall(r"\b[a-z]\b|\A\Z", letters):
        yield year[:4] + letter


def _letters_between(ends: re.Match[str]) -> str:
    return " ".join(_ALPHABET[_ALPHABET.index(ends[1]) : _ALPHABET.index(ends[2]) + 1])


@dataclass(frozen=True, slots=True)
class _Listed:
    """An entry under one of its names."""

    name: str
    authors: str
    entry: Entry

    def rank(self, others: Sequence[str], further: int) -> tuple[int, int]:
        """Return how many of the other authors it has, and how close their number is.

        Args:
            further: how many others there are, with those that "et al." stands for.
        """
        # "K. Lee" may be "Lee, K.", and a list may leave out all but the first.
        last_names = (re.escape(name[name.rfind(" ") + 1 :]) for name in others)
        either = (rf"\b{name}(?!\w)|{_MORE_AUTHORS}" for name in last_names)
        count = sum(re.search(each, self.authors, re.IGNORECASE) is not None for each in either)
        listed = len(_FURTHER_AUTHOR.findall(self.authors))
        # "Roe & Lee" are not "Roe & May", but may be "Roe" in a list that has first authors alone.
        if others and not count and listed:
            count = -1
        return count, -abs(min(listed, _MOST_COUNTED) - min(further, _MOST_COUNTED))


class _Authors:
    """The entries of lists by the first word of each, which is an author's name, and by year."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._known: dict[tuple[str, str], list[_Listed]] = defaultdict(list)
        for entry in entries:
            authors, *published = _PUBLISHED.split(entry.text, maxsplit=1)
            years = _years_in("".join(published[:1]) or entry.text)
            for name, year in product(_names_of(entry), {*years, ""}):
                listed = _Listed(name, authors[:_MAX_AUTHORS_CHARS], entry)
                self._known[_first_word(name), year].append(listed)
        # Reports cite the same names again and again.
        self.entry = cache(self._entry)

    def _entry(self, names: str, year: str) -> tuple[Entry | None, str]:
        """Return the entry of names and a year, and which of the names are its authors'.

        Before the authors there may be a first name or words of a sentence: "However, Roe".
        """
        condition = _WHOLE_NAME
        for part in _tried(names):
            if found := self._of_year(part, year, condition):
                return found[0], part
            condition = _SURNAME
        return None, names

    def _of_year(self, names: str, year: str, condition: tuple[int, str]) -> Sequence[Entry]:
        """Return the entries of a year as written.

        If entries have no letters, these number them in the order of their list, as the styles of
        citation ask for. A year without its letter names none of them.
        """
        order = _ALPHABET.find(year[4:])
        found = self._best(names, year, condition)
        return found or self._best(names, year[:4], condition)[order : order + 1]

    def only_entry(self, names: str) -> Entry | None:
        """Return the entry of names without a year, if only one has these authors."""
        found = self._best(names, "", _WHOLE_NAME)
        return found[0] if len(found) == 1 else None

    def _best(self, names: str, year: str, condition: tuple[int, str]) -> Sequence[Entry]:
        """Return the entries that begin with the first name, and have the most of the others."""
        first, *others = _BETWEEN_AUTHORS.split(_NO_NAMES.sub("", names).lower().strip())
        alike = self._known.get((_first_word(first), year), ())
        if not 0 < len(alike) <= _MOST_ALIKE:
            return []
        least, end = condition
        begins = re.compile(re.escape(first) + end)
        further = len(others) + 2 * len(re.findall(_MORE_AUTHORS, names))
        by_rank: dict[tuple[int, int], list[Entry]] = defaultdict(list)
        for each in alike:
            if begins.match(each.name):
                by_rank[each.rank(others, further)].append(each.entry)
        by_rank.setdefault((min(least, len(others)), -_MOST_COUNTED), [])
        return by_rank[max(by_rank)]


def _tried(names: str) -> Iterator[str]:
    """Yield the names, then without the words at their start, one after the other."""
    first_author = _BETWEEN_LAST.split(names, maxsplit=1)[0]
    for match in islice(_NEXT_NAME.finditer(first_author), _MAX_NAMES_TRIED):
        yield names[match.start() :]


def _years_in(text: str) -> list[str]:
    return re.findall(_YEAR, text.replace("n. d.", "n.d."))


def _names_of(entry: Entry) -> set[str]:
    """Return the first words of an entry, and the abbreviations of an organisation there."""
    words = "".join(_ORGANISATION.findall(entry.text))
    initials = "".join(re.findall(r"\b[A-Z](?=[a-z])", words))
    names = {entry.first_words, *map(str.lower, [initials, *_ABBREVIATION.findall(words)])}
    return names - {""}


def _first_word(text: str) -> str:
    return _NO_LETTERS.split(text, maxsplit=1)[0]
