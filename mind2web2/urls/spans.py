"""Where the web addresses of a running text begin and end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from mind2web2.urls.parts import ascii_host, clean_url, undo_markdown_escapes
from mind2web2.urls.visible import CODE

if TYPE_CHECKING:
    from linkify_it import LinkifyIt  # type: ignore[import-untyped] # it ships no types


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


NEXT_LINE = r"\n[ \t]*(?:>[ \t]?)*"
_BROKEN = re.compile(NEXT_LINE)
# An address in angle brackets may have spaces, or be broken across two lines.
_ANGLED = re.compile(rf"(?<!\\)<([^<>\n]{{1,8000}}|[^\s<>]+{NEXT_LINE}[^\s<>]+)>")


class UrlSpan(NamedTuple):
    """A web address and which part of the text it is."""

    start: int
    end: int
    url: str


def joined(written: str) -> str:
    """Return an address as it is meant: not broken across lines, and without escapes."""
    return clean_url(_BROKEN.sub("", written))


def url_spans(text: str) -> Iterator[UrlSpan]:
    """Yield the spans that begin with a web scheme or ``www.``, in order; not all of them are URLs.

    Sentence punctuation and markup around an address are not part of it. Brackets inside it are, if
    they pair.
    """
    position = 0
    while start := _URL_START.search(text, position):
        angled = _ANGLED.match(text, start.start() - 1) if start.start() else None
        span = UrlSpan(start.start(), angled.end(1), joined(angled[1])) if angled else None
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
# Japanese and Chinese put no space between a sentence and an address in it, nor does code.
_GLUED = re.compile(
    r"`|[\u3005-\u3007\u3040-\u30ff\u3400-\u9fff](?=[A-Za-z0-9])"
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


def bare_addresses(text: str) -> Iterator[UrlSpan]:
    """Yield the addresses without a scheme, in order; in code the clearest only."""
    if "." not in text:
        return
    in_code = bytearray(len(text))
    for code in CODE.finditer(text):
        in_code[code.start() : code.end()] = b"\1" * len(code[0])
    position = 0
    for start, end in _candidates(_GLUED.sub(" ", text)):
        host = _HOST.match(text, start, end) if start >= position else None
        if host is None or text[start - 1 : start] == "\\":
            continue
        has_rest = _REST.match(text, host.end()) is not None
        span = url_span(text, start, host.end()) if has_rest else UrlSpan(*host.span(), host[0])
        if _is_address(host[0], text[host.end() : span.end], bool(in_code[start])):
            position = span.end
            yield span


def is_bare_address(text: str) -> bool:
    """Tell whether the whole text is one address without a scheme."""
    address = next(bare_addresses(text), None)
    return address is not None and address.end - address.start == len(text)


def _candidates(text: str) -> Iterator[tuple[int, int]]:
    cuts = [0, *(run.end() for run in _LONG_RUN.finditer(text)), len(text)]
    for start, end in pairwise(cuts):
        for match in _linkifier().match(text[start:end]) or ():
            if not match.schema:
                yield start + match.index, start + match.last_index


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
