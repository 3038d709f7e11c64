"""The lists of a report's sources: which parts of the text they are, and what each entry names."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, groupby, islice, takewhile

from mind2web2.plugin import Address, AddressText
from mind2web2_check.blocks import BOLD_LINE, PLAIN_HEADING, Block
from mind2web2_check.labels import LABEL_BEHIND, EntryLabel, entry_label, labels_in, normal
from mind2web2_check.words import YEAR, is_list_heading

# "High-quality sources", "Most useful sources to start with": lists if most of their lines are
# addresses.
_LOOSE_HEADING = re.compile(
    r"(?=.{,100}\Z)(?:[\w’'/&-]++\W++){0,6}(?:sources|references|reading|bibliography|links|citations)"
    r"(?: (?:to|for|used|cited|consulted|and|by|in|on|from|with|list|that|index)\b.*)?[\W_]*",
    re.IGNORECASE,
)
_DEFINITION = re.compile(r"\s*\\?\[\^?[^\[\]\s^]{1,40}?\^?\\?\]:")
_ADDRESS_WORD = re.compile(
    r"\b(?:url|link|doi|source|website|available (?:at|from)|retrieved from|accessed at)\b"
    r"|https?://\S+|链接|网址|来源|連結",
    re.IGNORECASE,
)
# A sentence that ends in its mark, or of eight words.
_PROSE = re.compile(
    r"(?=\S+(?:\s+\S+){7}).*[.?!]\Z|.*(?:[^\W\d_]\s?\[\d{1,3}\]\.|\.\s?\[\d{1,3}\])\Z", re.DOTALL
)
_YEAR = re.compile(YEAR)
# Links within the text lead to these.
_ANCHORS = re.compile(r"(?:<a\b[^<>\n]{1,200}>\s*</a>\s*)+")
_MARKUP = re.compile(r"[*_\[\]#]+")
_SAME_SOURCE = re.compile(
    r"\W*(?:ibid(?:em)?|ebd|ebenda|id(?:em)?|a\.\s?a\.\s?O|loc\.\s?cit|同上|там же)\b",
    re.IGNORECASE,
)
_OTHER_NOTE = re.compile(
    r"\b(?:see|cf\.|supra|op\.\s?cit\.|siehe|vgl\.|voir)[\w\s.,(]{0,20}?\b(?:notes?|n\.|nn?|fn\.?|footnote|anm\.|ref\.?)\s*(\d{1,3})",
    re.IGNORECASE,
)
# "(accessed 3 May 2024)", ", abgerufen am 3. Mai 2024"
_ACCESSED = re.compile(
    r"(?=.{,80}\Z)[\s,;:]*(?:[(（\[][^()（）\[\]]+|(?:[^\W\d_]+\W+){1,3}\d[\d\W]*(?:[^\W\d_]+\W+)?\d+)?[\s)）\].|>*_}]*",
    re.DOTALL,
)
# "1 Title, address": without an address, the number counts something.
_BARE = "1"
_LINKED = "[[1]]()"
_BEHIND = "title [1]"
_SURE_LOOKS = ("[1]", "[^1]", "【1】")
_MOSTLY = 0.8
# Each of a thousand notes may name the one before it, which has its address and all before.
_MAX_MEANT = 20


@dataclass(frozen=True, slots=True)
class Entry:
    """A source in a list, under each of its labels; that of a footnote begins with ``^``."""

    start: int
    end: int
    labels: tuple[str, ...]
    addresses: tuple[str, ...]
    text: str

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
        for label, entries in [*self._by_label.items()]:
            self._by_label.setdefault(_of_other_kind(label), entries)

    def entry(self, label: str, at: int) -> Entry | None:
        """Return the entry that a mark means.

        The entry is of the next list behind the mark, or else of the last list before it.

        ``[^1]`` means the footnote 1, if there is one, and ``[1]`` the entry 1 of a list.
        """
        entries = self._by_label.get(label, [])
        behind = (entry for entry in entries if entry.start > at)
        return next(chain(behind, entries[-1:]), None)

    def has(self, label: str) -> bool:
        """Tell whether a list has an entry with this label."""
        return label in self._by_label

    @cached_property
    def labels(self) -> frozenset[str]:
        """Return the labels of all entries, those of notes as of other entries."""
        return frozenset(self._by_label) - {f"^{label}" for label in self._by_label}


def _of_other_kind(label: str) -> str:
    """Return the label of a footnote for that of a list's entry, and the reverse."""
    return f"^{label}".removeprefix("^^")


