"""The web addresses that a markdown text links to or shows, with their places."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pydantic import BaseModel

from mind2web2.urls.parts import lookup_key, split_url, undo_markdown_escapes
from mind2web2.urls.spans import (
    NEXT_LINE,
    bare_addresses,
    is_bare_address,
    joined,
    url_span,
    url_spans,
)
from mind2web2.urls.visible import visible
from mind2web2.utils.api_misuse import checked_call

_URL_START = re.compile(r"https?\\?:\\?/\\?/|www\.", re.IGNORECASE)
_NESTED = r"\((?:\\.|[^()\n\\]|\((?:\\.|[^()\n\\])*\))*\)"
# As the link's brackets say; a name of a document may have spaces.
_TARGET = re.compile(
    rf"\(\s*(?:<(?P<angled>[^<>\n]*)>|(?P<plain>(?:\\.|{_NESTED}|[^()\s\\])+"
    rf"(?:(?: (?:{_NESTED}|[^()\s\"'])+)+\.(?:pdf|html?|docx?|xlsx?|pptx?|csv|txt|jpe?g|png)"
    rf"|{NEXT_LINE}[^\s()<>\"'\[\]]+(?=\)))?))"
    r"\s*(?:\"[^\"\n]*\"|'[^'\n]*')?\s*\)",
    re.IGNORECASE,
)
_DEFINITION = re.compile(
    r"^[ \t>]{0,6}\[([^\]\n^][^\]\n]{0,80})\]:[ \t]*<?(https?://\S+?|doi:\S+?)>?(?:[ "
    r"\t]+[\"'(].*)?$",
    re.MULTILINE | re.IGNORECASE,
)
_REFERENCE = re.compile(r"\]\[([^\[\]\n]{0,80})\]")
_HREF = r"\bhref\s*=\s*([\"']?)([^\"'<>]*?)\1(?=[\s>])"
_ANCHOR = re.compile(
    rf"<a\b[^<>]*?{_HREF}[^<>]*>((?:(?!<a\b).)*?)</a\s*>", re.IGNORECASE | re.DOTALL
)
# Pictures and files that a page loads are no sources.
_LOADING = re.compile(r"<(?!a\b)[a-z][\w-]*\s[^<>]*?\b(?:href|src)\s*=[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
# Without the semicolon it is a parameter: ?a=1&copy=2
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_MAX_NAME_CHARS = 1000


@dataclass(frozen=True, slots=True)
class Address:
    """An address in a text.

    Args:
        start: where it begins, with the markup of its link.
        url: as it is written, without markdown's escapes; a link's may lead to no web page.
        name: the name of the link; ``None`` for a bare address.
        label: of the definition that has the address, as ``1`` of ``[name][1]``.
    """

    start: int
    end: int
    url: str
    name: str | None = None
    is_picture: bool = False
    label: str = ""

    @classmethod
    def written_at(cls, start: int, text: str) -> Address:
        """Return a bare address as a text has it, which may escape some of its characters."""
        return cls(start, start + len(text), undo_markdown_escapes(text))

    @property
    def is_outside(self) -> bool:
        """Tell whether a link's target is a page on the web."""
        return _is_outside(self.url)


class AddressText:
    """A text whose addresses are taken out, one kind after the other.

    Attributes:
        rest: the text with spaces in place of the addresses that were taken.
    """

    def __init__(self, text: str) -> None:
        self.rest = text

    def take(self, addresses: Iterable[Address]) -> list[Address]:
        """Take the addresses that lie within no other one, and return them in order."""
        outer: list[Address] = []
        for address in sorted(addresses, key=lambda each: (each.start, -each.end)):
            if not outer or address.start >= outer[-1].end:
                outer.append(address)
        self.rest = _blanked(self.rest, outer)
        return outer

    def links(self) -> Iterator[Address]:
        """Yield the links of the rest; addresses within the name of one count as its name."""
        yield from _tags(self.rest)
        yield from _links(self.rest)
        yield from _reference_links(self.rest)

    def shown(self) -> list[Address]:
        """Return the addresses that stand in the rest without links."""
        addresses = [Address(*span) for span in url_spans(self.rest)]
        bare = bare_addresses(_blanked(self.rest, addresses))
        return addresses + [Address(*span) for span in bare]


