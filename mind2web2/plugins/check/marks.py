"""The citations in a text: links, addresses, numbers, footnotes, authors and years, lost marks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from mind2web2.plugins.check.addresses import Address
from mind2web2.plugins.check.author_year import author_citations
from mind2web2.plugins.check.blocks import Block
from mind2web2.plugins.check.plain_marks import (
    GLUED,
    IN_PARENTHESES,
    SPACED,
    is_behind_punctuation,
    is_behind_word,
    is_glued_to_word,
)
from mind2web2.plugins.check.references import Entry, SourceLists
from mind2web2.plugins.check.words import SOURCE_WORD

_RANGE = r"\d{1,4}(?:\s*(?:[,;，、&]|[-–—−‑]|\b(?:to|and)\b)\s*\d{1,4})*"
# Programs write these for their readers; a copy of the text has no addresses for them.
_LOST = re.compile(
    r"\ue200[a-z_]*cite[^\ue201\n]{0,400}\ue201"
    r"|(?:file)?cite(?:[\ue000-\uf8ff]*turn\d+[a-z]+\d+)+[\ue000-\uf8ff]*"
    r"|【\s*(?:\d{1,3}†|turn\d|oaicite)[^】\n]{0,80}】"
    r"|\[\s*turn\d+[a-z]+\d+[^\]\n]{0,80}\]"
    r"|\[\d{1,3}†[^\]\n]{0,40}\](?:\[\d{1,3}[^\]\n]{0,20}\])*"
    r"|:?contentReference\[oaicite:[^\]\n]{0,20}\](?:\{index=\d+\})?"
    r"|<grok:render\b[^<>]*>(?:[\s\S]{0,400}?</grok:render>)?",
    re.IGNORECASE,
)
_KEYS = re.compile(r"\[([^\W\d_]\w{0,20}(?:\s*[,;]\s*[^\W\d_]\w{0,20})*)\](?![(\[:])")
# It says where the words begin that the next mark cites.
_CITE_BEGIN = re.compile(r"\[cite_(?:start|end)\]", re.IGNORECASE)
_CITE = re.compile(rf"\[cite:\s*({_RANGE})\s*\]", re.IGNORECASE)
_BRACKETS = re.compile(
    rf"\\?\[\s*(?:{SOURCE_WORD}[:：]?\s*)?[#^]?\s*({_RANGE})(?:,?\s*pp?\.\s*[\d–-]+)?\s*\\?\]"
    rf"|［\s*({_RANGE})\s*］|【\s*({_RANGE})\s*】|〔\s*({_RANGE})\s*〕",
    re.IGNORECASE,
)
_FOOTNOTE = re.compile(r"\[\^([^\[\]\s^]{1,40})\^?\](?!:)")
_WORDED = re.compile(
    rf"[(（]\s*{SOURCE_WORD}\s*#?({_RANGE}(?:\s*[,;]\s*(?:and\s+)?{SOURCE_WORD}\s*#?\d{{1,3}})*)\s*[)）]",
    re.IGNORECASE,
)
_RAISED = re.compile(
    rf"<sup>\s*\\?\[?({_RANGE})\\?\]?\s*</sup>|\^\[?({_RANGE})\]?\^", re.IGNORECASE
)
_NUMBER = re.compile(r"\d+(?:\s*[-–—]\s*\d+)?")
_SUPERSCRIPT = re.compile(r"[¹²³⁰⁴-⁹]{1,3}(?:[,⁻–][¹²³⁰⁴-⁹]{1,3})*")
_FROM_SUPERSCRIPT = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_NUMBERED_NAME = re.compile(
    rf"[\s^\\\[【(]*(?:{SOURCE_WORD}\s*)?#?({_RANGE})[\s\\\]】)]*", re.IGNORECASE
)
_MASKED = re.compile(
    r"(?<!`)(`++)[^`\n]++\1(?!`)|\$\$[^$]+\$\$|(?<![\w$])\$(?=\S)[^$\n]{1,200}?\S\$(?!\d)|\\\(.{1,200}?\\\)"
)
_ID_COLUMN = re.compile(
    r".*\b(?:ids?|refs?|references?|sources?|citations?|cites?)\b.*|.*(?:来源|來源|文献|出典).*",
    re.IGNORECASE,
)
# A single letter has an index, unless it is the unit of a number.
_INDEXED = re.compile(r"(?:^|[^\w.’'\s]|(?<!\d)\s)[a-zA-Z]$|_$")
_INTERVAL = re.compile(r"(?:interval|range|within|∈|\bci:?|=)\s*$", re.IGNORECASE)
_MAX_DIGITS = 3
_UNIT = re.compile(r"(?:\b[^\W\d_]{1,2}|\d|[μµΩ°%])\Z")


@dataclass(frozen=True, slots=True)
class Citation:
    """A place of the text that cites sources.

    Args:
        mark: as it stands in the text; empty for a link or an address.
        addresses: the sources it names.
        missing: its marks that lead to no address.
        is_text: it is a link whose name belongs to the sentence.
    """

    start: int
    end: int
    mark: str = ""
    addresses: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    is_text: bool = False


class CitationFinder:
    """Finds the citations outside of the lists of sources."""

    def __init__(
        self,
        text: str,
        blocks: Sequence[Block],
        addresses: Sequence[Address],
        lists: SourceLists,
    ) -> None:
        self._text = text
        self._blocks = blocks
        self._addresses = addresses
        self._lists = lists
        self._taken = bytearray(len(text))
        for start, end in lists.spans:
            self._take(start, end)

    def citations(self) -> list[Citation]:
        """Return the citations in order."""
        found = [each for each in map(self._of_address, self._addresses) if each]
        for block in self._blocks:
            if block.kind == "code":
                self._take(block.start, block.end)
        found += self._matches(
            _LOST, lambda match: Citation(*match.span(), match[0], (), (match[0],))
        )
        for match in _MASKED.finditer(self._text):
            if self._is_free(*match.span()):
                self._take(*match.span())
        found += self._matches(_CITE_BEGIN, lambda match: Citation(*match.span()))
        found += self._matches(_CITE, lambda match: self._citation_of_numbers(match, match[1]))
        found += self._matches(_FOOTNOTE, self._footnote)
        found += self._matches(_RAISED, self._read_raised)
        found += self._matches(_BRACKETS, self._read_bracket)
        found += self._matches(_KEYS, self._citation_of_keys)
        found += self._matches(
            _WORDED,
            lambda match: self._citation_of_numbers(match, ",".join(_NUMBER.findall(match[1]))),
        )
        found += self._matches(_SUPERSCRIPT, self._superscript)
        has_plain_marks = self._lists.numbers and not any(
            each.mark and each.addresses for each in found
        )
        found += self._cells_of_numbers()
        found += self._by_author()
        if has_plain_marks:
            found += self._plain_numbers()
        return _with_ranges_between(sorted(found, key=lambda each: each.start), self)

    # Each citation takes its place, so that no later pattern reads it again.

    def _take(self, start: int, end: int) -> None:
        self._taken[start:end] = b"\1" * (end - start)

    def _is_free(self, start: int, end: int) -> bool:
        return not any(self._taken[start:end])

    def _matches(
        self, pattern: re.Pattern[str], read: Callable[[re.Match[str]], Citation | None]
    ) -> Iterator[Citation]:
        for match in pattern.finditer(self._text):
            citation = read(match) if self._is_free(*match.span()) else None
            if citation is not None:
                self._take(citation.start, citation.end)
                yield citation

    def _of_address(self, address: Address) -> Citation | None:
        if not self._is_free(address.start, address.start + 1):
            return None
        if address.is_picture:
            # A picture does not cite anything, and is not a word of a sentence.
            self._take(address.start, address.end)
            return Citation(address.start, address.end)
        number = _NUMBERED_NAME.fullmatch(address.name or "")
        if number and any(map(_is_long, _expand(number[1]))):
            # Most are years, which are words of the sentence.
            number = None
        if not address.url:
            # A link within the text: its number is looked up in the lists.
            if number is None:
                return None
            self._take(address.start, address.end)
            mark = _as_mark(self._text[address.start : address.end], address.name)
            return self._number_citation(address.start, address.end, mark, number[1])
        self._take(address.start, address.end)
        mark = f"[{address.label}]" if address.label.isdigit() else ""
        mark = _as_mark("", address.name) if number else mark
        is_text = (
            bool((address.name or "").strip()) and number is None and not self._is_enclosed(address)
        )
        return Citation(address.start, address.end, mark, (address.url,), (), is_text)

    def _is_enclosed(self, address: Address) -> bool:
        """Tell whether a link stands in brackets with nothing but links."""
        before = self._text[max(0, address.start - 2) : address.start].rstrip()
        after = self._text[address.end : address.end + 2].lstrip()
        return before[-1:] in tuple("([（;；") and after[:1] in tuple(")]）;；,")

    def _number_citation(self, start: int, end: int, mark: str, numbers: str) -> Citation:
        """Return the citation of one or more numbers."""
        addresses: list[str] = []
        missing: list[str] = []
        wanted = _expand(numbers)
        for number in wanted:
            entry = self._lists.entry(number, start)
            if entry is not None and entry.addresses:
                addresses += entry.addresses
            else:
                missing.append(f"[{number}]")
        if not addresses:
            missing = [mark]
        return Citation(start, end, mark, tuple(dict.fromkeys(addresses)), tuple(missing))

    def _citation_of_numbers(self, match: re.Match[str], numbers: str) -> Citation:
        return self._number_citation(*match.span(), match[0].replace("\\", ""), numbers)

    def _footnote(self, match: re.Match[str]) -> Citation | None:
        entry = self._lists.entry(f"^{match[1]}", match.start())
        addresses = entry.addresses if entry else ()
        return Citation(*match.span(), match[0], addresses, () if addresses else (match[0],))

    def _citation_of_keys(self, match: re.Match[str]) -> Citation | None:
        """Return the citation of keys such as ``[Roe20]``, if a list has them all."""
        keys = re.split(r"\s*[,;]\s*", match[1])
        entries = [self._lists.entry(key, match.start()) for key in keys]
        if any(entry is None for entry in entries):
            return None
        return _by_entry(*match.span(), match[0], entries)

    def _read_bracket(self, match: re.Match[str]) -> Citation | None:
        numbers = next(group for group in match.groups() if group)
        return (
            None
            if self._is_look_alike(match, numbers)
            else self._citation_of_numbers(match, numbers)
        )

    def _is_look_alike(self, match: re.Match[str], numbers: str) -> bool:
        """Tell whether numbers in brackets are an index, an interval or part of a formula."""
        before = self._text[max(0, match.start() - 30) : match.start()]
        wanted = _expand(numbers)
        listed = [self._lists.has(number) for number in wanted]
        is_index = match[0][0] == "[" and _INDEXED.search(before)
        is_double = before.endswith("[") and self._text[match.end() : match.end() + 1] == "]"
        # A year or a code has four digits as well.
        is_doubtful = is_double or wanted[0] == "0" or any(map(_is_long, wanted))
        if is_index or (is_doubtful and not all(listed)):
            return True
        if len(wanted) == 1:
            return False
        is_unknown = not any(listed) and bool(self._lists.numbers)
        is_pair = len(wanted) == 2 and "," in numbers
        return is_unknown or (is_pair and bool(_INTERVAL.search(before)))

    def _read_raised(self, match: re.Match[str]) -> Citation | None:
        numbers = match[1] or match[2]
        before = self._text[max(0, match.start() - 5) : match.start()]
        if not self._are_listed(numbers) or _UNIT.search(before):
            return None
        mark = re.sub(r"</?sup>|[\^\\\s]", "", match[0], flags=re.IGNORECASE)
        return self._number_citation(*match.span(), mark, numbers)

    def _superscript(self, match: re.Match[str]) -> Citation | None:
        start, end = match.span()
        before = self._text[max(0, start - 8) : start]
        after = self._text[end : end + 1]
        numbers = match[0].translate(_FROM_SUPERSCRIPT)
        if not before.strip() or before[-1] in " \n\t⁻⁺" or _UNIT.search(before) or after.isalpha():
            return None
        if not self._are_listed(numbers):
            return None
        return self._number_citation(start, end, match[0], numbers)

    def _cells_of_numbers(self) -> Iterator[Citation]:
        """Yield the numbers that stand alone in a column of sources: each cites its row."""
        columns: dict[int, list[bool]] = {}
        for block in self._blocks:
            if block.kind not in ("head", "row"):
                continue
            cells = list(_cells(self._text, block))
            if block.kind == "head":
                columns[block.table] = [
                    bool(_ID_COLUMN.fullmatch(self._text[a:b])) for a, b in cells
                ]
                continue
            for is_source, (start, end) in zip(columns.get(block.table, []), cells, strict=False):
                numbers = self._text[start:end]
                is_number = re.fullmatch(_RANGE, numbers) and self._is_free(start, end)
                if is_source and is_number and any(map(self._lists.has, _expand(numbers))):
                    self._take(start, end)
                    yield self._number_citation(start, end, numbers, numbers)

    def _by_author(self) -> Iterator[Citation]:
        for each in author_citations(self._text, self._lists.entries):
            if self._is_free(each.start, each.end):
                self._take(each.start, each.end)
                mark = self._text[each.start : each.end].strip()
                yield _by_entry(each.start, each.end, mark, each.entries, is_text=each.is_text)

    def _plain_numbers(self) -> Iterator[Citation]:
        """Yield numbers that an export glued to the sentence, or that stand behind it."""
        ends = list(self._plain(GLUED, is_behind_punctuation))
        yield from ends
        if len(ends) >= 3:
            yield from self._plain(GLUED, is_glued_to_word)
            yield from self._plain(SPACED, is_behind_word)
        if not ends:
            yield from self._plain(IN_PARENTHESES)

    def _plain(
        self, pattern: re.Pattern[str], is_mark: Callable[[re.Match[str]], bool] = bool
    ) -> Iterator[Citation]:
        """Yield the marks of a pattern whose numbers are all in a list."""

        def read(match: re.Match[str]) -> Citation | None:
            if not is_mark(match) or not self._are_listed(match["numbers"]):
                return None
            return self._number_citation(*match.span("mark"), match["mark"], match["numbers"])

        return self._matches(pattern, read)

    def _are_listed(self, numbers: str) -> bool:
        return all(map(self._lists.has, _expand(numbers)))

    def between(self, first: Citation, second: Citation) -> str:
        """Return the text between two citations."""
        return self._text[first.end : second.start]

    def cited_range(self, first: Citation, second: Citation) -> Citation:
        """Return the second of two marks that mean a range, with all numbers behind the first."""
        bounds = [re.sub(r"\D", "", each.mark) for each in (first, second)]
        numbers = ",".join(_expand("-".join(bounds))[1:])
        return self._number_citation(second.start, second.end, second.mark, numbers)


def _with_ranges_between(citations: Sequence[Citation], finder: CitationFinder) -> list[Citation]:
    """Return the citations; ``[3]-[6]`` cites 4 and 5 as well."""
    found: list[Citation] = []
    for citation in citations:
        before = found[-1] if found else None
        is_range = (
            before is not None
            and re.fullmatch(r"\s*[–—-]\s*", finder.between(before, citation))
            and all(re.fullmatch(r"\W*\d{1,4}\W*", each.mark) for each in (before, citation))
        )
        if before is not None and is_range and not citation.missing:
            found.append(finder.cited_range(before, citation))
        else:
            found.append(citation)
    return found


def _as_mark(written: str, name: str | None) -> str:
    """Return a link's name as a mark, in one pair of brackets."""
    name = (name or written).replace("\\", "").strip()
    return name if name[:1] in "[【(" else f"[{name}]"


