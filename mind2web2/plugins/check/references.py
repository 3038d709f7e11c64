"""The lists of a report's sources: which parts of the text they are, and what each entry names."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from mind2web2.plugins.check.addresses import Address
from mind2web2.plugins.check.blocks import BOLD_HEADING, PLAIN_HEADING, Block
from mind2web2.plugins.check.words import LIST_HEADINGS

_HEADING = re.compile(
    rf"[\W\d_]*(?:[ivx]+\.\s*)?(?:{LIST_HEADINGS})[\W_]*(?:\([^()]*\))?[\W_]*",
    re.IGNORECASE,
)
# "High-quality sources", "Most useful sources to start with": lists if most of their lines are
# addresses.
_LOOSE_HEADING = re.compile(
    r"(?:[\w’'/&-]+\W+){0,6}(?:sources|references|reading|bibliography|links|citations)"
    r"(?: (?:to|for|used|cited|consulted|and|by|in|on|from|with|list|that|index)\b.*)?[\W_]*",
    re.IGNORECASE,
)
_BRACKETED = r"\\?\[(\^?[^\[\]\s^]{1,40}?)\^?\\?\](?!\()"
_LABELS = re.compile(
    rf"(?:\s*(?:\*\*|<sup>)?(?:{_BRACKETED}:?|【(\d{{1,3}})】|^([¹²³⁰⁴-⁹]+)(?=\s*\S))"
    r"(?:\*\*|</sup>)?:?)+"
)
_LABEL = re.compile(rf"{_BRACKETED}|【(\d{{1,3}})】|([¹²³⁰⁴-⁹]+)")
_NUMBER_CELL = re.compile(r"\W*(\d{1,4})\W*\|")
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_DEFINITION = re.compile(r"\\?\[\^?[^\[\]\s^]{1,40}?\^?\\?\]:")
_ADDRESS_WORD = re.compile(
    r"\b(?:url|link|doi|source|website|available (?:at|from)|retrieved from|accessed at)\b"
    r"|链接|网址|来源|連結",
    re.IGNORECASE,
)
_CITED_SENTENCE = re.compile(r"[^\W\d_]\s?\[\d{1,3}\]\.$|\.\s?\[\d{1,3}\]$")
_NUMBER_MARK = re.compile(
    r"\[\^?\d{1,3}\^?\]|【\d{1,3}】|[¹²³⁴-⁹]|<sup>|[a-z][.,;]\d{1,2}\s|\(\d{1,2}\)"
)
_YEAR = re.compile(r"\b(?:1[5-9]|20)\d\d[a-z]?\b")
_MARKUP = re.compile(r"[*_\[\]#]+")


@dataclass(frozen=True, slots=True)
class Entry:
    """A source in a list, under each of its labels; that of a footnote begins with ``^``."""

    start: int
    end: int
    labels: tuple[str, ...]
    addresses: tuple[str, ...]
    text: str

    @property
    def years(self) -> list[str]:
        """Return the years that it names."""
        return _YEAR.findall(self.text)

    @property
    def first_words(self) -> str:
        """Return its text in lower case, without the signs before its first word."""
        return self.text.lower().lstrip(" \"“'-*0123456789.)")


@dataclass(frozen=True, slots=True)
class SourceLists:
    """All lists of sources of a report; ``spans`` are the parts of the text that they take."""

    spans: tuple[tuple[int, int], ...]
    entries: tuple[Entry, ...]
    _by_label: dict[str, list[Entry]] = field(default_factory=dict)

    @classmethod
    def of(cls, spans: Iterable[tuple[int, int]], entries: Sequence[Entry]) -> SourceLists:
        """Return the lists with these entries."""
        by_label: dict[str, list[Entry]] = defaultdict(list)
        for entry in entries:
            for label in entry.labels:
                by_label[label].append(entry)
        return cls(tuple(spans), tuple(entries), dict(by_label))

    def entry(self, label: str, at: int) -> Entry | None:
        """Return the entry that a mark means.

        The entry is of the next list behind the mark, or else of the last list before it.

        ``[^1]`` means the footnote 1, if there is one, and ``[1]`` the entry 1 of a list.
        """
        entries = self._by_label.get(label) or self._by_label.get(_of_other_kind(label), [])
        behind = [entry for entry in entries if entry.start > at]
        with_address = [entry for entry in behind or entries if entry.addresses]
        if not with_address:
            return entries[-1] if entries else None
        return with_address[0] if behind else with_address[-1]

    def has(self, label: str) -> bool:
        """Tell whether a list has an entry with this label."""
        return label in self._by_label or _of_other_kind(label) in self._by_label

    @property
    def numbers(self) -> frozenset[int]:
        """Return the labels that are numbers."""
        labels = {label.removeprefix("^") for label in self._by_label}
        return frozenset(int(label) for label in labels if label.isdigit())


def _of_other_kind(label: str) -> str:
    """Return the label of a footnote for that of a list's entry, and the reverse."""
    return label.removeprefix("^") if label.startswith("^") else f"^{label}"


