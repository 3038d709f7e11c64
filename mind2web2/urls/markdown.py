"""The web addresses that a markdown text shows or links to, in the order in which a reader meets them."""

from __future__ import annotations

import html
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from mind2web2.urls.find import UrlSpan, bare_addresses, is_bare_address, url_spans

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

# The parser's time may grow with the square of what it parses at once, so long texts are parsed in parts. It
# may also take twenty microseconds a character: what goes beyond any answer's length is only searched.
_MAX_PART_CHARS = 50_000
_MAX_PARSED_CHARS = 100_000

_ADDRESS_TOKEN = "cited_address"
_FOUND = "addresses found by source"
_READ_TOKENS = ("inline", "fence", "code_block", "html_block", "tr_open")
_NEWLINE = re.compile(r"\r\n?|\n")
_WEB = re.compile(r"\s*(?:url:\s*)?(https?://.*)", re.IGNORECASE | re.DOTALL)
_NEXT_LINE = r"\n[ \t]*(?:>[ \t]?)*"
# Broken across lines between marks that leave no doubt where the address ends.
_BROKEN_IN_ANGLES = re.compile(rf"<(https?://[^\s<>]+){_NEXT_LINE}([^\s<>]+)>", re.IGNORECASE)
_BROKEN_IN_LINK = re.compile(rf"\]\((https?://[^\s()<>]+){_NEXT_LINE}([^\s()<>\"'\[\]]+)\)", re.IGNORECASE)
# No valid link, but a name that looks like a document's counts as one.
_SPACED_IN_LINK = re.compile(
    r"\]\((https?://[^\s()<>]*(?: [^\s()<>\"']+)+\.(?:pdf|html?|docx?|xlsx?|pptx?|csv|txt|jpe?g|png))\)",
    re.IGNORECASE,
)
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_TAG = re.compile(r"<(?:(a|area)\b([^<>]*)|(/a)\s*|[^<>]*)>", re.IGNORECASE)
_HREF = re.compile(r"""(?:^|[\s"'])href\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Opening:
    """The start of a link; the text up to its end is only its name."""

    address: str


class _Closing:
    """Where a link ends."""


@dataclass(frozen=True, slots=True)
class _Found:
    """The addresses in the source of a paragraph, and where they begin, in order."""

    by_start: dict[int, UrlSpan]
    starts: list[int]


_Piece = str | _Opening | _Closing


def markdown_addresses(markdown: str) -> Iterator[str]:
    """Yield the addresses of links, definitions, pictures, text, tables, code and HTML, as they are written.

    The name of a link counts only where the link leads nowhere on the web. A markdown picture counts, being
    shown as evidence; a picture in HTML does not, being the logo of whatever exported the text.
    """
    position = 0
    while position < min(len(markdown), _MAX_PARSED_CHARS):
        end = _end_of_part(markdown, position)
        yield from _addresses_of_part(_with_broken_addresses_joined(markdown[position:end]))
        position = end
    yield from (span.url for span in _spans(markdown[position:]))


def _end_of_part(text: str, start: int) -> int:
    limit = start + _MAX_PART_CHARS
    if limit >= len(text):
        return len(text)
    cuts = (text.rfind(mark, start + 1, limit) for mark in ("\n\n", "\n", " "))
    return next((cut for cut in cuts if cut > start), limit)


def _with_broken_addresses_joined(text: str) -> str:
    text = _BROKEN_IN_ANGLES.sub(r"<\1\2>", text)
    text = _BROKEN_IN_LINK.sub(r"](\1\2)", text)
    return _SPACED_IN_LINK.sub(r"](<\1>)", text)


def _addresses_of_part(text: str) -> Iterator[str]:
    environment: dict[str, Any] = {}
    lines_left = dict(enumerate(_NEWLINE.split(text)))
    pieces_by_line: list[tuple[int, list[_Piece]]] = []
    line = 0
    for token in _parser().parse(text, environment):
        line = token.map[0] if token.map else line
        if pieces := _pieces(token):
            pieces_by_line.append((line, pieces))
        if token.map and token.type in _READ_TOKENS:
            _leave_out(lines_left, token.map)
    for definition in (*environment.get("references", {}).values(), *environment.get("duplicate_refs", ())):
        address = _web_address(definition["href"])
        pieces_by_line.append((definition["map"][0], [address] if address else []))
        _leave_out(lines_left, definition["map"])
    # The parser drops content that is nested too deep.
    pieces_by_line += [
        (number, [span.url for span in _spans(line_text)]) for number, line_text in lines_left.items()
    ]
    for _, pieces in sorted(pieces_by_line, key=lambda entry: entry[0]):
        yield from _shown_addresses(pieces)


def _leave_out(lines: dict[int, str], extent: Sequence[int]) -> None:
    for number in range(extent[0], extent[1]):
        lines.pop(number, None)


def _shown_addresses(pieces: Sequence[_Piece]) -> Iterator[str]:
    closings = [index for index, piece in enumerate(pieces) if isinstance(piece, _Closing)]
    hidden_until = 0
    for index, piece in enumerate(pieces):
        if index < hidden_until:
            continue
        if isinstance(piece, _Opening):
            yield piece.address
            closing = bisect_left(closings, index)
            # A link that never ends has no name.
            hidden_until = closings[closing] if closing < len(closings) else 0
        elif isinstance(piece, str):
            yield piece


def _pieces(token: Token) -> list[_Piece]:
    if token.type == "inline":
        return [piece for child in token.children or () for piece in _inline_pieces(child)]
    if token.type in ("fence", "code_block"):
        return [span.url for span in _spans(token.content, is_code=True)]
    return list(_html_pieces(token.content)) if token.type == "html_block" else []


def _inline_pieces(token: Token) -> Iterator[_Piece]:
    if token.type == _ADDRESS_TOKEN:
        yield token.content
    elif token.type == "link_open":
        address = _web_address(str(token.attrs.get("href", "")))
        if address is not None:
            yield _Opening(address)
    elif token.type == "link_close":
        yield _Closing()
    elif token.type == "image":
        address = _web_address(str(token.attrs.get("src", "")))
        if address is not None:
            yield address
    elif token.type == "code_inline":
        yield from (span.url for span in _spans(token.content, is_code=True))
    elif token.type == "html_inline":
        yield from _html_pieces(token.content)


def _html_pieces(content: str) -> Iterator[_Piece]:
    shown, *comments = content.split("<!--")
    # A comment that never ends is none.
    visible = " ".join([shown, *(comment.split("-->", 1)[-1] for comment in comments)])
    position = 0
    for tag in _TAG.finditer(visible):
        yield from _text_pieces(visible[position : tag.start()])
        position = tag.end()
        if tag[3]:
            yield _Closing()
        elif tag[1]:
            yield from _tag_pieces(tag[2])
    yield from _text_pieces(visible[position:])


def _tag_pieces(attributes: str) -> Iterator[_Piece]:
    href = _HREF.search(attributes)
    address = _web_address(_with_entities_decoded(href[1] or href[2] or href[3] or "")) if href else None
    if address is not None:
        yield _Opening(address)


def _text_pieces(text: str) -> Iterator[_Piece]:
    yield from (span.url for span in _spans(_with_entities_decoded(text)))


def _with_entities_decoded(text: str) -> str:
    # Without the semicolon it is a parameter: ?a=1&copy=2
    return _ENTITY.sub(lambda entity: html.unescape(entity[0]), text)


def _web_address(target: str) -> str | None:
    web = _WEB.fullmatch(target)
    if web is not None:
        return web[1].strip()
    bare = target.strip().removeprefix("//")
    return bare if bare.lower().startswith("www.") or is_bare_address(bare) else None


def _spans(text: str, *, is_code: bool = False) -> list[UrlSpan]:
    schemed = list(url_spans(text))
    return sorted([*schemed, *bare_addresses(text, schemed, is_code=is_code)])


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable("table")
    # Any target, as it is written: which of them count is decided here.
    parser.validateLink = bool  # type: ignore[method-assign, assignment] # how the library's users set it
    parser.normalizeLink = str  # type: ignore[method-assign, assignment]
    # Addresses are found before emphasis, so that no underscore or asterisk is taken out of them.
    parser.inline.ruler.at("text", _plain_text)
    parser.inline.ruler.before("text", "address", _address)
    return parser


def _address(state: StateInline, silent: bool) -> bool:
    """Make a token of an address that begins here."""
    span = _found_in(state).by_start.get(state.pos)
    if span is None or not state.pos < span.end <= state.posMax:
        return False
    if not silent:
        state.push(_ADDRESS_TOKEN, "", 0).content = span.url
    state.pos = span.end
    return True


def _plain_text(state: StateInline, silent: bool) -> bool:
    """Pass over text up to the next character with a meaning, or the next address."""
    starts = _found_in(state).starts
    following = bisect_right(starts, state.pos)
    end = min([state.posMax, *starts[following : following + 1]])
    mark = state.md.inline.terminator_re.search(state.src, state.pos, end)
    end = mark.start() if mark else end
    if end == state.pos:
        return False
    if not silent:
        state.append_pending(state.src[state.pos : end])
    state.pos = end
    return True


def _found_in(state: StateInline) -> _Found:
    found_by_source: dict[str, _Found] = state.env.setdefault(_FOUND, {})
    found = found_by_source.get(state.src)
    if found is None:
        by_start = {span.start: span for span in _spans(state.src)}
        found = found_by_source[state.src] = _Found(by_start, list(by_start))
    return found
