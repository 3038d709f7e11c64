"""The web addresses that a text shows or a markdown text links to, in reading order."""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from pydantic import BaseModel

from mind2web2.urls.parts import (
    ANGLE_BRACKETS,
    ascii_host,
    clean_url,
    lookup_key,
    split_url,
    undo_markdown_escapes,
)
from mind2web2.utils.api_misuse import checked_call

if TYPE_CHECKING:
    from linkify_it import LinkifyIt  # type: ignore[import-untyped] # it ships no types
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token
    from markdown_it.utils import EnvType


_URL_START = re.compile(
    r"(?<![A-Za-z0-9])https?\\?:\\?/\\?/|(?<![A-Za-z0-9@./-])www\.(?=\w)", re.IGNORECASE
)
_ESCAPED = r"\\[!-/:-@\[-`{-~]"
# White space, quotes, table bars and punctuation that no browser writes into a URL end it, and so
# does a comma before the next URL of a list. Chat programs put marks from the private use area
# behind URLs, and Japanese goes on after one without a space. Brackets are weighed one by one.
_URL_BOUNDARY = re.compile(
    r"(?P<mark>(?>(?:\[\^?\d{1,3}\]|\[\^[^\[\]\s]{1,40}\]){1,9})(?![=&\w]))"  # of a citation or footnote
    r'|\\[<>"`|]'
    rf"|(?P<bracket>\\?[()\[\]{{}}])|(?P<skip>{_ESCAPED})|(?P<quote>')(?![A-Za-z0-9])"
    r'|[\s<>"`|\\\u200b\ufeff\u2022\u2026\u2018-\u201f\u00ab\u00bb\u2014\u2190-\u21ff\u3001-\u3003\u3008-\u301f'
    r"\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65\ue000-\uf8ff]"
    r"|(?<=[A-Za-z0-9])[\u3041-\u3096]"
    r"|&(?:quot|[lg]t|nbsp|apos|#3[49]|#x2[27]);"
    r"|[,;](?=https?://|www\.)",
    re.IGNORECASE,
)
_OPENING = {")": "(", "]": "[", "}": "{"}
_TRAILING_PUNCTUATION = ".,;:!?'*\\([{"
_EMPHASIS = "_~"


class UrlSpan(NamedTuple):
    """A web address and which part of the text it is."""

    start: int
    end: int
    url: str


def url_spans(text: str) -> Iterator[UrlSpan]:
    """Yield the spans that begin with a web scheme or ``www.``, in order; not all of them are URLs.

    Sentence punctuation and markup around an address are not part of it. Brackets inside it are, if
    they pair.
    """
    position = 0
    while start := _URL_START.search(text, position):
        angled = ANGLE_BRACKETS.match(text, start.start() - 1) if start.start() else None
        span = UrlSpan(start.start(), angled.end(1), clean_url(angled[1])) if angled else None
        span = span or url_span(text, start.start(), start.end())
        yield span
        position = max(span.end, start.end())


def url_span(text: str, start: int, host: int) -> UrlSpan:
    """Return the address that begins at ``start`` and has its host at ``host``."""
    before = text[start - 1 : start] if start else ""
    raw = text[start : _end_of_url(text, host, is_quoted=before == "'")]
    # "_https://..._" is emphasis; without the mark in front the URL itself may end in it.
    raw = raw.rstrip(_TRAILING_PUNCTUATION + (before if before in _EMPHASIS else ""))
    return UrlSpan(start, start + len(raw), undo_markdown_escapes(raw).replace("&amp;", "&"))


def _end_of_url(text: str, start: int, is_quoted: bool) -> int:
    """Return where the URL ends: at a boundary, or at a closing bracket that it did not open."""
    open_brackets: list[str] = []
    for mark in _URL_BOUNDARY.finditer(text, start):
        if mark["skip"] or (mark["quote"] and not is_quoted):
            continue
        if not mark["bracket"]:
            return mark.start()
        bracket = mark["bracket"][-1]
        if bracket not in _OPENING:
            open_brackets.append(bracket)
        elif open_brackets and open_brackets[-1] == _OPENING[bracket]:
            open_brackets.pop()
        else:
            return mark.start()
    return len(text)