def _expand(numbers: str) -> list[str]:
    """Return each number of ``1-5,9``."""
    expanded: list[str] = []
    for part in re.split(r"[,;，、&]|\band\b", numbers):
        bounds = [int(each) for each in re.findall(r"\d+", part)]
        first, last = bounds[0], bounds[-1]
        if not first <= last <= first + 99:
            expanded += map(str, bounds)
        else:
            expanded += map(str, range(first, last + 1))
    return list(dict.fromkeys(expanded))


def _is_long(number: str) -> bool:
    """Tell whether a number has so many digits that it is rather a year than a mark."""
    return len(number) > _MAX_DIGITS


def _cells(text: str, row: Block) -> Iterator[tuple[int, int]]:
    """Yield the places of a row's cells without the spaces around them."""
    start = row.start
    for cell in re.split(r"(?<!\\)\|", text[row.start : row.end]):
        stripped = cell.strip()
        begin = start + (cell.index(stripped) if stripped else 0)
        yield begin, begin + len(stripped)
        start += len(cell) + 1


def _by_entry(
    start: int, end: int, mark: str, cited: Sequence[Entry | None], *, is_text: bool = False
) -> Citation:
    addresses = [url for entry in cited if entry for url in entry.addresses]
    missing = () if addresses else (mark,)
    return Citation(start, end, mark, tuple(dict.fromkeys(addresses)), missing, is_text)
