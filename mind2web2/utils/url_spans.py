"""Where web addresses begin and end in running text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from mind2web2.utils.url_parts import clean_url, undo_markdown_escapes

ANGLE_BRACKETS = re.compile(r"(?<!\\)<([^<>\n]{1,8000})>")

_URL_START = re.compile(r"(?<![A-Za-z0-9])https?\\?:\\?/\\?/|(?<![A-Za-z0-9@./-])www\.(?=\w)", re.IGNORECASE)
_ESCAPED = r"\\[!-/:-@\[-`{-~]"
# White space, quotes, table bars and punctuation that no browser writes into a URL end it, and so does a
# comma before the next URL of a list. Chat programs put marks from the private use area behind URLs, and
# Japanese goes on after one without a space. Brackets are weighed one by one.
_URL_BOUNDARY = re.compile(
    r"(?P<mark>(?:\[\^?\d{1,3}\]|\[\^[^\[\]\s]{1,40}\]){1,9}+(?![=&\w]))"  # of a citation or footnote
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
    """Yield what begins with a web scheme or ``www.``, in order; not all of it need be a URL.

    Sentence punctuation and markup around an address are no part of it; brackets inside are if they pair.
    """
    position = 0
    while start := _URL_START.search(text, position):
        angled = ANGLE_BRACKETS.match(text, start.start() - 1) if start.start() else None
        span = UrlSpan(start.start(), angled.end(1), clean_url(angled[1])) if angled else None
        span = span or url_span(text, start.start(), start.end())
        yield span
        position = max(span.end, start.end())


def url_span(text: str, start: int, host: int) -> UrlSpan:
    """Return the address that begins at ``start`` and has its host, or what follows it, at ``host``."""
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