def source_lists(text: str, blocks: Sequence[Block], addresses: Sequence[Address]) -> SourceLists:
    """Find the lists of sources: below their headings, and lines ``[3] address`` anywhere."""
    finder = _Finder(text, blocks, addresses)
    finder.find()
    return SourceLists.of(sorted(finder.spans), finder.entries())


class _Finder:
    def __init__(self, text: str, blocks: Sequence[Block], addresses: Sequence[Address]) -> None:
        self._text = text
        self._blocks = blocks
        self._addresses = addresses
        self._in_list: set[int] = set()
        # By the heading's level: no list of sources begins before this block.
        self._empty_until: dict[int, int] = {}
        self._by_block = _addresses_by_block(blocks, addresses)

    @property
    def spans(self) -> list[tuple[int, int]]:
        return [(self._blocks[index].start, self._blocks[index].end) for index in self._in_list]

    def find(self) -> None:
        for index, block in enumerate(self._blocks):
            if index in self._in_list:
                continue
            section = self._section(index)
            if section:
                self._in_list.update((index, *section))
            elif block.kind in ("paragraph", "item") and self._is_lone_entry(index):
                self._in_list.add(index)
                below = range(index + 1, len(self._blocks))
                self._in_list.update(takewhile(self._is_address_only, below))
        if not self._in_list:
            self._in_list.update(self._closing_list())

    def _section(self, index: int) -> list[int]:
        """Return the blocks below a heading of a list of sources; none if there is no such list."""
        block = self._blocks[index]
        content = self._content(index)
        if len(content) > 100 or block.kind not in ("heading", "paragraph"):
            return []
        level = block.level or PLAIN_HEADING
        below = range(index + 1, len(self._blocks))
        if _HEADING.fullmatch(content):
            return self._named_section(below, level)
        if block.kind == "heading" and _LOOSE_HEADING.fullmatch(content.strip("#* ")):
            section = list(takewhile(lambda at: not self._is_new_part(at, level), below))
            items = [at for at in section if self._blocks[at].kind == "item"]
            listed = [at for at in section if self._is_listed_address(at)]
            return section if items and 2 * len(listed) >= len(items) else []
        return []

    def _named_section(self, below: range, level: int) -> list[int]:
        """Return the blocks of the section that begins there, if one of them is an entry."""
        if below.start <= self._empty_until.get(level, 0):
            return []
        section = list(takewhile(lambda at: not self._ends(at, level), below))
        if any(self._by_block[at] or self._labels(at) for at in section):
            return section
        self._empty_until[level] = below.start + len(section)
        return []

    def _is_new_part(self, index: int, level: int) -> bool:
        block = self._blocks[index]
        if block.kind == "rule":
            return True
        return block.kind == "heading" and (block.level <= level or level >= BOLD_HEADING)

    def _ends(self, index: int, level: int) -> bool:
        block = self._blocks[index]
        if block.kind == "paragraph" and _HEADING.fullmatch(self._content(index)):
            return False
        return self._is_new_part(index, level) or self._is_prose(index)

    def _is_prose(self, index: int) -> bool:
        """Tell whether a paragraph is prose: it has sentences, but no address, label or year."""
        block = self._blocks[index]
        if block.kind != "paragraph" or self._by_block[index] or self._labels(index):
            return False
        content = self._content(index)
        words = len(content.split())
        is_cited = bool(_CITED_SENTENCE.search(content))
        is_long = words >= 8 and content[-1] in ".?!"
        return (is_cited or is_long) and not _YEAR.search(content[:200])

    def _is_listed_address(self, index: int) -> bool:
        """Tell whether a block is an address, or a title with an address at its end or start."""
        addresses = self._by_block[index]
        if not addresses:
            return False
        block = self._blocks[index]
        first, last = addresses[0], addresses[-1]
        rest = self._text[last.end : block.end].strip()
        is_closing = not rest and last.name is None
        # A sentence goes on behind the link that it begins with.
        is_title = not self._text[first.end : first.end + 2].strip()[:1].islower()
        is_opening = is_title and not self._text[block.start : first.start].strip(" *_")
        return is_closing or (is_opening and first.name is not None)

    def _is_address_only(self, index: int) -> bool:
        block = self._blocks[index]
        rest = self._rest(index, block.start)
        rest = _ADDRESS_WORD.sub("", rest).strip(" <>.,;:：()*_-")
        return bool(self._by_block[index]) and not rest

    def _rest(self, index: int, start: int) -> str:
        """Return a block's text from a place on, without its addresses."""
        pieces = []
        for address in self._by_block[index]:
            pieces.append(self._text[start : address.start])
            start = max(start, address.end)
        pieces.append(self._text[start : self._blocks[index].end])
        return "".join(pieces)

    def _is_lone_entry(self, index: int) -> bool:
        """Tell if a block is ``[3] address``, ``[3] title`` above an address, or a definition."""
        block = self._blocks[index]
        labels = _LABELS.match(self._text, block.start, block.end)
        if labels is None or not self._labels(index):
            return False
        if _DEFINITION.match(labels[0].strip()):
            return True
        if not all(label.removeprefix("^").isdigit() for label in self._labels(index)):
            return False
        addresses = self._by_block[index]
        after = labels.end()
        if not addresses or addresses[-1].end <= after:
            follows = index + 1 < len(self._blocks) and self._is_address_only(index + 1)
            is_sentence = re.search(r"(?<!\.)\.$|。$", self._content(index))
            return follows and not is_sentence
        starts = not self._text[after : addresses[0].start].strip(" :<(-–—*")
        ends = not self._text[addresses[-1].end : block.end].strip(" >)")
        return starts or ends

    def _closing_list(self) -> list[int]:
        """Return numbered items with an address each at the end of the text."""
        closing: list[int] = []
        for index in reversed(range(len(self._blocks))):
            if not self._blocks[index].number or not self._is_listed_address(index):
                break
            closing.append(index)
        if len(closing) < 2:
            return []
        above = self._text[: self._blocks[closing[-1]].start]
        return closing if _NUMBER_MARK.search(above) else []

    def entries(self) -> list[Entry]:
        entries: list[Entry] = []
        for index in sorted(self._in_list):
            addresses = self._addresses_of_entry(index)
            labels = self._labels(index)
            block = self._blocks[index]
            if entries and addresses and not labels and self._is_address_only(index):
                entries[-1] = _with_more(entries[-1], addresses, block.end)
            elif block.kind not in ("heading", "head", "rule"):
                text = _MARKUP.sub("", self._content(index))
                entries.append(Entry(block.start, block.end, labels, addresses, text))
        return _renumber(entries)

    def _labels(self, index: int) -> tuple[str, ...]:
        block = self._blocks[index]
        if block.kind == "row":
            cell = _NUMBER_CELL.match(self._text, block.start, block.end)
            return (cell[1],) if cell else ()
        labels = _LABELS.match(self._text, block.start, block.end)
        if labels:
            found = _LABEL.findall(labels[0])
            names = [(first or second or third) for first, second, third in found]
            return tuple(name.translate(_SUPERSCRIPTS).strip("\\") for name in names)
        number = block.number.lstrip("0")
        return (number,) if number else ()

    def _addresses_of_entry(self, index: int) -> tuple[str, ...]:
        """Return the addresses that an entry names.

        Beside a full one neither hosts nor identifiers count.
        """
        urls = [each.url for each in self._by_block[index] if each.url and not each.is_picture]
        full = [url for url in urls if url.lower().startswith("http")]
        return tuple(dict.fromkeys(full or urls))

    def _content(self, index: int) -> str:
        block = self._blocks[index]
        return self._text[block.start : block.end].strip()


def _with_more(entry: Entry, addresses: tuple[str, ...], end: int) -> Entry:
    together = tuple(dict.fromkeys((*entry.addresses, *addresses)))
    full = [url for url in together if url.lower().startswith("http")]
    return Entry(entry.start, end, entry.labels, tuple(full) or together, entry.text)


def _renumber(entries: list[Entry]) -> list[Entry]:
    """Return the entries; a markdown list in which each number is 1 counts by itself."""
    numbered = [entry for entry in entries if entry.labels]
    if len(numbered) < 3 or any(entry.labels != ("1",) for entry in numbered):
        return entries
    number = 0
    counted = []
    for entry in entries:
        number += bool(entry.labels)
        labels = (str(number),) if entry.labels else ()
        counted.append(Entry(entry.start, entry.end, labels, entry.addresses, entry.text))
    return counted


def _addresses_by_block(
    blocks: Sequence[Block], addresses: Sequence[Address]
) -> list[list[Address]]:
    found: list[list[Address]] = []
    position = 0
    for block in blocks:
        while position < len(addresses) and addresses[position].start < block.start:
            position += 1
        inside = []
        while position < len(addresses) and addresses[position].start < block.end:
            inside.append(addresses[position])
            position += 1
        found.append(inside)
    return found