def markdown_addresses(markdown: str) -> Iterator[str]:
    """Yield the addresses in links, pictures, text, tables, code and HTML, as written, in order.

    The name of a link counts only where the link leads nowhere on the web. A markdown picture
    counts, being shown as evidence; a picture in HTML does not, being the logo of whatever exported
    the text.
    """
    text = AddressText(visible(markdown))
    addresses = [link for link in text.take(text.links()) if link.is_outside]
    addresses += text.shown()
    yield from (address.url for address in sorted(addresses, key=lambda each: each.start))


def _is_outside(url: str) -> bool:
    return _URL_START.match(url) is not None or is_bare_address(url.removeprefix("//"))


def _blanked(text: str, addresses: Iterable[Address]) -> str:
    """Return a text of the same length with spaces in place of addresses, which are in order."""
    pieces, position = [], 0
    for address in addresses:
        pieces += [text[position : address.start], " " * (address.end - address.start)]
        position = address.end
    return "".join([*pieces, text[position:]])


def _tags(text: str) -> Iterator[Address]:
    for link in _ANCHOR.finditer(text):
        yield Address(*link.span(), _without_entities(link[2]), _TAG.sub("", link[3]))
    for tag in _LOADING.finditer(text):
        yield Address(*tag.span(), "", is_picture=True)


def _links(text: str) -> Iterator[Address]:
    openings = _openings(text)
    end = 0
    for match in re.finditer(r"\](?=\()", text):
        opening = openings.get(match.start(), -1)
        # No link begins in another one's target.
        target = _target(text, match.end()) if opening >= 0 and match.start() >= end else None
        if target is None:
            continue
        end, url = target
        name = text[opening + 1 : match.start()]
        is_picture = text[opening - 1 : opening] == "!"
        named = next(url_spans(name), None)
        # The target is within the text, or was cut, as at a comma; the name is the whole address.
        url = named.url if named and (named.url.startswith(url) or not _is_outside(url)) else url
        yield Address(opening - is_picture, end, url, name, is_picture)


def _openings(text: str) -> dict[int, int]:
    """Return for each closing bracket where its opening one stands."""
    pairs: dict[int, int] = {}
    stack: list[int] = []
    for match in re.finditer(r"\\.|\[|\]|\n\s*\n", text):
        mark = match[0]
        if mark == "[":
            stack.append(match.start())
        elif mark == "]" and stack:
            opening = stack.pop()
            if match.start() - opening <= _MAX_NAME_CHARS:
                pairs[match.start()] = opening
        elif mark[0] == "\n":
            stack.clear()
    return pairs


def _target(text: str, start: int) -> tuple[int, str] | None:
    """Return where a link ends, and its target without escapes; ``None`` if it is no link."""
    if target := _TARGET.match(text, start):
        written = target["plain"] if target["angled"] is None else target["angled"]
        return target.end(), _without_entities(joined(written))
    # Its bracket is missing: the address ends as one in the text does.
    scheme = _URL_START.match(text, start + 1)
    span = url_span(text, start + 1, scheme.end()) if scheme else None
    return (span.end, span.url) if span else None


def _without_entities(target: str) -> str:
    return _ENTITY.sub(lambda entity: html.unescape(entity[0]), target)


def _reference_links(text: str) -> Iterator[Address]:
    """Yield ``[name][label]`` and ``[label]`` whose label is defined; a number alone is a mark."""
    targets = {
        " ".join(label.split()).lower(): undo_markdown_escapes(url)
        for label, url in _DEFINITION.findall(text)
    }
    if not targets:
        return
    for closing, opening in _openings(text).items():
        label = name = text[opening + 1 : closing]
        second = _REFERENCE.match(text, closing)
        end = closing + 1
        if second:
            label, end = second[1] or label, second.end()
        url = targets.get(" ".join(label.split()).lower())
        if url is not None and not name.strip("[]^\\ ").isdigit():
            yield Address(opening, end, url, name, label=label)


class URLs(BaseModel):
    """A list of URLs, as an extraction asks for it."""

    urls: list[str]


@checked_call
def regex_find_urls(text: str) -> list[str]:
    """Return the web addresses that ``cache`` finds in a text, each once, with a scheme."""
    urls = []
    for url in markdown_addresses(text):
        if lookup_key(url) is not None:
            scheme = "" if split_url(url).scheme else "https://"
            urls.append(scheme + url)
    return list(dict.fromkeys(urls))
