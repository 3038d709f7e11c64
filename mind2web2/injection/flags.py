"""What in a text looks as if it were meant for the judge: told to the result's reader; it decides nothing."""

from __future__ import annotations

import base64
import html
import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import islice
from operator import eq
from urllib.parse import unquote

from mind2web2.evidence import Flag, FlagKind
from mind2web2.injection.invisible import (
    hidden_runs,
    longest_flood,
    made_visible,
    read_selectors,
    read_tags,
    spread_runs,
    strewn_runs,
    unseen_in,
    without_unseen,
)
from mind2web2.injection.signs import ANCHORS, address_sign, signs

_EXCERPT_CHARS = 160
_BEFORE_SIGN_CHARS = 40
# What is looked at around an anchor.
_BEFORE_ANCHOR_CHARS = 300
_AFTER_ANCHOR_CHARS = 900
# A search lets no other thread run before it ends.
_LONGEST_WINDOW_CHARS = 20_000
_NORMALIZED_AT_ONCE_CHARS = 20_000

# Fewer may be what is left of a flag that was cut, of a paste or of padding.
_FEWEST_HIDDEN = 8
_FEWEST_PLAIN_HIDDEN = 16
_LONGEST_PERIOD = 4
# Padding may start or end with something else.
_LEAST_REPEATED = 0.9
_FEWEST_PILED = 20

_MOST_ENCODED = 200
_BASE64 = re.compile(r"(?<![\w+/=-])[A-Za-z0-9+/_-]{24,4000}={0,2}(?![\w+/-])")
_HEX = re.compile(r"(?<![0-9A-Fa-f])(?:[0-9A-Fa-f]{2} ?){24,2000}(?![0-9A-Fa-f])")
# The same in one character each, where that is not a piece of text in the wrong encoding.
_ESCAPE = re.compile("\x1b[\\[\\]PX^_()]|(?<![\x80-\xff])(?:\x9b[0-9;?]+[A-Za-z]|\x9d[0-9]+;)")
_RIGHT_TO_LEFT_OVERRIDE = "\u202e"

_LOOK_ALIKE_MARKS = str.maketrans(
    {
        mark: meaning
        for meaning, marks in {
            "<<": "\u00ab\u226a\u27ea\u300a",
            ">>": "\u00bb\u226b\u27eb\u300b",
            "<": "\u2039\u3008\u27e8\u276e\u2770\u02c2",
            ">": "\u203a\u3009\u27e9\u276f\u2771\u02c3",
            '"': "\u201c\u201d\u201e\u201f\u2033",
            "'": "\u2018\u2019",
            "|": "\u00a6\u2502\u2758\u01c0\u2223",
        }.items()
        for mark in marks
    }
)
_LOOK_ALIKE_LETTERS = str.maketrans("авекмнорстухѕіјԁһӏԛԝαεικνορτυχω", "abekmhopctyxsijdhlqwaeikvoptuxw")
_FOREIGN_LETTER = "[\u0370-\u03ff\u0400-\u052f]"
_MIXED_WORD = re.compile(f"[a-z]{_FOREIGN_LETTER}|{_FOREIGN_LETTER}[a-z]")


def flags_of(text: str) -> tuple[Flag, ...]:
    """Return the flags of an answer's, a page's or a claim's text, one a kind; most texts have none."""
    return one_a_kind((*_of_characters(text), *_of_words(readable(text)), *_of_encoded(text)))


def address_flags(url: str) -> tuple[Flag, ...]:
    """Return the flags of a page's address."""
    text = readable(unquote(url).replace("+", " "))
    found = address_sign().search(text)
    asserted = [] if found is None else [_flag("instruction", text, found.start())]
    return one_a_kind((*asserted, *_of_words(text), *flags_of(url)))


def readable(text: str) -> str:
    """Return a text in lower case as a reader takes it: look-alikes and escapes as what they stand for."""
    plain = without_unseen(text)
    if "%20" in plain:
        plain = unquote(plain)
    if "&#" in plain or "&lt;" in plain:
        plain = html.unescape(plain)
    if plain.isascii():
        return plain.lower()
    plain = "".join(_normalized(plain.translate(_LOOK_ALIKE_MARKS))).lower()
    # Only where a word has letters of both kinds: a Russian text stays what it is.
    if _MIXED_WORD.search(plain):
        plain = f"{plain}\n{plain.translate(_LOOK_ALIKE_LETTERS)}"
    return plain


def _normalized(text: str) -> Iterator[str]:
    """Return the text in pieces, each with styled and wide letters as plain ones."""
    for start in range(0, len(text), _NORMALIZED_AT_ONCE_CHARS):
        piece = text[start : start + _NORMALIZED_AT_ONCE_CHARS]
        normalized = unicodedata.normalize("NFKC", piece)
        # Some signs stand for whole phrases; a page of them is left as it is.
        yield normalized if len(normalized) <= 2 * len(piece) else piece


