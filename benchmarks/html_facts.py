"""Facts from a page's HTML, by another reader than the package's, for captures to show."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lxml import html
from lxml.html import HtmlComment, HtmlElement
from page_facts import Fact, flat

FACTS_A_KIND = 12
MAX_CHARS = 300
MIN_HIDDEN_WORDS = 4
# Their text is shown changed (marks, ruby), or not at all.
CHANGING_TAGS = "sub|sup|q|del|s|ruby|img|input|select|textarea|button|svg|math|object|iframe"
BLOCKS = {
    "p",
    "ul",
    "ol",
    "dl",
    "table",
    "pre",
    "div",
    "blockquote",
    "details",
    "section",
    "figure",
    "li",
    "dd",
}
KINDS = {
    "heading": "//h1|//h2|//h3|//h4|//h5|//h6",
    "paragraph": "//p",
    "list item": "//li",
    "term": "//dt",
    "description": "//dd",
    "code": "//pre",
}
# Apache's manual shows the sign of a heading's own link only under the pointer.
DROPPED = "//script|//style|//template|//noscript|//head|//comment()|//a[@class='permalink']"


@dataclass(frozen=True, slots=True)
class SourceFact:
    """A fact, and what of the page it was."""

    kind: str
    fact: Fact


def present_facts(source: bytes, seed: str) -> list[SourceFact]:
    """Return what is to be shown, some of each kind, the same choice each time."""
    choose = random.Random(seed)
    document = _parsed(source)
    _drop(document.xpath(DROPPED))
    found = []
    for kind, path in KINDS.items():
        texts = sorted(set(filter(None, map(_text_of, document.xpath(path)))))
        found += [SourceFact(kind, text) for text in _some(choose, texts)]
    cells = [cell for table in document.xpath("//table") for cell in _cells_of(table)]
    return found + [SourceFact("table cell", cell) for cell in _some(choose, cells)]


def hidden_texts(source: bytes, seed: str) -> list[str]:
    """Return texts that must not be shown: comments, scripts, and hidden elements."""
    document = _parsed(source)
    hidden = document.xpath("//comment()|//script|//style|//template|//noscript|//*[@hidden]")
    texts = [
        flat(element.text or "" if isinstance(element, HtmlComment) else element.text_content())
        for element in hidden
    ]
    _drop(hidden)
    seen = flat(document.text_content())
    long = {text[:MAX_CHARS] for text in texts if len(text.split()) >= MIN_HIDDEN_WORDS}
    return _some(random.Random(seed), sorted(text for text in long if text not in seen))


def _drop(elements: list[HtmlElement]) -> None:
    for element in elements:
        # An element outside of the document's root is not in its text anyway.
        if element.getparent() is not None:
            element.drop_tree()


def _parsed(source: bytes) -> HtmlElement:
    return html.document_fromstring(source, parser=html.HTMLParser(encoding="utf-8"))


def _some(choose: random.Random, items: list[Any]) -> list[Any]:
    return choose.sample(items, min(FACTS_A_KIND, len(items)))


def _text_of(element: HtmlElement) -> str:
    """Return an element's text up to the first block within; empty for what is shown changed."""
    if element.xpath(f".//*[contains('|{CHANGING_TAGS}|', concat('|', name(), '|'))]"):
        return ""
    if element.tag == "pre":
        return _first_line(element.text_content())
    pieces = list(filter(None, _until_block(element)))
    return "" if _may_stand_apart(pieces) else flat("".join(pieces))[:MAX_CHARS]


def _until_block(element: HtmlElement) -> Iterator[str]:
    yield element.text or ""
    for child in element:
        if child.tag in BLOCKS:
            return
        yield "\n" if child.tag == "br" else ""
        yield from child.itertext()
        yield child.tail or ""


def _may_stand_apart(pieces: list[str]) -> bool:
    """Tell whether only the style sheets know if words of neighbouring elements are one word."""
    return any(
        before[-1].isalnum() and after[0].isalnum() for before, after in itertools.pairwise(pieces)
    )


def _first_line(text: str) -> str:
    lines = [line for line in text.split("\n") if line.strip()]
    return flat(lines[0])[:MAX_CHARS] if lines else ""


def _cells_of(table: HtmlElement) -> Iterator[Fact]:
    """Yield the cells of a table without spans, with the labels of row and column."""
    if table.xpath(".//table|ancestor::table|.//*[@colspan>1 or @rowspan>1]"):
        return
    rows = [row.xpath("./th|./td") for row in table.xpath(".//tr")]
    columns = [_text_of(cell) if cell.tag == "th" else "" for cell in rows[0]] if rows else []
    has_header = len(columns) > 1 and all(columns)
    for row in rows[1:] if has_header else rows:
        label, *values = map(_text_of, row)
        if not label or (not has_header and row[0].tag != "th"):
            continue
        heads = columns[1:] if has_header else [None] * len(values)
        for column, value in zip(heads, values, strict=False):
            if value:
                yield {"row": label, "column": column, "value": value}