_HOST = re.compile(r"[^\s/?#:]+")
_REST = re.compile(r"[/?#]|:\d")
# Japanese and Chinese put no space between a sentence and an address in it.
_GLUED = re.compile(
    r"[\u3005-\u3007\u3040-\u30ff\u3400-\u9fff](?=[A-Za-z0-9])"
    r"|(?<=[A-Za-z0-9])[\u3005-\u3007\u3040-\u30ff\u3400-\u9fff]"
)
_FILE_SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,5}\Z")
# The finder's time grows with the square of a text without spaces. No host is as long as this,
# and where an address ends is found out in the whole text.
_LONG_RUN = re.compile(r"\S{2000}(?=\S)")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Hosts are believed without a path if they end in these. Missing are those that are as often words,
# units, file suffixes or attributes in code: in, is, it, me, name, py, rs, sh ...
_WELL_KNOWN = _words(
    "com org net edu gov mil int info biz io ai co dev app eu museum travel ac ad ae af ag ar au "
    "az ba bd bg bh bn bo br bt bw ca ch ci cl cm cn cr cu cy cz de dk ec ee eg es et fi fj fr ge "
    "gh gr gt hk hn hr hu ie il iq ir jo jp ke kg kr kw kz lb lk lt lu lv ma mk mn mt mu mv mx mz "
    "na ng ni np nz om pa pe pf ph pk pr pt pw qa ro ru rw sa sb sd se sg si sk sn sv sy tg th tj "
    "tn tr tt tw tz ua ug uk uy uz ve vn ye za zm zw"
)
_WELL_KNOWN_IN_CODE = _words("com org net edu gov")
_ALSO_FILE_SUFFIXES = _words("ai app cc do in md ml mov ms pl pm ps py rs sh so st zip")
# Package names read like hosts turned around (com.example.app), and "co.uk" is not yet a host.
_NO_FIRST_LABELS = _words("com org net edu gov io co")
_NO_HOSTS = _words("asp.net vb.net ado.net java.io java.net")
# Nobody can register this ending, and examples often use it.
_RESERVED_TOP_LEVEL = "example"


def bare_addresses(
    text: str, known: Iterable[UrlSpan] = (), *, is_code: bool = False
) -> Iterator[UrlSpan]:
    """Yield further addresses without a scheme, in order; in code the clearest only."""
    if "." not in text:
        return
    position = 0
    for start, end in _candidates(_mask(text, known)):
        host = _HOST.match(text, start, end) if start >= position else None
        if host is None or text[start - 1 : start] == "\\":
            continue
        has_rest = _REST.match(text, host.end()) is not None
        span = url_span(text, start, host.end()) if has_rest else UrlSpan(*host.span(), host[0])
        if _is_address(host[0], text[host.end() : span.end], is_code):
            position = span.end
            yield span


def is_bare_address(text: str) -> bool:
    """Tell whether the whole text is one address without a scheme."""
    found = next(bare_addresses(text), None)
    return found is not None and found.end - found.start == len(text)


def _candidates(text: str) -> Iterator[tuple[int, int]]:
    cuts = [0, *(run.end() for run in _LONG_RUN.finditer(text)), len(text)]
    for start, end in pairwise(cuts):
        for match in _linkifier().match(text[start:end]) or ():
            if not match.schema:
                yield start + match.index, start + match.last_index


def _mask(text: str, known: Iterable[UrlSpan]) -> str:
    """Return a text of the same length in which nothing known is to be found."""
    pieces, position = [], 0
    for span in known:
        pieces += [text[position : span.start], " " * (span.end - span.start)]
        position = max(position, span.end)
    pieces.append(text[position:])
    masked = "".join(pieces)
    return masked if masked.isascii() else _GLUED.sub(" ", masked)