def one_a_kind(flags: Iterable[Flag]) -> tuple[Flag, ...]:
    """Return the first flag of each kind."""
    found: dict[FlagKind, Flag] = {}
    for flag in flags:
        found.setdefault(flag.kind, flag)
    return tuple(found.values())


def _of_characters(text: str) -> Iterator[Flag]:
    runs = hidden_runs(text)
    written = "".join(read_tags(run) or read_selectors(run) for run in runs)
    if len(written) >= _FEWEST_HIDDEN:
        yield Flag(kind="invisible text", excerpt=_shown(written))
    for run in runs:
        if len(run) >= _FEWEST_PLAIN_HIDDEN and not _is_padding(run):
            yield Flag(kind="invisible text", excerpt=f"{len(run)} invisible characters in a row")
            break
    for run in spread_runs(text):
        if len(run) >= _FEWEST_PLAIN_HIDDEN and (_has_word(run) or not _is_mostly_padding(unseen_in(run))):
            yield Flag(kind="invisible text", excerpt=_shown(f"behind each letter of: {without_unseen(run)}"))
            break
    for run in strewn_runs(text):
        if len(run) >= _FEWEST_PLAIN_HIDDEN and not _is_mostly_padding(run):
            yield Flag(kind="invisible text", excerpt=f"{len(run)} invisible characters among the letters")
            break
    if _RIGHT_TO_LEFT_OVERRIDE in text:
        yield _flag("reversed text", text, text.index(_RIGHT_TO_LEFT_OVERRIDE))
    if (piled := longest_flood(text)) >= _FEWEST_PILED:
        yield Flag(kind="piled marks", excerpt=f"{piled} combining marks on one letter")
    if escape := _ESCAPE.search(text):
        yield _flag("terminal escapes", text, escape.start())


def _has_word(run: str) -> bool:
    return any(character.isalnum() for character in run)


def _is_padding(run: str) -> bool:
    """Tell whether a run repeats a few characters, which says nothing."""
    return any(run[period:] == run[:-period] for period in range(1, _LONGEST_PERIOD + 1))


def _is_mostly_padding(run: str) -> bool:
    return any(
        sum(map(eq, run, run[period:])) >= _LEAST_REPEATED * (len(run) - period)
        for period in range(1, _LONGEST_PERIOD + 1)
    )


def _of_words(text: str) -> Iterator[Flag]:
    """Look at a readable text."""
    for window in _windows(text):
        for kind, sign in signs():
            if found := sign.search(window):
                yield _flag(kind, window, found.start())


def _windows(text: str) -> Iterator[str]:
    """Return the surroundings of all anchors, those that touch as one."""
    spans = []
    for anchor in ANCHORS:
        at = text.find(anchor)
        while at != -1:
            spans.append((max(0, at - _BEFORE_ANCHOR_CHARS), at + _AFTER_ANCHOR_CHARS))
            # What stands right behind has most of its surroundings in this window, and all in the next.
            at = text.find(anchor, at + _BEFORE_ANCHOR_CHARS)
    start = end = 0
    for first, last in sorted(spans):
        if first > end or last - start > _LONGEST_WINDOW_CHARS:
            yield text[start:end]
            start = first
        end = max(end, last)
    yield text[start:end]


def _of_encoded(text: str) -> Iterator[Flag]:
    """Look at what is written in base64 or hexadecimal digits."""
    for encoding in (_BASE64, _HEX):
        for run in islice(encoding.finditer(text), _MOST_ENCODED):
            decoded = _decoded(run[0])
            if decoded and any(True for _ in _of_words(readable(decoded))):
                yield Flag(kind="encoded instruction", excerpt=_shown(decoded))
                return


def _decoded(run: str) -> str | None:
    try:
        if _HEX.fullmatch(run):
            return bytes.fromhex(run).decode()
        digits = run.rstrip("=").replace("-", "+").replace("_", "/")
        return base64.b64decode(digits + "=" * (-len(digits) % 4)).decode()
    except ValueError:
        return None


def _flag(kind: FlagKind, text: str, at: int) -> Flag:
    return Flag(kind=kind, excerpt=_shown(text[max(0, at - _BEFORE_SIGN_CHARS) :]))


def _shown(text: str) -> str:
    """Return the beginning of a text as one line that does no harm where it is printed."""
    line = " ".join(made_visible(text[:_EXCERPT_CHARS]).split())
    return line if len(line) <= _EXCERPT_CHARS else f"{line[: _EXCERPT_CHARS - 3]}..."
