"""A page as markdown: its headings, lists, tables and links, and the numbers of its footnotes."""

from __future__ import annotations

import re
from collections.abc import Iterator
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
    (
        *("p", "div", "section", "article", "header", "footer", "main", "aside", "pre"),
        *(
            "blockquote",
            "figure",
            "figcaption",
            "ul",
            "ol",
            "dl",
            "dt",
            "dd",
            "address",
        ),
    )
)
_UNSEEN = frozenset(
    (
        *("script", "style", "template", "noscript", "head", "title", "nav", "button"),
        *("svg", "iframe"),
    )
)


def html_text(page: str | bytes) -> str:
    """Return a page as markdown: its headings, lists, tables and links."""
    if isinstance(page, str):
        page = page.encode("utf-8", "replace")
    parser = lxml_html.HTMLParser(encoding="utf-8", remove_comments=True, huge_tree=True)
    root = lxml_html.document_fromstring(page or b"<p>", parser=parser)
    text = "".join(_Writer(root).pieces())
    return _BLANK_LINES.sub("\n\n", text).strip() + "\n"


class _Writer:
    """Writes the elements of a page; the tree is walked without recursion, as it may be deep."""

    def __init__(self, root: HtmlElement) -> None:
        self._root = root
        self._notes = self._footnotes()
        self._last_numbers: dict[HtmlElement, int] = {}

    def _footnotes(self) -> set[str]:
        """Return the ids of list items and paragraphs that raised links lead to."""
        linked = {str(href)[1:] for href in self._root.xpath("//a[starts-with(@href, '#')]/@href")}
        return {
            str(each.get("id"))
            for each in self._root.iter("li", "p", "div")
            if each.get("id") in linked
            and (each.tag == "li" or re.search(r"\d$", str(each.get("id"))))
        }

    def pieces(self) -> Iterator[str]:
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
            before, after = ("", "") if tag in _UNSEEN or not tag else self._around(entry, tag)
            yield before
            following: list[HtmlElement | str] = []
            if tag and tag not in _UNSEEN:
                following.append(_flowing(entry.text, tag))
                for child in entry:
                    following += [child, _flowing(child.tail, tag)]
            stack += [after, *reversed(following)]

    def _around(self, element: HtmlElement, tag: str) -> tuple[str, str]:
        """Return what stands before and behind an element's content."""
        fixed = _AROUND.get(tag)
        if fixed is not None:
            return fixed
        if tag == "li":
            return f"\n{self._bullet(element)}", "\n"
        if tag == "a":
            return self._link(str(element.get("href") or ""))
        if tag in ("sup", "sub"):
            has_link = element.find(".//a") is not None
            return ("", "") if has_link else (f"<{tag}>", f"</{tag}>")
        if tag == "tr":
            return "\n| ", self._head_rule(element)
        return self._around_block(element) if tag in _BLOCKS else ("", "")

    def _around_block(self, element: HtmlElement) -> tuple[str, str]:
        if next(element.iterancestors("td", "th", "li"), None) is not None:
            return " ", " "
        label = f"[^{element.get('id')}]: " if element.get("id") in self._notes else ""
        return f"\n\n{label}", "\n\n"

    def _note_of(self, element: HtmlElement) -> str | None:
        """Return the footnote that a link's number stands for."""
        if getattr(element, "tag", None) != "a":
            return None
        note = str(element.get("href") or "").removeprefix("#")
        return note if note in self._notes else None

    def _bullet(self, item: HtmlElement) -> str:
        note = f"[^{item.get('id')}]: " if item.get("id") in self._notes else ""
        above = item.getparent()
        if above is None or above.tag != "ol":
            return note or "- "
        first = int(above.get("start")) if str(above.get("start")).isdigit() else 1
        number = self._last_numbers.get(above, first - 1) + 1
        self._last_numbers[above] = number
        return f"{note}[{number}]: " if note else f"{number}. "

    def _link(self, href: str) -> tuple[str, str]:
        if href.startswith("//"):
            href = f"https:{href}"
        if not re.match(r"https?:|doi:|www\.", href, re.IGNORECASE):
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
