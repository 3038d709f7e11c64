"""The web addresses of a report with their places.

They are links, bare addresses, DOIs and arXiv numbers.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mind2web2.urls.markdown import bare_addresses, url_span, url_spans
from mind2web2.urls.parts import undo_markdown_escapes

_URL_START = re.compile(r"https?\\?:\\?/\\?/|www\.", re.IGNORECASE)
# A scholar's address: https://doi.org/ and https://arxiv.org/abs/ lead there.
_IDENTIFIER = re.compile(
    r"(?:\bdoi\s*:\s*)?(?<![\w/.])10\.\d{4,9}/[^\s<>\"'|\[\]{}，。；]+"
    r"|\barxiv\s*:\s*\d{4}\.\d{4,5}(?:v\d+)?",
    re.IGNORECASE,
)
_LINK_END = re.compile(r"\s*(?:(?:\"[^\"\n]*\"|'[^'\n]*')\s*)?\)")
_OTHER_TARGET = re.compile(r"[^\s()]*(?:\([^\s()]*\)[^\s()]*)*")
_DEFINITION = re.compile(
    r"^[ \t>]{0,6}\[([^\]\n^][^\]\n]{0,80})\]:[ \t]*<?(https?://\S+?|doi:\S+?)>?(?:[ "
    r"\t]+[\"'(].*)?$",
    re.MULTILINE | re.IGNORECASE,
)
_REFERENCE = re.compile(r"\]\[([^\[\]\n]{0,80})\]")
_ANCHOR = re.compile(
    r"<a\b[^<>]*?\bhref\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))[^<>]*>(.*?)</a\s*>",
    re.IGNORECASE | re.DOTALL,
)
_TAG = re.compile(r"<[^<>]*>")
_MAX_NAME_CHARS = 1000


@dataclass(frozen=True, slots=True)
class Address:
    """An address in a text.

    Args:
        start: where it begins, with the markup of its link.
        url: as it is written, without markdown's escapes; empty for a link within the text.
        name: the name of the link; ``None`` for a bare address.
        label: of the definition that has the address, as ``1`` of ``[name][1]``.
    """

    start: int
    end: int
    url: str
    name: str | None = None
    is_picture: bool = False
    label: str = ""


def addresses_in(text: str) -> list[Address]:
    """Return the addresses of a text in order.

    Addresses within the name of a link count as its name.
    """
    links = [*_anchors(text), *_links(text), *_reference_links(text)]
    links = _outermost(links)
    rest = _blank_out(text, links)
    bare = [Address(span.start, span.end, span.url) for span in url_spans(rest)]
    bare = [each for each in bare if "." in each.url or "localhost" in each.url]
    rest = _blank_out(rest, bare)
    identifiers = list(_identifiers(rest))
    rest = _blank_out(rest, identifiers)
    without_scheme = [
        Address(span.start, span.end, span.url)
        for span in bare_addresses(rest)
        if "/" in span.url.rstrip("/")
    ]
    found = [*links, *bare, *identifiers, *without_scheme]
    return sorted(found, key=lambda address: address.start)


def _identifiers(text: str) -> Iterator[Address]:
    for match in _IDENTIFIER.finditer(text):
        written = match[0].rstrip(".,;:!?*_\\")
        while written.endswith(")") and written.count(")") > written.count("("):
            written = written[:-1].rstrip(".,;:")
        url = undo_markdown_escapes(written)
        yield Address(match.start(), match.start() + len(written), url)


def _outermost(links: Iterable[Address]) -> list[Address]:
    """Return the links that lie within no other one."""
    outermost: list[Address] = []
    for link in sorted(links, key=lambda each: (each.start, -each.end)):
        if not outermost or link.start >= outermost[-1].end:
            outermost.append(link)
    return outermost


def _blank_out(text: str, addresses: Iterable[Address]) -> str:
    pieces, position = [], 0
    for address in addresses:
        pieces += [text[position : address.start], " " * (address.end - address.start)]
        position = address.end
    return "".join([*pieces, text[position:]])


def _links(text: str) -> Iterator[Address]:
    openings = _openings(text)
    for match in re.finditer(r"\]\(", text):
        opening = openings.get(match.start())
        if opening is None:
            continue
        end, url = _target(text, match.end())
        name = text[opening + 1 : match.start()]
        if url is None:
            continue
        is_picture = text[opening - 1 : opening] == "!"
        closing = _LINK_END.match(text, end)
        if not closing and not _URL_START.match(url):
            continue
        named = next(url_spans(name), None)
        if named is not None and not closing and named.url.startswith(url):
            # The target was cut, as at a comma; the name is the whole address.
            url = named.url
        yield Address(
            opening - is_picture,
            closing.end() if closing else end,
            url if _is_outside(url) else "",
            name,
            is_picture,
        )


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


def _target(text: str, start: int) -> tuple[int, str | None]:
    """Return where a link's target ends, and the target without escapes."""
    while text[start : start + 1] == " ":
        start += 1
    if text[start : start + 1] == "<":
        end = text.find(">", start)
        if end > 0 and "\n" not in text[start:end]:
            return end + 1, undo_markdown_escapes(text[start + 1 : end])
    if scheme := _URL_START.match(text, start):
        span = url_span(text, start, scheme.end())
        # An address may end in punctuation before the link's own bracket.
        end = span.end
        while text[end : end + 1] in (*".,;:!?'*", "\\") and text[end + 1 : end + 2] == ")":
            end += 1
        return end, span.url + undo_markdown_escapes(text[span.end : end])
    other = _OTHER_TARGET.match(text, start)
    if other is None or not other[0]:
        return start, None
    return other.end(), html.unescape(undo_markdown_escapes(other[0]))


def _is_outside(url: str) -> bool:
    """Tell whether a link's target is a page on the web."""
    return bool(_URL_START.match(url) or _IDENTIFIER.fullmatch(url))


def _reference_links(text: str) -> Iterator[Address]:
    """Yield ``[name][label]`` and ``[label]`` whose label is defined; a number alone is a mark."""
    targets = {
        " ".join(label.split()).lower(): undo_markdown_escapes(url)
        for label, url in _DEFINITION.findall(text)
    }
    if not targets:
        return
    openings = _openings(text)
    for closing, opening in openings.items():
        label = name = text[opening + 1 : closing]
        after = text[closing + 1 : closing + 2]
        second = _REFERENCE.match(text, closing)
        end = closing + 1
        if second:
            label, end = second[1] or label, second.end()
        elif after in ("(", ":"):
            continue
        url = targets.get(" ".join(label.split()).lower())
        if url is not None and not name.strip("[]^\\ ").isdigit():
            yield Address(opening, end, url, name, label=label)


def _anchors(text: str) -> Iterator[Address]:
    for match in _ANCHOR.finditer(text):
        url = html.unescape(match[1] or match[2] or match[3] or "")
        name = _TAG.sub("", match[4])
        yield Address(*match.span(), url if _is_outside(url) else "", name)