def _is_address(host: str, rest: str, is_code: bool) -> bool:
    labels = host.split(".")
    top_level = labels[-1]
    # "It opened.In 2020", "M.Sc." and "ASP.NET" are not hosts; "EXAMPLE.ORG" is one.
    if top_level != top_level.lower() and (host != host.upper() or top_level == "NET"):
        return False
    top_level = ascii_host(top_level) or ""
    if top_level not in _top_levels() or host.lower() in _NO_HOSTS:
        return False
    if is_code:
        is_clear = top_level in _WELL_KNOWN_IN_CODE
        return is_clear and (bool(rest) or _is_host_alone(host, labels))
    if rest:
        return not (top_level in _ALSO_FILE_SUFFIXES and _FILE_SUFFIX.search(rest))
    is_clear = top_level in _WELL_KNOWN or top_level.startswith("xn--")
    has_domain = len(labels) > 2 and not labels[-2].isdigit()
    return (is_clear or has_domain) and _is_host_alone(host, labels)


def _is_host_alone(host: str, labels: list[str]) -> bool:
    # "Booking.com" is a company; who means the site writes "booking.com".
    return host in (host.lower(), host.upper()) and labels[0].lower() not in _NO_FIRST_LABELS


@cache
def _top_levels() -> frozenset[str]:
    from linkify_it.tlds import TLDS  # type: ignore[import-untyped] # it ships no types

    return frozenset({_RESERVED_TOP_LEVEL, *map(str.lower, TLDS)})


@cache
def _linkifier() -> LinkifyIt:
    from linkify_it import LinkifyIt

    # Any word may end a host here and is looked up afterwards: a pattern of 1,500 words would be
    # slow.
    return LinkifyIt().tlds([r"[^\W\d_]{2,24}"])


