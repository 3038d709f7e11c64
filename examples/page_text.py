"""A rendered page as markdown text: headings, lists, tables, alternative texts and unfolded details."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
INVISIBLE = {"head", "script", "style", "template", "noscript"}
BLOCKS = {
    "html", "body", "header", "nav", "main", "footer", "section", "article", "div", "figure", "details",
    "p", "figcaption", "summary", "caption", "dl", "dt", "dd", "ul", "ol", "li", "table", *HEADINGS,
}  # fmt: skip
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


@dataclass
class Element:
    """One element of the page with what it holds, in order."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Element | str] = field(default_factory=list)

    def find_all(self, *tags: str) -> Iterator[Element]:
        """Yield the elements below this one that have one of these tags, in page order."""
        for child in self.children:
            if isinstance(child, Element):
                if child.tag in tags:
                    yield child
                yield from child.find_all(*tags)


class _TreeBuilder(HTMLParser):
    """Builds elements from a browser's serialised DOM, whose tags are always closed."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("document")
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        if self._open[-1].tag == tag:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)


def page_text(html: str) -> str:
    """Return the text of a page, given its DOM as serialised by a browser."""
    builder = _TreeBuilder()
    builder.feed(html)
    builder.close()
    return "\n\n".join(_blocks(builder.root)) + "\n"


def _blocks(element: Element) -> Iterator[str]:
    """Yield the paragraphs below an element; neighbouring inline pieces make one paragraph."""
    inline: list[Element | str] = []
    for child in element.children:
        if isinstance(child, Element) and child.tag in INVISIBLE:
            continue
        if isinstance(child, Element) and child.tag in BLOCKS:
            yield from _paragraph(inline)
            inline = []
            yield from _block(child)
        else:
            inline.append(child)
    yield from _paragraph(inline)


def _block(element: Element) -> Iterator[str]:
    if element.tag in HEADINGS:
        yield HEADINGS[element.tag] + _inline(element.children)
    elif element.tag == "table":
        yield from _table(element)
    elif element.tag in ("ul", "ol"):
        yield "\n".join(_list_lines(element, indent=""))
    elif element.tag == "summary":
        yield f"**{_inline(element.children)}**"
    elif element.tag == "nav":
        yield " | ".join(_inline(link.children) for link in element.find_all("a"))
    else:
        yield from _blocks(element)


def _paragraph(pieces: list[Element | str]) -> Iterator[str]:
    text = _inline(pieces)
    if text:
        yield text


def _inline(pieces: list[Element | str]) -> str:
    """Return pieces as one line of text, an image as its alternative text."""
    return re.sub(r"\s+", " ", "".join(_inline_piece(piece) for piece in pieces)).strip()


def _inline_piece(piece: Element | str) -> str:
    if isinstance(piece, str):
        return piece
    if piece.tag == "img":
        return f" [image: {piece.attributes['alt']}] " if piece.attributes.get("alt") else ""
    if piece.tag == "br":
        return " "
    return "".join(_inline_piece(child) for child in piece.children)


def _list_lines(element: Element, indent: str) -> Iterator[str]:
    items = (child for child in element.children if isinstance(child, Element) and child.tag == "li")
    for number, item in enumerate(items, start=1):
        nested = [
            child for child in item.children if isinstance(child, Element) and child.tag in ("ul", "ol")
        ]
        marker = f"{number}." if element.tag == "ol" else "-"
        yield f"{indent}{marker} " + _inline([child for child in item.children if child not in nested])
        for inner in nested:
            yield from _list_lines(inner, indent + "   ")


def _table(element: Element) -> Iterator[str]:
    """Yield the caption and the rows; the first row stands above the rule, as markdown wants it."""
    for caption in element.find_all("caption"):
        yield _inline(caption.children)
    rows = [[_cell(cell) for cell in row.find_all("th", "td")] for row in element.find_all("tr")]
    if not rows:
        return
    if not any(True for _ in element.find_all("thead")):
        rows.insert(0, [""] * len(rows[0]))
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + " --- |" * len(rows[0]))
    yield "\n".join(lines)


def _cell(cell: Element) -> str:
    return _inline(cell.children).replace("|", "\\|")
