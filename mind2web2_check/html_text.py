"""A page as markdown: its headings, lists, tables and links, and the numbers of its footnotes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from operator import methodcaller
from typing import TYPE_CHECKING

from mind2web2.plugin import UsageError

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_UNSEEN = "script style template noscript head title nav button svg iframe select textarea [hidden]"
_HIDING_RULE = re.compile(
    r"([^{}]+)\{[^{}]*(?:display\s*:\s*none|visibility\s*:\s*hidden)[^{}]*\}", re.IGNORECASE
)
_SIMPLE_SELECTOR = re.compile(r"\s*[.#][\w-]+\s*")
_NOTE_LINK = re.compile(r"\W*(?:\d{1,3}|[a-z]|[*†‡§]{1,3})\W*|[*†‡§]{1,3}", re.IGNORECASE)
_NOTE_PARENTS = ("li", "p", "div", "aside", "dd", "td", "section")
_NEAREST_PARENT = f"ancestor-or-self::*[{' or '.join(f'self::{tag}' for tag in _NOTE_PARENTS)}][1]"
_WEB = re.compile(r"(?:https?:|doi:|www\.|//)", re.IGNORECASE)
_MAX_SPAN, _MAX_LABEL_CHARS = 100, 12
# Merged cells may unfold into this many characters, and each into at least these.
_MAX_UNFOLDED_CHARS, _CELL_CHARS = 2_000_000, 10
# A cell with a number, a sentence or long words.
_WHOLE = re.compile(r"[0-9]{1,6}")
_VALUE = re.compile(r"\d|[.!?。]\s*\Z|\S[\s\S]{60}")
_NOT_BOLD = ".//text()[normalize-space() and not(ancestor::b or ancestor::strong or ancestor::th)]"


def html_text(page: str) -> str:
    """Return a page as markdown: its headings, lists, tables and links.

    Raises:
        UsageError: a library of the extra ``html`` is missing.
    """
    with UsageError.naming_extra("a report in HTML", "html"):
        from html_to_markdown import ConversionOptions, convert
        from lxml import html as lxml_html

    parser = lxml_html.HTMLParser(encoding="utf-8", remove_comments=True, huge_tree=True)
    # An empty document is an error.
    written = page.encode("utf-8", "replace") + b"<p>"
    root = lxml_html.document_fromstring(written, parser=parser)
    _Tables().write(root)
    for term in root.xpath(f"//dt[string-length(.) <= {_MAX_LABEL_CHARS}]"):
        for definition in term.xpath("following-sibling::*[1]/self::dd"):
            term.append(definition)
            definition.text = f" {definition.text or ''}"
            definition.tag = "span"
    _Links(root).write()
    options = ConversionOptions(
        sup_symbol="<sup>",
        sub_symbol="<sub>",
        highlight_style="none",
        compact_tables=True,
        extract_metadata=False,
        autolinks=False,
        skip_images=True,
        strip_tags=["b", "strong", "i", "em"],
        exclude_selectors=[*_UNSEEN.split(), *_hidden_by_rules(root)],
    )
    found = convert(lxml_html.tostring(root, encoding="unicode"), options)
    # A line's end is no sign of a new statement, as in the PDF that a browser prints.
    return (found.content or "").replace("  \n", "\n").strip() + "\n"


def _hidden_by_rules(root: HtmlElement) -> Iterator[str]:
    """Yield the classes and ids that the page's own style hides."""
    rules = "".join(root.xpath("//style/text()"))
    for selectors in _HIDING_RULE.findall(rules):
        yield from filter(_SIMPLE_SELECTOR.fullmatch, selectors.split(","))


class _Tables:
    """The tables of a page; each cell stands in all its rows, and each table has a head."""

    def __init__(self) -> None:
        self._chars_left = _MAX_UNFOLDED_CHARS

    def write(self, root: HtmlElement) -> None:
        """Split merged cells, and give each table a head, which is empty if its first row is data.

        Raises:
            UsageError: the cells unfold into too much text.
        """
        for table in root.xpath("//table[tr or */tr]"):
            rows = table.xpath("./tr | ./thead/tr | ./tbody/tr | ./tfoot/tr")
            self._split_merged_cells(rows)
            if not table.xpath("./thead"):
                _write_head(*rows)

    def _split_merged_cells(self, rows: Sequence[HtmlElement]) -> None:
        carried: dict[int, list[HtmlElement]] = defaultdict(list)
        for number, row in enumerate(rows):
            place = 0
            for cell in row.xpath("./td | ./th"):
                place = _insert(carried, place, cell.addprevious)
                width = _span(cell, "colspan")
                height = min(_span(cell, "rowspan"), len(rows) - number)
                cell.attrib.pop("rowspan", None)
                cell.set("colspan", str(width))
                self._count(height * (width * _CELL_CHARS + len(cell.text_content())))
                carried[place] += [deepcopy(cell) for _ in range(height - 1)]
                place += width
            _insert(carried, place, row.append)

    def _count(self, chars: int) -> None:
        self._chars_left -= chars
        if self._chars_left < 0:
            raise UsageError("the merged cells of its tables unfold into too much text")