# The parser's time may grow with the square of the text's length, so long texts are parsed in
# parts. It may also take twenty microseconds a character: text beyond any answer's length is only
# searched.
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
_BROKEN_IN_LINK = re.compile(
    rf"\]\((https?://[^\s()<>]+){_NEXT_LINE}([^\s()<>\"'\[\]]+)\)", re.IGNORECASE
)
# No valid link, but a name that looks like a document's counts as one.
_SPACED_IN_LINK = re.compile(
    r"\]\((https?://[^\s()<>]*(?: "
    r"[^\s()<>\"']+)+\.(?:pdf|html?|docx?|xlsx?|pptx?|csv|txt|jpe?g|png))\)",
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
    """Yield the addresses in links, pictures, text, tables, code and HTML, as written.

    The name of a link counts only where the link leads nowhere on the web. A markdown picture
    counts, being shown as evidence; a picture in HTML does not, being the logo of whatever exported
    the text.
    """
    position = 0
    while position < min(len(markdown), _MAX_PARSED_CHARS):
        end = _end_of_part(markdown, position)
        yield from _addresses_of_part(_join_broken_addresses(markdown[position:end]))
        position = end
    yield from (span.url for span in _spans(markdown[position:]))


def _end_of_part(text: str, start: int) -> int:
    limit = start + _MAX_PART_CHARS
    if limit >= len(text):
        return len(text)
    cuts = (text.rfind(mark, start + 1, limit) for mark in ("\n\n", "\n", " "))
    return next((cut for cut in cuts if cut > start), limit)


def _join_broken_addresses(text: str) -> str:
    text = _BROKEN_IN_ANGLES.sub(r"<\1\2>", text)
    text = _BROKEN_IN_LINK.sub(r"](\1\2)", text)
    return _SPACED_IN_LINK.sub(r"](<\1>)", text)


def _addresses_of_part(text: str) -> Iterator[str]:
    environment: EnvType = {}
    lines_left = dict(enumerate(_NEWLINE.split(text)))
    pieces_by_line: list[tuple[int, list[_Piece]]] = []
    line = 0
    for token in _parser().parse(text, environment):
        line = token.map[0] if token.map else line
        if pieces := _pieces(token):
            pieces_by_line.append((line, pieces))
        if token.map and token.type in _READ_TOKENS:
            _leave_out(lines_left, token.map)
    for definition in (
        *environment.get("references", {}).values(),
        *environment.get("duplicate_refs", ()),
    ):
        address = _web_address(definition["href"])
        pieces_by_line.append((definition["map"][0], [address] if address else []))
        _leave_out(lines_left, definition["map"])
    # The parser drops content that is nested too deep.
    pieces_by_line += [
        (number, [span.url for span in _spans(line_text)])
        for number, line_text in lines_left.items()
    ]
    for _, pieces in sorted(pieces_by_line, key=lambda entry: entry[0]):
        yield from _shown_addresses(pieces)


def _leave_out(lines: dict[int, str], extent: Sequence[int]) -> None:
    for number in range(extent[0], extent[1]):
        lines.pop(number, None)


def _shown_addresses(pieces: Sequence[_Piece]) -> Iterator[str]:
    hidden: list[str] | None = None
    for piece in pieces:
        if isinstance(piece, _Closing):
            hidden = None
            continue
        address = piece.address if isinstance(piece, _Opening) else piece
        if hidden is not None:
            hidden.append(address)
            continue
        yield address
        if isinstance(piece, _Opening):
            hidden = []
    # A link that never ends has no name.
    yield from hidden or ()


def _pieces(token: Token) -> list[_Piece]:
    if token.type == "inline":
        return [piece for child in token.children or () for piece in _inline_pieces(child)]
    if token.type in ("fence", "code_block"):
        return [span.url for span in _spans(token.content, is_code=True)]
    if token.type == "html_block":
        return list(_html_pieces(token.content))
    return []


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
    address = _web_address(_decode_entities(href[1] or href[2] or href[3] or "")) if href else None
    if address is not None:
        yield _Opening(address)


def _text_pieces(text: str) -> Iterator[_Piece]:
    yield from (span.url for span in _spans(_decode_entities(text)))


def _decode_entities(text: str) -> str:
    # Without the semicolon it is a parameter: ?a=1&copy=2
    return _ENTITY.sub(lambda entity: html.unescape(entity[0]), text)


def _web_address(target: str) -> str | None:
    web = _WEB.fullmatch(target)
    if web is not None:
        return web[1].strip()
    bare = target.strip().removeprefix("//")
    if bare.lower().startswith("www.") or is_bare_address(bare):
        return bare
    return None


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
    span = _spans_of(state).by_start.get(state.pos)
    if span is None or not state.pos < span.end <= state.posMax:
        return False
    if not silent:
        state.push(_ADDRESS_TOKEN, "", 0).content = span.url
    state.pos = span.end
    return True


def _plain_text(state: StateInline, silent: bool) -> bool:
    """Pass over text up to the next character with a meaning, or the next address."""
    starts = _spans_of(state).starts
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


def _spans_of(state: StateInline) -> _Found:
    found_by_source: dict[str, _Found] = state.env.setdefault(_FOUND, {})
    found = found_by_source.get(state.src)
    if found is None:
        by_start = {span.start: span for span in _spans(state.src)}
        found = found_by_source[state.src] = _Found(by_start, list(by_start))
    return found


class URLs(BaseModel):
    """A list of URLs, as an extraction asks for it."""

    urls: list[str]


@checked_call
def regex_find_urls(text: str) -> list[str]:
    """Return the web addresses that ``cache`` finds in a text, each once, with a scheme."""
    found = []
    for url in markdown_addresses(text):
        if lookup_key(url) is not None:
            scheme = "" if split_url(url).scheme else "https://"
            found.append(scheme + url)
    return list(dict.fromkeys(found))
