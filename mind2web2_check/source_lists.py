"""The lists of a report's sources: which parts of the text they are, and what each entry names."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, takewhile

from mind2web2.plugin import Address
from mind2web2_check.blocks import PLAIN_HEADING, Block
from mind2web2_check.labels import EntryLabel, entry_label, is_short, labels_in
from mind2web2_check.words import is_list_heading

# "High-quality sources", "Most useful sources to start with": lists if most of their lines are
# addresses.
_LOOSE_HEADING = re.compile(
    r"(?:[\w’'/&-]+\W+){0,6}(?:sources|references|reading|bibliography|links|citations)"
    r"(?: (?:to|for|used|cited|consulted|and|by|in|on|from|with|list|that|index)\b.*)?[\W_]*",
    re.IGNORECASE,
)
_DEFINITION = re.compile(r"\s*\\?\[\^?[^\[\]\s^]{1,40}?\^?\\?\]:")
_ADDRESS_WORD = re.compile(
    r"\b(?:url|link|doi|source|website|available (?:at|from)|retrieved from|accessed at)\b"
    r"|链接|网址|来源|連結",
    re.IGNORECASE,
)
_CITED_SENTENCE = re.compile(r"[^\W\d_]\s?\[\d{1,3}\]\.$|\.\s?\[\d{1,3}\]$")
_SENTENCE = re.compile(r"(?<!\.)[.?!]$|[。？！]$")
_YEAR = re.compile(r"\b(?:1[5-9]|20)\d\d[a-z]?\b")
_MARKUP = re.compile(r"[*_\[\]#]+")
_SAME_SOURCE = re.compile(
    r"\W*(?:ibid(?:em)?|ebd|ebenda|id(?:em)?|a\.\s?a\.\s?O|loc\.\s?cit|同上|там же)\b",
    re.IGNORECASE,
)
_OTHER_NOTE = re.compile(
    r"\b(?:see|cf\.|supra|op\.\s?cit\.|siehe|vgl\.|voir)[\w\s.,(]{0,20}?\b(?:notes?|n\.|nn?|fn\.?|footnote|anm\.|ref\.?)\s*(\d{1,3})",
    re.IGNORECASE,
)
_MOSTLY = 0.8


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


@dataclass(frozen=True)
class SourceLists:
    """The lists of sources of a report.

    Args:
        entries: of all lists, in order.
        blocks: the numbers of the blocks that they take.
        spans: the parts of the text that they take.
        doubtful: further lists as numbers of blocks; the marks decide about them.
    """

    entries: tuple[Entry, ...]
    blocks: frozenset[int]
    spans: tuple[tuple[int, int], ...]
    doubtful: tuple[tuple[int, ...], ...] = ()
    _by_label: dict[str, list[Entry]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        for entry in self.entries:
            for label in entry.labels:
                self._by_label[label].append(entry)

    def entry(self, label: str, at: int) -> Entry | None:
        """Return the entry that a mark means.

        The entry is of the next list behind the mark, or else of the last list before it.

        ``[^1]`` means the footnote 1, if there is one, and ``[1]`` the entry 1 of a list.
        """
        entries = self._by_label.get(label) or self._by_label.get(_of_other_kind(label), [])
        behind = (entry for entry in entries if entry.start > at)
        return next(behind, entries[-1] if entries else None)

    def has(self, label: str) -> bool:
        """Tell whether a list has an entry with this label."""
        return label in self._by_label or _of_other_kind(label) in self._by_label

    @property
    def labels(self) -> frozenset[str]:
        """Return the labels of all entries, those of notes as of other entries."""
        return frozenset(label.removeprefix("^") for label in self._by_label)


def _of_other_kind(label: str) -> str:
    """Return the label of a footnote for that of a list's entry, and the reverse."""
    return label.removeprefix("^") if label.startswith("^") else f"^{label}"