class ListFinder:
    """Finds the lists of sources among the blocks of a text."""

    def __init__(self, text: str, blocks: Sequence[Block], addresses: Sequence[Address]) -> None:
        self._text = text
        self._blocks = blocks
        self._by_block = _addresses_by_block(blocks, addresses)
        self._labels = list(map(self._label, range(len(blocks))))
        bare = AddressText(text)
        bare.take(addresses)
        self._bare = bare.rest

    def find(self) -> SourceLists:
        """Find the lists: below their headings, and entries with labels anywhere."""
        taken: set[int] = set()
        in_lines: list[tuple[int, ...]] = []
        doubtful: set[int] = set()
        for index in range(len(self._blocks)):
            section = self._section(index)
            if section and self._is_in_line(section[0]):
                # It may be the source line of the paragraph above.
                in_lines.append((index, *section))
                doubtful.update(section)
            elif section:
                taken.update((index, *section))
            elif index not in doubtful and self._is_lone_entry(index):
                taken.add(index)
                below = range(index + 1, len(self._blocks))
                taken.update(takewhile(self._is_address_only, below))
        return self.of(taken, (*in_lines, *self._runs()))

    def of(self, taken: Iterable[int], doubtful: tuple[tuple[int, ...], ...] = ()) -> SourceLists:
        """Return the lists that these blocks make."""
        ordered = sorted(taken)
        spans = tuple((self._blocks[at].start, self._blocks[at].end) for at in ordered)
        entries = _with_other_notes(self._entries(ordered))
        return SourceLists(tuple(entries), frozenset(ordered), spans, doubtful)

    def _label(self, index: int) -> EntryLabel | None:
        block = self._blocks[index]
        if block.kind == "row":
            cell = self._text[block.start : block.end].split("|", maxsplit=1)[0].strip(" *_`[]^")
            labels = labels_in(cell)
            return EntryLabel(labels.names, "| 1 |", block.start) if labels else None
        if block.number:
            return EntryLabel((normal(block.number),), "1.", block.start)
        if block.kind in ("paragraph", "item", "heading"):
            start = _ANCHORS.match(self._text, block.start, block.end)
            label = entry_label(self._text, start.end() if start else block.start, block.end)
            look = label.look if label else ""
            if block.kind == "heading":
                return label if look in _SURE_LOOKS else None
            is_counted = look == _BARE and not self._by_block[index]
            return self._other_label(index) if is_counted or not look else label
        return None

    def _other_label(self, index: int) -> EntryLabel | None:
        """Return the label of ``[[1]](address)``, ``address [1]`` or ``title [1]: address``."""
        block = self._blocks[index]
        if behind := LABEL_BEHIND.fullmatch(self._text, block.start, block.end):
            label = entry_label(self._text, *behind.span(int(behind.lastindex or 0)))
            return label and replace(label, look=_BEHIND, end=block.start)
        for address in self._by_block[index][:1]:
            labels = labels_in((address.name or "").strip("[]"))
            if address.start == block.start and labels:
                return EntryLabel(labels.names, _LINKED, address.end)
        return None

    def _section(self, index: int) -> list[int]:
        """Return the blocks below a heading of a list of sources; none if there is no such list."""
        content = self._content(index)
        level = self._blocks[index].level or PLAIN_HEADING
        below = self._below(index)
        if self._is_nested(index):
            return []
        if is_list_heading(content):
            ends = self._ends_marked if any(map(self._is_marked, below[:1])) else self._ends
            section = list(takewhile(lambda at: not ends(at, level), below))
            return section if any(map(self._is_entry, section)) else []
        if _LOOSE_HEADING.fullmatch(content.strip("#* ")):
            section = list(takewhile(lambda at: not self._is_new_part(at, level), below))
            items = [at for at in section if self._blocks[at].kind == "item"]
            return section if 0 < len(items) <= 2 * sum(map(self._is_listed, section)) else []
        return []

    def _is_nested(self, index: int) -> bool:
        """Tell whether a block is an item within another: its sources are those of the other."""
        block = self._blocks[index]
        line = self._text[self._text.rfind("\n", 0, block.start) + 1 : block.start]
        return block.kind == "item" and line[:1].isspace()

    def _is_in_line(self, index: int) -> bool:
        """Tell if a block stands in one line with the one before it."""
        return "\n" not in self._text[self._blocks[index - 1].end : self._blocks[index].start]

    def _below(self, index: int) -> range:
        return range(index + 1, len(self._blocks))

    def _is_entry(self, index: int) -> bool:
        return bool(self._by_block[index] or self._labels[index])

    def _is_new_part(self, index: int, level: int) -> bool:
        block = self._blocks[index]
        return block.kind in ("heading", "rule") and block.level <= level

    def _ends(self, index: int, level: int) -> bool:
        """Tell whether a list ends before a block: at a new part or list, or at prose."""
        content = self._content(index)
        is_entry = self._is_entry(index) or _YEAR.search(content[:200])
        is_prose = self._blocks[index].kind == "paragraph" and _PROSE.match(content)
        return (
            self._is_new_part(index, level)
            # Each of many headings takes its own entries.
            or is_list_heading(content)
            or bool(is_prose and not is_entry)
        )

    def _is_marked(self, index: int) -> bool:
        """Tell whether a block begins as an entry does: with a label, or as an item of a list."""
        return bool(self._labels[index]) or self._blocks[index].kind == "item"

    def _ends_marked(self, index: int, level: int) -> bool:
        """Tell whether a list of such entries ends: a year makes no entry of a sentence."""
        if self._ends(index, level):
            return True
        content, block = self._content(index), self._blocks[index]
        if self._is_marked(index) or self._is_listed(index) or block.kind != "paragraph":
            return False
        if BOLD_LINE.fullmatch(content):
            # It may stand above further entries.
            return not any(self._labels[at] or self._is_listed(at) for at in self._below(index)[:1])
        return _PROSE.match(content) is not None

    def _is_listed(self, index: int) -> bool:
        """Tell whether a block is an address, or a title with an address at its end or start."""
        addresses = self._by_block[index]
        if not addresses:
            return False
        first, last = addresses[0], addresses[-1]
        before = self._text[self._start(index) : first.start]
        behind = self._text[last.end : self._blocks[index].end]
        words = _ADDRESS_WORD.sub("", before).strip(" *_|<(:：")
        is_closing = _ADDRESS_WORD.fullmatch(last.name or "link")
        return bool(_ACCESSED.fullmatch(behind)) if is_closing else not words

    def _start(self, index: int) -> int:
        """Return where the words of a block begin, behind its label."""
        label = self._labels[index]
        return label.end if label else self._blocks[index].start

    def _is_address_only(self, index: int) -> bool:
        block = self._blocks[index]
        rest = _ADDRESS_WORD.sub("", self._bare[block.start : block.end])
        return bool(self._by_block[index]) and not rest.strip(" <>.,;:：()*_-\n")

    def _is_lone_entry(self, index: int) -> bool:
        """Tell if a block is ``[3] address``, ``[3] title`` above an address, or a definition."""
        block, label = self._blocks[index], self._labels[index]
        if label is None or label.look not in _SURE_LOOKS:
            return False
        return (
            _DEFINITION.match(self._text, block.start, block.end) is not None
            or any(map(self._is_address_only, self._below(index)[:1]))
            or self._is_listed(index)
        )

    def _runs(self) -> Iterator[tuple[int, ...]]:
        """Yield runs of two or more entries whose labels look alike."""
        looks: list[str] = []
        for index, label in enumerate(self._labels):
            goes_on = bool(looks) and self._is_address_only(index)
            looks.append(label.look if label else looks[-1] if goes_on else "")
        for _, group in groupby(range(len(looks)), looks.__getitem__):
            run = tuple(group)
            listed = sum(map(self._is_listed, run))
            if listed >= _MOSTLY * len(run):
                yield run

    def _entries(self, taken: Sequence[int]) -> list[Entry]:
        entries: list[Entry] = []
        above = ""
        for index in taken:
            urls = [each.url for each in self._by_block[index]]
            block, label = self._blocks[index], self._labels[index]
            if label:
                above = block.kind
            elif entries and (above == "heading" or self._is_address_only(index)):
                last = entries[-1]
                addresses = _fullest([*last.addresses, *urls])
                entries[-1] = replace(last, end=block.end, addresses=addresses)
                continue
            text = _MARKUP.sub("", self._text[self._start(index) : block.end]).strip()
            names = label.names if label else ()
            entries.append(Entry(block.start, block.end, names, _fullest(urls), text))
        return entries

    def _content(self, index: int) -> str:
        block = self._blocks[index]
        return self._text[block.start : block.end].strip()


def _fullest(urls: Iterable[str]) -> tuple[str, ...]:
    """Return the addresses; beside a full one neither hosts nor identifiers count."""
    distinct = tuple(dict.fromkeys(filter(None, urls)))
    return tuple(url for url in distinct if url.lower().startswith("http")) or distinct


def _with_other_notes(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield the entries; ``Ibid.`` and ``See note 1`` have the addresses of the entry meant."""
    last: tuple[str, ...] = ()
    by_label: dict[str, tuple[str, ...]] = {}
    for entry in entries:
        others = [by_label.get(number, ()) for number in _OTHER_NOTE.findall(entry.text)]
        if _SAME_SOURCE.match(entry.text):
            others.append(last)
        meant = islice(chain(*others), _MAX_MEANT)
        last = tuple(dict.fromkeys(chain(meant, entry.addresses)))
        by_label.update((label.removeprefix("^"), last) for label in entry.labels)
        yield replace(entry, addresses=last)


def _addresses_by_block(
    blocks: Sequence[Block], addresses: Sequence[Address]
) -> list[Sequence[Address]]:
    starts = [each.start for each in addresses]
    return [
        addresses[bisect_left(starts, block.start) : bisect_left(starts, block.end)]
        for block in blocks
    ]
