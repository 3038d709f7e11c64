"""The citations in a text: links, addresses, marks of a list, authors and years, lost marks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, starmap

from mind2web2.plugin import Address
from mind2web2_check.author_year import author_citations
from mind2web2_check.blocks import Block
from mind2web2_check.candidates import Candidate, CandidateFinder
from mind2web2_check.decision import Evidence, decide
from mind2web2_check.labels import MAX_RANGE, labels_in
from mind2web2_check.markup import EMPHASIS, without_markup
from mind2web2_check.source_lists import Entry, ListFinder, SourceLists
from mind2web2_check.words import ASKS_FOR_SOURCE

# Programs write these for their readers; a copy of the text has no addresses for them.
_LOST = (
    r"\ue200[a-z_]*cite[^\ue201\n]{0,400}\ue201"
    r"|(?:file)?cite(?:[\ue000-\uf8ff]*turn\d+[a-z]+\d+)+[\ue000-\uf8ff]*"
    r"|【[^【】\n]{0,40}†[^【】\n]{0,80}】|【\s*(?:turn\d|oaicite)[^】\n]{0,80}】"
    r"|\[\s*(?:cite:\s*)?turn\d+[a-z]+\d+[^\]\n]{0,80}\]"
    r"|\[\d{1,3}†[^\]\n]{0,40}\](?:\[\d{1,3}[^\]\n]{0,20}\])*"
    r"|:?contentReference\[oaicite:[^\]\n]{0,20}\](?:\{index=\d+\})?"
    r"|<grok:render\b[^<>]*>(?:[\s\S]{0,400}?</grok:render>)?"
    # Readers ask for a source.
    rf"|(?:<sup>)?[\[【(（]\**{ASKS_FOR_SOURCE}\**[\]】)）](?:</sup>)?|\{{\{{{ASKS_FOR_SOURCE}(?:\|[^{{}}\n]{{0,99}})?\}}\}}"
)
_ASKS_FOR_SOURCE = re.compile(ASKS_FOR_SOURCE, re.IGNORECASE)
# It says where the words begin that the next mark cites.
_CITE_BEGIN = r"\[cite_(?:start|end)\]"
_MASKED = (
    r"!\[[^\[\]\n]*\]\[[^\[\]\n]*\]|(?<!`)(?P<ticks>`++)[^`\n]++(?P=ticks)(?!`)|\$\$[^$]+\$\$"
    r"|(?<![\w$])\$(?=[^\s^])[^$\n]{1,200}?\S\$(?!\d)|\\\(.{1,200}?\\\)"
)
_NO_LABEL = re.compile(
    rf"(?P<lost>{_LOST})|(?P<begin>{_CITE_BEGIN})|(?P<masked>{_MASKED})", re.IGNORECASE
)
_PROGRAM_NUMBER = re.compile(r"[\[【](\d{1,3})†")
_RANGE = re.compile(r"(?<=\d)\]([ \t]*[–—-][ \t]*)\[(?=\d)")
# Between two citations it stands for the numbers that they span.
_DASH = re.compile(r"[ \t]*[–—-][ \t]*")
_MARK_SIGNS = re.compile(r"</?sup>|[\[\]]")
_GLUED_NUMBER = re.compile(r"(?<=[A-Za-z_/-])\d{1,3}$")
_TAKEN = re.compile(rb"\x01+")
_MIN_CITED = 0.2
_MAX_DIGITS = 3
# Around the number by which a link is named.
_SIGNS = " *^\\[]【】()"


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


@dataclass(frozen=True)
class Citations:
    """The citations of a text.

    Args:
        lists: the lists of sources that their marks mean.
        forms: the evidence for each form of mark.
        not_taken: places that look like marks of an entry, in a form with too little evidence.
    """

    all: Sequence[Citation]
    lists: SourceLists
    forms: Sequence[Evidence]
    not_taken: Sequence[Candidate]


def read_citations(text: str, blocks: Sequence[Block], addresses: Sequence[Address]) -> Citations:
    """Read the lists of sources, decide which marks the text uses, and return what each cites."""
    finder = ListFinder(text, blocks, addresses)
    sure = finder.find()
    lists = sure
    if sure.doubtful:
        known = sure.labels
        new = [run for run in sure.doubtful if not known & finder.of(run).labels]
        trial = _Reader(text, blocks, addresses, finder.of(sure.blocks.union(*new)))
        cited = [run for run in new if trial.cites(finder.of(run))]
        lists = finder.of(sure.blocks.union(*cited))
    return _Reader(text, blocks, addresses, lists).citations()


class _Reader:
    """Reads the citations of a text with given lists."""

    def __init__(
        self, text: str, blocks: Sequence[Block], addresses: Sequence[Address], lists: SourceLists
    ) -> None:
        self._text = text
        self._lists = lists
        self._taken = bytearray(len(text))
        # The numbers by which links are named.
        self._named: set[str] = set()
        for start, end in lists.spans:
            self._take(start, end)
        listed = {url.rstrip("/").casefold() for each in lists.entries for url in each.addresses}
        whole = (_without_mark(address, listed) for address in addresses)
        self._found = list(filter(None, map(self._of_address, whole)))
        numbers = {match[1] for match in _PROGRAM_NUMBER.finditer(text)}
        self._has_numbers = all(map(lists.has, numbers))
        self._take_blocks(blocks)
        # "[3]-[6]" is read as "[3 - 6]".
        joined = EMPHASIS.sub(_without_stars, _RANGE.sub(r" \1 ", text))
        self._candidates = CandidateFinder(joined, blocks, lists, self._taken).find()
        self._table = decide(self._candidates, lists)

    def _take_blocks(self, blocks: Iterable[Block]) -> None:
        for block in blocks:
            if block.kind == "code":
                self._take(block.start, block.end)
        for match in _NO_LABEL.finditer(self._text):
            if any(self._taken[match.start() : match.end()]):
                continue
            self._take(*match.span())
            if match["masked"] is None:
                self._found.append(self._of_program(match))

    def _of_program(self, match: re.Match[str]) -> Citation:
        """Return what a program's own mark cites, if a list has the numbers of all of them."""
        lost = match["lost"] or ""
        number = _PROGRAM_NUMBER.match(lost)
        if number and self._has_numbers:
            return self._citation(*match.span(), lost, (number[1],))
        return Citation(*match.span(), lost, (), tuple(filter(None, [lost])))

    def _take(self, start: int, end: int) -> None:
        self._taken[start:end] = b"\1" * (end - start)

    def cites(self, lists: SourceLists) -> bool:
        """Tell whether marks that count name enough of these entries."""
        labels = lists.labels
        cited = {name.removeprefix("^") for each in self._chosen() for name in each.labels}
        return len((cited | self._named) & labels) >= max(1, _MIN_CITED * len(labels))

    def _chosen(self) -> Iterator[Candidate]:
        for each in self._candidates:
            row = self._table.get(each.form)
            if row and row.is_taken and not each.other:
                yield each

    def citations(self) -> Citations:
        """Return the citations in order."""
        chosen = list(self._chosen())
        self._found += [
            self._citation(each.start, each.end, each.mark, each.labels) for each in chosen
        ]
        for each in chosen:
            self._take(each.start, each.end)
        self._found += self._by_author()
        found = sorted(self._found, key=lambda each: each.start)
        found += filter(None, starmap(self._between, pairwise(found)))
        found.sort(key=lambda each: each.start)
        not_taken = [
            each
            for each in self._candidates
            if not (each.other or any(self._taken[each.start : each.end]))
            and all(map(self._lists.has, each.labels))
        ]
        rows = sorted(self._table.values(), key=lambda row: -row.total)
        return Citations(found, self._lists, rows, not_taken)

    def _between(self, first: Citation, last: Citation) -> Citation | None:
        """Return what ``[^1]-[^4]`` cites between its ends."""
        low, high = map(self._number, (first, last))
        is_range = 0 < low < high <= low + MAX_RANGE
        if not (is_range and _DASH.fullmatch(self._text, first.end, last.start)):
            return None
        labels = [str(number) for number in range(low + 1, high)]
        if not labels:
            # The dash is not a word of a sentence.
            return Citation(first.end, last.start)
        mark = f"[{labels[0]}–{labels[-1]}]" if labels[1:] else f"[{labels[0]}]"
        return self._citation(first.end, last.start, mark, labels)

    def _number(self, citation: Citation) -> int:
        """Return the number in a list of what a mark cites; 0 if it has none."""
        labels = labels_in(_MARK_SIGNS.sub("", citation.mark))
        entry = self._lists.entry(labels.names[-1], citation.start) if labels else None
        numbers = (label.lstrip("^") for label in entry.labels) if entry else ()
        return next(map(int, filter(str.isdecimal, numbers)), 0)

    def _of_address(self, address: Address) -> Citation | None:
        if self._taken[address.start]:
            return None
        self._take(address.start, address.end)
        if address.is_picture:
            # A picture does not cite anything, and is not a word of a sentence.
            return Citation(address.start, address.end)
        name = without_markup(address.name or "")
        if _ASKS_FOR_SOURCE.fullmatch(name.strip(_SIGNS)):
            return Citation(address.start, address.end, _as_mark(name), (), (_as_mark(name),))
        labels = labels_in(name.strip(_SIGNS))
        numbers: tuple[str, ...] = ()
        # A longer number is a year, which is a word of the sentence.
        if labels and labels.kind == "number" and max(map(len, labels.names)) <= _MAX_DIGITS:
            numbers = labels.names
        self._named.update(numbers)
        mark = _as_mark(name) if numbers else ""
        if not address.url:
            # A link within the text: its number is looked up in the lists.
            return self._citation(address.start, address.end, mark, numbers) if numbers else None
        is_text = not numbers and bool(address.name) and not self._is_enclosed(address)
        return Citation(address.start, address.end, mark, (address.url,), (), is_text)

    def _is_enclosed(self, address: Address) -> bool:
        """Tell whether a link stands in brackets with nothing but links."""
        before = self._text[max(0, address.start - 2) : address.start].rstrip()
        after = self._text[address.end : address.end + 2].lstrip()
        return before[-1:] in tuple("([（;；") and after[:1] in tuple(")]）;；,")

    def _citation(self, start: int, end: int, mark: str, labels: Iterable[str]) -> Citation:
        entries = {f"[{label}]": self._lists.entry(label, start) for label in labels}
        return _citation_of(start, end, mark, entries)

    def _by_author(self) -> Iterator[Citation]:
        found = author_citations(self._free_text(), self._lists.entries, len(self._found))
        for each in found:
            if any(self._taken[each.start : each.end]):
                continue
            self._take(each.start, each.end)
            mark = self._text[each.start : each.end].strip()
            yield _citation_of(each.start, each.end, mark, each.entries, each.is_text)

    def _free_text(self) -> str:
        """Return the text with blanks for what is known already."""
        free = list(self._text)
        for run in _TAKEN.finditer(self._taken):
            free[slice(*run.span())] = "\0" * len(run[0])
        return "".join(free)


def _citation_of(
    start: int, end: int, mark: str, entries: Mapping[str, Entry | None], is_text: bool = False
) -> Citation:
    """Return the citation of some entries, each under the mark that is listed without it."""
    found = [url for entry in filter(None, entries.values()) for url in entry.addresses]
    missing = [each for each, entry in entries.items() if not (entry and entry.addresses)]
    if not found:
        missing = [mark]
    return Citation(start, end, mark, tuple(dict.fromkeys(found)), tuple(missing), is_text)


def _without_mark(address: Address, listed: set[str]) -> Address:
    """Return a bare address without a mark that is glued to it, if a list has it without."""
    if address.name is not None or address.url.rstrip("/").casefold() in listed:
        return address
    bare = _GLUED_NUMBER.sub("", address.url)
    if bare.rstrip("/").casefold() not in listed:
        return address
    return replace(address, url=bare, end=address.end - len(address.url) + len(bare))


def _without_stars(emphasis: re.Match[str]) -> str:
    return emphasis[0].replace("*", '"')


def _as_mark(name: str) -> str:
    """Return a link's name as a mark, in one pair of brackets."""
    return f"[{name.strip(_SIGNS)}]"
