"""A page as markdown: its headings, lists, tables and links, and the numbers of its footnotes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from copy import deepcopy
from typing import TYPE_CHECKING

from lxml import html as lxml_html

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_BLANK_LINES = re.compile(r"\n[ \t]*(?:\n[ \t]*)+\n")
_AROUND = {
    **{f"h{level}": (f"\n\n{'#' * level} ", "\n\n") for level in range(1, 7)},
    **{
        "pre": ("\n\n```\n", "\n```\n\n"),
        "br": ("\n", ""),
        "hr": ("\n\n---\n\n", ""),
        "table": ("\n\n", "\n\n"),
    },
    **dict.fromkeys(("td", "th"), ("", " | ")),
}
_BLOCKS = frozenset(
    [
        "p",
        "div",
        "section",
        "article",
        "header",
        "footer",
        "main",
        "aside",
        "pre",
        "blockquote",
        "figure",
        "figcaption",
        "ul",
        "ol",
        "dl",
        "dt",
        "dd",
        "address",
        "details",
        "summary",
        "fieldset",
        "form",
        "center",
    ]
)
_UNSEEN = frozenset(
    [
        "script",
        "style",
        "template",
        "noscript",
        "head",
        "title",
        "nav",
        "button",
        "svg",
        "iframe",
        "select",
        "textarea",
    ]
)
_HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_HIDING_RULE = re.compile(
    r"([^{}]+)\{[^{}]*(?:display\s*:\s*none|visibility\s*:\s*hidden)[^{}]*\}", re.IGNORECASE
)
_SIMPLE_SELECTOR = re.compile(r"\s*[.#]([\w-]+)\s*")
_NOTE_LINK = re.compile(r"\W*(?:\d{1,3}|[a-z]|[*†‡§]{1,3})\W*|[*†‡§]{1,3}", re.IGNORECASE)
_NOTE_PARENTS = ("li", "p", "div", "aside", "dd", "td", "section")
_BACK_LINK = re.compile(r"[\s^↑↩⤴︎️a-d,]*")
_MAX_SPAN, _MAX_LABEL_CHARS = 100, 12


def html_text(page: str | bytes) -> str:
    """Return a page as markdown: its headings, lists, tables and links."""
    if isinstance(page, str):
        page = page.encode("utf-8", "replace")
    parser = lxml_html.HTMLParser(encoding="utf-8", remove_comments=True, huge_tree=True)
    root = lxml_html.document_fromstring(page or b"<p>", parser=parser)
    _split_merged_cells(root)
    text = "".join(_Writer(root).pieces())
    return _BLANK_LINES.sub("\n\n", text).strip() + "\n"


def _split_merged_cells(root: HtmlElement) -> None:
    """Put a cell that reaches over several rows into each of them."""
    for table in root.iter("table"):
        carried: dict[int, list[HtmlElement]] = defaultdict(list)
        rows = [row for row in table.iter("tr") if next(row.iterancestors("table")) is table]
        for row in rows:
            place = 0
            for cell in [each for each in row if each.tag in ("td", "th")]:
                place = _insert(carried, place, row, before=cell)
                span = str(cell.get("rowspan"))
                copies = min(int(span), _MAX_SPAN) - 1 if span.isdigit() else 0
                carried[place] += [deepcopy(cell) for _ in range(copies)]
                columns = str(cell.get("colspan"))
                place += min(int(columns), _MAX_SPAN) if columns.isdigit() else 1
            _insert(carried, place, row)


def _insert(
    carried: dict[int, list[HtmlElement]],
    place: int,
    row: HtmlElement,
    before: HtmlElement | None = None,
) -> int:
    """Insert the cells that are carried down to a place, and return the next free one."""
    while carried[place]:
        cell = carried[place].pop()
        cell.tail = None
        if before is None:
            row.append(cell)
        else:
            before.addprevious(cell)
        place += 1
    return place


class _Writer:
    """Writes the elements of a page; the tree is walked without recursion, as it may be deep."""

    def __init__(self, root: HtmlElement) -> None:
        self._root = root
        rules = "".join(style.text or "" for style in root.iter("style"))
        self._hiding = {
            name
            for selectors in _HIDING_RULE.findall(rules)
            for selector in selectors.split(",")
            for name in _SIMPLE_SELECTOR.findall(selector)
            if _SIMPLE_SELECTOR.fullmatch(selector)
        }
        self._ids = {
            str(each.get("id") or each.get("name")): each
            for each in root.xpath("//*[@id or @name]")
        }
        self._own_addresses = self._addresses_of_page()
        self._notes = dict(self._footnotes())
        self._last_numbers: dict[HtmlElement, int] = {}

    def _addresses_of_page(self) -> set[str]:
        """Return the addresses before "#" whose fragments are all on this page: it was saved."""
        fragments: dict[str, set[str]] = defaultdict(set)
        for href in self._root.xpath("//a[contains(@href, '#')]/@href"):
            address, _, fragment = str(href).partition("#")
            fragments[address].add(fragment)
        return {address for address, names in fragments.items() if names <= self._ids.keys()} | {""}

    def _target(self, link: HtmlElement) -> str | None:
        """Return the id on this page that a link leads to."""
        address, sign, fragment = str(link.get("href") or "").partition("#")
        return fragment if sign and address in self._own_addresses else None

    def _footnotes(self) -> Iterator[tuple[HtmlElement, str]]:
        """Yield the elements that links with a mark as their name lead to, and their ids."""
        for link in self._root.iter("a"):
            name = self._target(link)
            target = self._ids.get(name or "")
            is_note = target is not None and _NOTE_LINK.fullmatch(link.text_content().strip())
            while is_note and target is not None and target.tag not in _NOTE_PARENTS:
                target = target.getparent()
            if is_note and name and target is not None and target not in link.iterancestors():
                yield target, name

    def pieces(self) -> Iterator[str]:
        """Yield the page's markdown in order."""
        # The pieces left to write are elements and the texts that follow them.
        stack: list[HtmlElement | str] = [self._root]
        while stack:
            entry = stack.pop()
            if isinstance(entry, str):
                yield entry
                continue
            if note := self._note_of(entry):
                yield f"[^{note}]"
                continue
            tag = entry.tag if isinstance(getattr(entry, "tag", None), str) else ""
            if not tag or self._is_unseen(entry, tag):
                continue
            before, after = self._around(entry, tag)
            yield before
            following: list[HtmlElement | str] = [_flowing(entry.text, tag)]
            for child in entry:
                following += [child, _flowing(child.tail, tag)]
            stack += [after, *reversed(following)]

    def _is_unseen(self, element: HtmlElement, tag: str) -> bool:
        names = {str(element.get("id")), *str(element.get("class") or "").split()}
        is_back = (
            tag == "a" and self._target(element) and _BACK_LINK.fullmatch(element.text_content())
        )
        return bool(
            tag in _UNSEEN
            or element.get("hidden") is not None
            or _HIDDEN_STYLE.search(str(element.get("style") or ""))
            or names & self._hiding
            or is_back
        )

    def _around(self, element: HtmlElement, tag: str) -> tuple[str, str]:
        """Return what stands before and behind an element's content."""
        fixed = _AROUND.get(tag)
        if fixed is not None:
            return fixed
        if tag == "li":
            return f"\n{self._bullet(element)}", "\n"
        if tag == "a":
            return self._link(element)
        if tag in ("sup", "sub"):
            has_link = element.find(".//a") is not None
            return ("", "") if has_link else (f"<{tag}>", f"</{tag}>")
        if tag == "tr":
            return "\n| ", self._head_rule(element)
        return self._around_block(element) if tag in _BLOCKS else ("", "")

    def _around_block(self, element: HtmlElement) -> tuple[str, str]:
        if next(element.iterancestors("td", "th", "li"), None) is not None:
            return " ", " "
        before = element.getprevious()
        is_label = before is not None and before.tag == "dt"
        if element.tag == "dd" and is_label and len(before.text_content()) <= _MAX_LABEL_CHARS:
            return " ", "\n\n"
        label = f"[^{self._notes[element]}]: " if element in self._notes else ""
        return f"\n\n{label}", " " if element.tag == "dt" else "\n\n"

    def _note_of(self, element: HtmlElement) -> str | None:
        """Return the footnote that a link's number stands for."""
        if getattr(element, "tag", None) != "a":
            return None
        name = self._target(element)
        return name if name in self._notes.values() and element.text_content().strip() else None

    def _bullet(self, item: HtmlElement) -> str:
        note = f"[^{self._notes[item]}]: " if item in self._notes else ""
        above = item.getparent()
        if above is None or above.tag != "ol":
            return note or "- "
        first = int(above.get("start")) if str(above.get("start")).isdigit() else 1
        number = self._last_numbers.get(above, first - 1) + 1
        self._last_numbers[above] = number
        return f"{note}[{number}]: " if note else f"{number}. "

    def _link(self, element: HtmlElement) -> tuple[str, str]:
        href = str(element.get("href") or "").strip()
        if href.startswith("//"):
            href = f"https:{href}"
        is_own = self._target(element) is not None
        if is_own or not re.match(r"https?:|doi:|www\.", href, re.IGNORECASE):
            return "", ""
        return "[", f"](<{href}>)" if re.search(r"[()\s]", href) else f"]({href})"

    def _head_rule(self, row: HtmlElement) -> str:
        cells = [cell.tag for cell in row if cell.tag in ("td", "th")]
        is_first = next(row.itersiblings("tr", preceding=True), None) is None
        above = row.getparent()
        is_head = (above is not None and above.tag == "thead") or set(cells) == {"th"}
        return "\n" + "|---" * len(cells) + "|" if is_first and is_head and cells else ""


def _flowing(text: str | None, tag: str) -> str:
    if not text:
        return ""
    return text if tag == "pre" else re.sub(r"\s+", " ", text)
