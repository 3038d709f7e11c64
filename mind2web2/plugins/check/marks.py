"""The citations in a text: links, addresses, numbers, footnotes, authors with a year, lost marks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from mind2web2.plugins.check.addresses import Address
from mind2web2.plugins.check.blocks import Block
from mind2web2.plugins.check.references import Entry, SourceLists
from mind2web2.plugins.check.words import COUNTING, NUMBERED, NUMBERING, SOURCE_WORD

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
_PLAIN_RANGE = r"\d{1,3}(?:[,–-]\s?\d{1,3})*"
_GLUED = re.compile(
    rf"(?<=[.,;:!?)\]\"”’*_a-z。，；！？])({_PLAIN_RANGE})(?=$|[\s|)\]*_\"”]|[.,;:](?:\s|$))",
    re.MULTILINE,
)
_SPACED = re.compile(
    rf"(?<=[A-Za-zÀ-ÿ)*”\"_])[ \t]({_PLAIN_RANGE})(?=\s*[,;:|]|\s*$|\s+(?:and|but|while|whereas|which"
    r"|although|because|is|are|was|were|has|have|had|may|can|that|as|with)\b|\))",
    re.MULTILINE,
)
_IN_PARENTHESES = re.compile(
    rf"(?<=[a-zà-ÿ\"”’)])\s?\(({_PLAIN_RANGE})\)(?=[.,;:]|\s*$)", re.MULTILINE
)
_YEAR = r"(?:1[5-9]|20)\d\d[a-z]?"
_NAME = r"[^\W\d_][\w.’'\- ]{0,80}?"
_PARENTHESIS = re.compile(
    rf"[(（\[]([^()（）\[\]\n]{{0,300}}?{_YEAR}[^()（）\[\]\n]{{0,120}}?)[)）\]](?![(:])"
)
_AUTHOR_YEAR = re.compile(
    rf"\s*(?:see(?: also)?|e\.g\.,?|cf\.|vgl\.|见|参见)?\s*({_NAME}(?:(?:,| and|,? &| et| und| y) {_NAME})*?)"
    rf"(\s+et al\.?|等人?)?\s*[,，]?\s*({_YEAR}(?:\s*,\s*{_YEAR})*)(?:[,:，]?\s*(?:pp?\.)?\s*[\d–-]+)?\s*"
)
_NARRATIVE = re.compile(
    r"([A-ZÀ-ÖØ-Þ][\w’'\-]+(?:(?:,? and|,? &|,) [A-ZÀ-ÖØ-Þ][\w’'\-]+){0,20})(\s+et al\.?)?"
    rf"\s*[(（]({_YEAR})[)）]"
)
_MASKED = re.compile(
    r"(`+)[^`\n]+\1(?!`)|\$\$[^$]+\$\$|(?<![\w$])\$(?=\S)[^$\n]{1,200}?\S\$(?!\d)|\\\(.{1,200}?\\\)"
)
_ID_COLUMN = re.compile(
    r".*\b(?:ids?|refs?|references?|sources?|citations?|cites?)\b.*|.*(?:来源|來源|文献|出典).*",
    re.IGNORECASE,
)
# A single letter has an index, unless it is the unit of a number.
_INDEXED = re.compile(r"(?:^|[^\w.’'\s]|(?<!\d)\s)[a-zA-Z]$|_$")
# "Their outer layer 8" has a mark, "in layer 8" has not.
_IS_DESCRIBED = re.compile(r"\b(?:an?|the|its|their|this|our)\s+(?:[\w-]+\s+){1,3}$")
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
        is_listed = all(map(self._lists.has, _expand(numbers)))
        if not is_listed or _UNIT.search(before):
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
        if not all(map(self._lists.has, _expand(numbers))):
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
        entries = [each for each in self._lists.entries if each.years]
        for match in _PARENTHESIS.finditer(self._text):
            if self._is_free(*match.span()):
                yield from self._in_parenthesis(match, entries)
        for match in _NARRATIVE.finditer(self._text):
            if self._is_free(*match.span()):
                entry = _entry_by(match[1], match[3], entries)
                if entry is not None:
                    self._take(*match.span())
                    cited = _by_entry(match.start(), match.end(), match[0], [entry])
                    yield replace(cited, is_text=True)

    def _in_parenthesis(
        self, parenthesis: re.Match[str], entries: Sequence[Entry]
    ) -> Iterator[Citation]:
        parts = re.split(r"([;；])", parenthesis[1])
        start = parenthesis.start(1)
        for part in parts:
            found = _AUTHOR_YEAR.fullmatch(part)
            end = start + len(part)
            if found:
                years = re.findall(_YEAR, found[3])
                cited = [_entry_by(found[1], year, entries) for year in years]
                # Without an entry a name with a year may be anything, such as a journal or a month.
                if any(cited) or found[2] or "&" in found[1]:
                    alone = len(parts) == 1
                    place = parenthesis.span() if alone else (start, end)
                    self._take(*place)
                    mark = self._text[slice(*place)].strip()
                    yield _by_entry(*place, mark, cited)
            start = end

    def _plain_numbers(self) -> Iterator[Citation]:
        """Yield numbers that an export glued to the sentence, or that stand behind it."""
        ends = list(self._matches(_GLUED, self._read_after_punctuation))
        yield from ends
        if len(ends) >= 3:
            yield from self._matches(_GLUED, self._read_after_word)
            yield from self._matches(_SPACED, self._read_after_space)
        if not ends:
            yield from self._matches(_IN_PARENTHESES, self._plain)

    def _plain(self, match: re.Match[str]) -> Citation | None:
        """Return the citation if all its numbers are in a list and it stands in prose."""
        if not all(map(self._lists.has, _expand(match[1]))):
            return None
        in_brackets = match.re is _IN_PARENTHESES
        start, end = match.start(1) - in_brackets, match.end(1) + in_brackets
        return self._number_citation(start, end, self._text[start:end], match[1])

    def _read_after_punctuation(self, match: re.Match[str]) -> Citation | None:
        before = self._text[max(0, match.start() - 40) : match.start()]
        if before[-1].islower():
            return None
        word = before.split()[-1] if before.split() and not before[-1].isspace() else ""
        body = word.rstrip('.,;:!?)]"”’*_。，；！？')
        if not body or (word[-1] in "*_" and not re.search(r"[a-z.,;:!?)”\"]\**_*$", word)):
            return None
        after = self._text[match.end() : match.end() + 3]
        if body[-1].isdigit() and word[-1] in ".,:":
            is_year = re.fullmatch(r"\W*(?:1[5-9]|20)\d\d", body)
            is_code = re.search(r"[A-Za-z]", body)
            if word[-1] == ",":
                follows = bool(is_year and re.match(r"\s+[a-z]", after))
            else:
                ends_sentence = re.match(r"\s+[\"“(*]*[A-Z]|\s*$|\n", after)
                follows = bool(word[-1] == "." and (is_year or is_code) and ends_sentence)
            if not follows:
                return None
        if body.lower().lstrip("([") in NUMBERING and word[-1] == ".":
            return None
        if word[-1] == ")" and not re.search(r"[A-Za-z]{2,}\)$|\d{4}\)$", word):
            return None
        return self._plain(match)

    def _read_after_word(self, match: re.Match[str]) -> Citation | None:
        before = self._text[max(0, match.start() - 40) : match.start()]
        return self._plain(match) if re.search(r"(?:^|[\s(“\"])[a-z]{4,}$", before) else None

    def _read_after_space(self, match: re.Match[str]) -> Citation | None:
        before = self._text[max(0, match.start() - 40) : match.start()]
        word = re.search(r"([^\s(]+)$", before)
        if word is None:
            return None
        body = word[1].strip('*_"”’)')
        is_label = body[:1].isupper() and body[1:].islower() and before[-1].isalnum()
        is_numbered = body.lower() in NUMBERED and not _IS_DESCRIBED.search(before[: word.start()])
        if body.lower() in COUNTING or is_numbered or is_label or not body or body[-1].isdigit():
            return None
        return self._plain(match)

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


def _entry_by(names: str, year: str, entries: Iterable[Entry]) -> Entry | None:
    """Return the entry of a year that begins with the first name and has the others."""
    first, *others = re.split(r",? and |,? & |,? et |,? und |, ", names.strip())
    first = re.sub(r"['’]s$", "", first.strip().rstrip(".,").lower())
    best = None
    for entry in entries:
        text = entry.text.lower().lstrip(" \"“'-*0123456789.)")
        if not first or not text.startswith(first) or year not in entry.years:
            continue
        if all(other.strip().lower() in text for other in others):
            return entry
        best = best or entry
    return best


def _by_entry(start: int, end: int, mark: str, cited: Sequence[Entry | None]) -> Citation:
    addresses = [url for entry in cited if entry for url in entry.addresses]
    return Citation(start, end, mark, tuple(dict.fromkeys(addresses)), () if addresses else (mark,))