class ListFinder:
    """Finds the lists of sources among the blocks of a text."""

    def __init__(self, text: str, blocks: Sequence[Block], addresses: Sequence[Address]) -> None:
        self._text = text
        self._blocks = blocks
        self._by_block = _addresses_by_block(blocks, addresses)
        self._labels = list(map(self._label, blocks))
        # By the heading's level: no list of sources begins before this block.
        self._empty_until: dict[int, int] = {}

    def find(self) -> SourceLists:
        """Find the lists: below their headings, and entries with labels anywhere."""
        taken: set[int] = set()
        for index in range(len(self._blocks)):
            if index in taken:
                continue
            section = self._section(index)
            if section:
                taken.update((index, *section))
            elif self._is_lone_entry(index):
                taken.add(index)
                below = range(index + 1, len(self._blocks))
                taken.update(takewhile(self._is_address_only, below))
        return self.of(taken, tuple(self._runs(taken)))

    def of(self, taken: Iterable[int], doubtful: tuple[tuple[int, ...], ...] = ()) -> SourceLists:
        """Return the lists that these blocks make."""
        ordered = sorted(taken)
        spans = tuple((self._blocks[at].start, self._blocks[at].end) for at in ordered)
        entries = _with_other_notes(self._entries(ordered))
        return SourceLists(tuple(entries), frozenset(ordered), spans, doubtful)

    def _label(self, block: Block) -> EntryLabel | None:
        if block.kind == "row":
            cell = self._text[block.start : block.end].split("|", maxsplit=1)[0].strip(" *_`[]^")
            labels = labels_in(cell) if cell else None
            is_label = labels is not None and len(labels.names) == 1 and is_short(labels)
            return EntryLabel(labels.names, "| 1 |", block.start) if is_label and labels else None
        if block.number:
            return EntryLabel((block.number.lstrip("0") or "0",), "1.", block.start)
        if block.kind in ("paragraph", "item"):
            return entry_label(self._text, block.start, block.end)
        return None

    def _section(self, index: int) -> list[int]:
        """Return the blocks below a heading of a list of sources; none if there is no such list."""
        block = self._blocks[index]
        content = self._content(index)
        if len(content) > 100 or block.kind not in ("heading", "paragraph"):
            return []
        level = block.level or PLAIN_HEADING
        below = range(index + 1, len(self._blocks))
        if is_list_heading(content):
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
        if any(self._by_block[at] or self._labels[at] for at in section):
            return section
        self._empty_until[level] = below.start + len(section)
        return []

    def _is_new_part(self, index: int, level: int) -> bool:
        block = self._blocks[index]
        if block.kind == "rule":
            return True
        return block.kind == "heading" and block.level <= level

    def _ends(self, index: int, level: int) -> bool:
        return self._is_new_part(index, level) or self._is_prose(index)

    def _is_prose(self, index: int) -> bool:
        """Tell whether a paragraph is prose: it has sentences, but no address, label or year."""
        block = self._blocks[index]
        if block.kind != "paragraph" or self._by_block[index] or self._labels[index]:
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
        block, label = self._blocks[index], self._labels[index]
        first, last = addresses[0], addresses[-1]
        start = label.end if label else block.start
        rest = self._text[last.end : block.end].strip(" |.)>*_")
        is_closing = not rest and last.name is None
        # A sentence goes on behind the link that it begins with.
        is_title = not self._text[first.end : first.end + 2].strip()[:1].islower()
        is_opening = is_title and not self._text[start : first.start].strip(" *_|<(")
        is_row = block.kind == "row" and not rest
        return is_closing or is_row or (is_opening and first.name is not None)

    def _is_address_only(self, index: int) -> bool:
        rest = self._rest(index, self._blocks[index].start)
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
        block, label = self._blocks[index], self._labels[index]
        if label is None or label.look not in ("[1]", "[^1]", "【1】"):
            return False
        if _DEFINITION.match(self._text, block.start, block.end):
            return True
        is_above = index + 1 < len(self._blocks) and self._is_address_only(index + 1)
        is_title = is_above and not _SENTENCE.search(self._content(index))
        is_number = all(name.removeprefix("^").isdigit() for name in label.names)
        return is_number and (is_title or self._is_listed_address(index))

    def _runs(self, taken: set[int]) -> Iterable[tuple[int, ...]]:
        """Yield runs of two or more entries whose labels look alike."""
        looks: list[str] = []
        for index, label in enumerate(self._labels):
            looks.append(label.look if label and index not in taken else "")
        for look, group in groupby(range(len(looks)), looks.__getitem__):
            run = tuple(group)
            labels = [label for at in run if (label := self._labels[at])]
            listed = sum(self._is_listed_address(at) for at in run)
            is_list = len(labels) > 1 and len({each.names for each in labels}) == len(labels)
            if look and is_list and listed >= _MOSTLY * len(labels):
                yield run

    def _entries(self, taken: Sequence[int]) -> list[Entry]:
        entries: list[Entry] = []
        for index in taken:
            addresses, label = self._addresses_of_entry(index), self._labels[index]
            block = self._blocks[index]
            if entries and not label and self._is_address_only(index):
                entries[-1] = _with_more(entries[-1], addresses, block.end)
            elif block.kind not in ("heading", "head", "rule"):
                start = label.end if label else block.start
                text = _MARKUP.sub("", self._text[start : block.end]).strip()
                names = label.names if label else ()
                entries.append(Entry(block.start, block.end, names, addresses, text))
        return entries

    def _addresses_of_entry(self, index: int) -> tuple[str, ...]:
        urls = [each.url for each in self._by_block[index] if each.url]
        return _fullest(urls)

    def _content(self, index: int) -> str:
        block = self._blocks[index]
        return self._text[block.start : block.end].strip()


def _fullest(urls: Iterable[str]) -> tuple[str, ...]:
    """Return the addresses; beside a full one neither hosts nor identifiers count."""
    distinct = tuple(dict.fromkeys(urls))
    return tuple(url for url in distinct if url.lower().startswith("http")) or distinct


def _with_more(entry: Entry, addresses: tuple[str, ...], end: int) -> Entry:
    return replace(entry, end=end, addresses=_fullest((*entry.addresses, *addresses)))


def _with_other_notes(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries; ``Ibid.`` and ``See note 1`` have the addresses of the entry meant."""
    found: list[Entry] = []
    by_label: dict[str, Entry] = {}
    for entry in entries:
        others = [by_label.get(number) for number in _OTHER_NOTE.findall(entry.text)]
        if found and _SAME_SOURCE.match(entry.text):
            others.append(found[-1])
        meant = [url for other in others if other for url in other.addresses]
        whole = replace(entry, addresses=tuple(dict.fromkeys((*meant, *entry.addresses))))
        found.append(whole)
        by_label.update((label.removeprefix("^"), whole) for label in entry.labels)
    return found


def _addresses_by_block(
    blocks: Sequence[Block], addresses: Sequence[Address]
) -> list[Sequence[Address]]:
    starts = [each.start for each in addresses]
    return [
        addresses[bisect_left(starts, block.start) : bisect_left(starts, block.end)]
        for block in blocks
    ]