def _write_head(first: HtmlElement, *others: HtmlElement) -> None:
    """Make a first row a head, or else write an empty one above it."""
    cells = first.xpath("./td | ./th")
    if _is_head(first, others):
        for cell in cells:
            cell.tag = "th"
    else:
        head = first.makeelement("tr")
        head.extend(first.makeelement("th") for _ in cells)
        first.addprevious(head)


def _is_head(row: HtmlElement, others: Sequence[HtmlElement]) -> bool:
    """Tell if a row alone is bold or of heads, or has short words and each row below it a value."""
    if not row.xpath(_NOT_BOLD):
        return all(other.xpath(_NOT_BOLD) for other in others)
    return len(others) > 1 and not _has_value(row) and all(map(_has_value, others))


def _has_value(row: HtmlElement) -> bool:
    cells = map(methodcaller("text_content"), row.xpath("./td | ./th"))
    return bool(row.xpath(".//a[@href] | .//sup")) or any(map(_VALUE.search, cells))


def _span(cell: HtmlElement, name: str) -> int:
    """Return over how many rows or columns a cell reaches."""
    written = str(cell.get(name))[:6]
    return min(int(written), _MAX_SPAN) if written.isdecimal() else 1


def _insert(
    carried: dict[int, list[HtmlElement]], place: int, insert: Callable[[HtmlElement], None]
) -> int:
    """Insert the cells that are carried down to a place, and return the next free one."""
    while carried[place]:
        cell = carried[place].pop()
        cell.tail = None
        insert(cell)
        place += _span(cell, "colspan")
    return place


class _Links:
    """The links of a page; those to its footnotes become marks as in markdown."""

    def __init__(self, root: HtmlElement) -> None:
        self._root = root
        self._ids = {
            str(each.get("id") or each.get("name")): each
            for each in root.xpath("//*[@id or @name]")
        }
        fragments: dict[str, set[str]] = defaultdict(set)
        for href in root.xpath("//a[contains(@href, '#')]/@href"):
            address, _, fragment = str(href).partition("#")
            fragments[address].add(fragment)
        # A saved page has its own address before "#"; all those fragments are on it.
        self._own = {address for address, names in fragments.items() if names <= self._ids.keys()}

    def write(self) -> None:
        """Write the footnotes and their marks; links that lead nowhere are words."""
        notes = dict(self._footnotes())
        for raised in self._root.xpath("//sup[.//a] | //sub[.//a]"):
            raised.tag = "span"
        for link in self._root.xpath("//a"):
            href, name = str(link.get("href")).strip(), self._target(link)
            if name in notes.values():
                link[:] = []
                link.text = f"[^{name}]"
                link.tag = "span"
            elif name or not _WEB.match(href):
                link.tag = "span"
            else:
                link.set("href", re.sub(r"\A//", "https://", href))
        numbers: dict[HtmlElement, str] = {}
        for above in {note.getparent() for note in notes}:
            if above.tag == "ol":
                # All of them: what is converted counts only the items that are left.
                numbers |= _numbers(above)
        names = {note: f"[^{name}]: " for note, name in notes.items()}
        for element in names.keys() | numbers.keys():
            _label(element, names.get(element, "") + numbers.get(element, ""))

    def _target(self, link: HtmlElement) -> str:
        """Return the id on this page that a link leads to; empty if it leads elsewhere."""
        address, _, fragment = str(link.get("href")).partition("#")
        return fragment if address in {"", *self._own} else ""

    def _footnotes(self) -> Iterator[tuple[HtmlElement, str]]:
        """Yield the elements that links with a mark as their name lead to, and their ids."""
        order = {each: place for place, each in enumerate(self._root.iter())}
        for link in self._root.iter("a"):
            name = self._target(link)
            is_note = name in self._ids and _NOTE_LINK.fullmatch(link.text_content().strip())
            for note in self._ids[name].xpath(_NEAREST_PARENT) if is_note else ():
                # A note may have a link back to its mark.
                if order[note] > order[link]:
                    yield note, name


def _numbers(above: HtmlElement) -> dict[HtmlElement, str]:
    """Return the numbers that a browser shows before the items of a list, as labels."""
    items = above.xpath("./li")
    step = 1 if above.get("reversed") is None else -1
    number = _whole(above.get("start"), 1 if step > 0 else len(items))
    numbers = {}
    for item in items:
        number = _whole(item.get("value"), number)
        numbers[item] = f"[{number}]: "
        number += step
    return numbers


def _whole(written: str | None, otherwise: int) -> int:
    return int(written) if written and _WHOLE.fullmatch(written) else otherwise


def _label(element: HtmlElement, labels: str) -> None:
    """Write labels before an entry, in one paragraph."""
    for block in element.xpath(".//p | .//div"):
        block.tag = "span"
    element.text = f"{labels}{element.text or ''}"
    element.tag = "p"
