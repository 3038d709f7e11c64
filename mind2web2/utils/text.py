"""Functions on text and JSON: Unicode, dollars, syntax trees, dates, names, fields, invisible characters."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeGuard

from mind2web2.errors import UsageError


def is_unicode_text(text: str) -> bool:
    """Tell whether the text can be written as UTF-8, that is, holds no lone surrogate."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def as_unicode_text(text: str) -> str:
    """Return the text with lone surrogates as U+FFFD, and pairs of them as the character they mean."""
    if is_unicode_text(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


_SHOWN_FULLY_FROM_USD = 0.0001


def dollars(cost_usd: float) -> str:
    """Return an amount with as many digits as tell something."""
    if math.isnan(cost_usd):
        return "unknown"
    if cost_usd >= 10:
        return f"${cost_usd:,.2f}"
    if 0 < cost_usd < _SHOWN_FULLY_FROM_USD:
        return f"${dollars_as_given(float(f'{cost_usd:.1e}'))}"
    return f"${cost_usd:.4f}"


def dollars_as_given(amount_usd: float) -> str:
    """Return an amount with the digits that it was given in, without a dollar sign."""
    from decimal import Decimal  # slow to load

    written = f"{Decimal(repr(amount_usd)):f}"
    return written.rstrip("0").rstrip(".") if "." in written else written


MAX_NAME_BYTES = 200  # file systems stop at 255, and result files add a stamp and a suffix
MAX_NAMES_SHOWN = 10


def check_name(kind: str, name: str) -> str:
    """Return ``name`` if it is safe as one folder or file name below a root.

    Raises:
        UsageError: it is empty, too long, begins with a dot, or could lead out of its folder.
    """
    fault = _fault(name)
    if fault is not None:
        raise UsageError(f"{kind} {name[:MAX_NAME_BYTES]!r} {fault}: give its plain folder name")
    return name


def is_file_name(value: object) -> TypeGuard[str]:
    """Tell whether a value from a file can be the name of one file or folder, however odd."""
    if not isinstance(value, str) or not value.strip(".") or "/" in value or "\\" in value or "\0" in value:
        return False
    return len(value.encode("utf-8", "replace")) <= MAX_NAME_BYTES


def natural_key(name: str) -> tuple[tuple[tuple[int, int, str], ...], str]:
    """Return a sort key by which ``answer_2`` comes before ``answer_10``."""
    parts = re.split(r"([0-9]+)", name)
    return tuple(_part_key(part) for part in parts if part), name


def _part_key(part: str) -> tuple[int, int, str]:
    # Digits are compared by length, then as text: int() refuses the very long ones.
    digits = part.lstrip("0")
    return (0, len(digits), digits) if part[0] in "0123456789" else (1, 0, part)


def name_list(names: Iterable[str]) -> str:
    """Return names in natural order for one line of a message, shortened when there are many."""
    ordered = sorted(names, key=natural_key)
    shown = ", ".join(ordered[:MAX_NAMES_SHOWN])
    hidden = len(ordered) - MAX_NAMES_SHOWN
    return f"{shown} and {hidden} more" if hidden > 0 else shown or "none"


def stamp_now() -> str:
    """Return the local time as ``YYYYMMDD_HHMMSS``, which begins the name of every log and result."""
    return datetime.now().strftime("%Y%m%d_%H%M%S")


def _fault(name: str) -> str | None:
    if not name.strip():
        return "is empty"
    if name.startswith("."):
        return "begins with a dot"
    if ".." in name or "/" in name or "\\" in name:
        return "contains '..', '/' or '\\'"
    if not name.isprintable():
        return "contains a character that cannot be printed"
    if len(name.encode("utf-8")) > MAX_NAME_BYTES:
        return f"is longer than {MAX_NAME_BYTES} bytes"
    return None


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait, ``None`` where it gives none that can be read.

    Args:
        headers: looked up by names in lower case: ``retry-after-ms``, or ``retry-after`` in seconds or as a
            date.
    """
    milliseconds = number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "").strip()
    seconds = number(value)
    return _seconds_until(value) if seconds is None else seconds


def number(text: str) -> float | None:
    """Return a number that is finite and not negative."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _seconds_until(date: str) -> float | None:
    from email.utils import parsedate_to_datetime  # slow to load

    try:
        moment = parsedate_to_datetime(date)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, (moment - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return None


# Fields of JSON files, whatever other programs wrote there


def mapping(value: object) -> Mapping[str, Any]:
    """Return a field that should be an object, empty where it is none."""
    return value if isinstance(value, dict) else {}


def mappings(value: object) -> list[Mapping[str, Any]]:
    """Return the objects of a field that should be a list of them."""
    return [item for item in items(value) if isinstance(item, dict)]


def items(value: object) -> list[Any]:
    """Return a field that should be a list, empty where it is none."""
    return value if isinstance(value, list) else []


# Characters that people cannot see but models read are replaced by marks, or kept where languages need them:
# the judge sees that something was there, but not its content, which no reader of the page could see.

# Tags and the rest of plane 14 that is never drawn, without the variation selectors in it. Whole sentences
# can be written in them; the only use that is left to them are the flags of England, Scotland and Wales.
_TAGS = "\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
# Of Chinese characters, one each; a byte can be hidden in every other one.
_IDEOGRAPHIC_SELECTORS = "\U000e0100-\U000e01ef"
_FLAGS = "".join(
    f"{'|' if code != 'gbeng' else ''}{''.join(chr(0xE0000 + ord(letter)) for letter in code)}\U000e007f"
    for code in ("gbeng", "gbsct", "gbwls")
)
_IDEOGRAPHS = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# Characters that are used in ones and twos: joiners, breaks, marks of direction, fillers, selectors.
_ZERO_WIDTH = "\u200b-\u200d\u2060-\u2064\ufeff"
_SELDOM_SEEN = (
    f"{_ZERO_WIDTH}\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200e\u200f\u202a-\u202e\u2065-\u206f"
    "\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufffb\U00013430-\U00013440\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
)
_INVISIBLE = f"{_SELDOM_SEEN}{_TAGS}{_IDEOGRAPHIC_SELECTORS}"
# Clean text has up to three in a row, such as those that end a direction and join an emoji.
_LONGEST_RUN = 3
_RIGHT_TO_LEFT = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
_COMBINING = (
    "\u0300-\u036f\u0483-\u0489\u064b-\u065f\u0e34-\u0e3a\u0e47-\u0e4e\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff"
    "\ufe20-\ufe2f"
)
_MOST_COMBINING = 8
# Scripts that set joiners, selectors and marks of direction inside of words, or that join with fillers.
_JOINED = (
    f"{_RIGHT_TO_LEFT}\u0900-\u0fff\u1000-\u109f\u1100-\u11ff\u1700-\u18af\u1900-\u1aaf\u1b00-\u1c4f"
    "\u1cd0-\u1cff\u2d30-\u2d7f\u3130-\u318f\ua840-\uabff\ud7b0-\ud7ff\uffa0-\uffdc"
    "\U00010a00-\U00011fff\U00013000-\U0001345f\U0001bc00-\U0001bcaf\U0001d100-\U0001d1ff"
)
# Characters that can be an emoji, and those that make it one or join it to the next.
_SYMBOLS = "\u00a9\u00ae\u203c\u2049\u2100-\u214f\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
_EMOJI = f"[{_SYMBOLS}][\ufe0e\ufe0f]?+\u200d?+"
# So many letters, each with something unseen behind it, are no accident of typesetting.
_FEWEST_SPREAD = 5
# Neither are so many such places so near to each other: unseen are more than one character in forty.
_FEWEST_STREWN = 8
_WIDEST_GAP = 40
_SOFT_HYPHEN = "\u00ad"
_BREAK = "\u200b"

# Not NEL, which ends a line. The others are left of text in the wrong encoding, or are orders to a terminal.
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")
_CANDIDATE = re.compile(f"[{_INVISIBLE}{_COMBINING}]")
_HIDDEN = re.compile(
    f"(?P<flag>\U0001f3f4(?:{_FLAGS}))"
    f"|(?P<form>(?<=[{_IDEOGRAPHS}])[{_IDEOGRAPHIC_SELECTORS}](?![{_IDEOGRAPHIC_SELECTORS}]))"
    f"|[{_SELDOM_SEEN}]*[{_TAGS}{_IDEOGRAPHIC_SELECTORS}][{_INVISIBLE}]*"
    f"|[{_SELDOM_SEEN}]{{{_LONGEST_RUN + 1},}}"
)
_SPREAD = re.compile(
    f"(?:[^{_SELDOM_SEEN}{_JOINED}{_SYMBOLS}][{_COMBINING}{_IDEOGRAPHIC_SELECTORS}]{{0,3}}+"
    f"[{_SELDOM_SEEN}]{{1,{_LONGEST_RUN}}}"
    f"|{_EMOJI}[{_SELDOM_SEEN}]{{1,{_LONGEST_RUN}}}"
    f"){{{_FEWEST_SPREAD},}}"
)
# Soft hyphens apart: a text may have one between any two syllables.
_STRAY = f"(?!{_SOFT_HYPHEN})[{_SELDOM_SEEN}]"
# Emoji and keycaps with their selectors and joiners, or any other character.
_SEEN = f"(?>{_EMOJI}|[0-9#*]\ufe0f\u20e3|{_SOFT_HYPHEN}|[^{_SELDOM_SEEN}{_JOINED}{_SYMBOLS}])"
_STREWN = re.compile(
    f"(?<![{_SYMBOLS}{_SELDOM_SEEN}{_JOINED}])(?!\ufe0f\u20e3)(?:{_STRAY})++"
    f"(?:{_SEEN}{{1,{_WIDEST_GAP}}}+(?:{_STRAY})++){{{_FEWEST_STREWN - 1},}}"
)
_SEEN_OR_STRAYS = re.compile(f"(?P<seen>{_SEEN})|(?P<strays>(?:{_STRAY})++)")
# As systems for addresses and calls give it out.
_COPIED_NUMBER = re.compile("[\u202a\u202d\u2066][+(]?[0-9][0-9 \u00a0()./-]{1,30}[\u202c\u2069]")
_FLOOD = re.compile(f"[{_COMBINING}]{{{_MOST_COMBINING + 1},}}")
_HAS_RIGHT_TO_LEFT = re.compile(f"[{_RIGHT_TO_LEFT}]")
# Without letters that run to the left, an embedding to the left can only make a text look like another.
_OVERRIDE = re.compile(f"\u202e|\u202d(?=[^\n\u202c]*[{_RIGHT_TO_LEFT}])")
_OVERRIDE_IN_LATIN = re.compile("[\u202b\u202e\u2067]")
_UNSEEN = re.compile(f"[{_INVISIBLE}]")
_EMOJI_OR_UNSEEN = re.compile(f"(?P<seen>{_EMOJI})|[{_INVISIBLE}]")

_OVERRIDE_MARK = "[text direction override]"


def made_visible(text: str) -> str:
    """Return the text with marks in place of invisible characters that have no use there.

    Kept are single joiners, breaks, marks of direction and selectors as languages and emoji need them.
    """
    if _CONTROL.search(text):
        # So that no terminal obeys them either.
        text = _CONTROL.sub(_picture, text)
    if text.isascii() or not _CANDIDATE.search(text):
        return text
    text = _HIDDEN.sub(_marked_run, text)
    text = _FLOOD.sub(_marked_flood, text)
    text = _SPREAD.sub(_marked_spread, text)
    text = _STREWN.sub(_marked_strewn, text)
    # Once more: removed characters may have separated marks.
    text = _FLOOD.sub(_marked_flood, text)
    override = _OVERRIDE if _HAS_RIGHT_TO_LEFT.search(text) else _OVERRIDE_IN_LATIN
    return override.sub(_OVERRIDE_MARK, text)


def without_unseen(text: str) -> str:
    """Return the text without invisible characters, to search it for words."""
    return text if text.isascii() else _UNSEEN.sub("", text)


def hidden_runs(text: str) -> list[str]:
    """Return the runs of invisible characters that ``made_visible`` replaces by a mark."""
    if text.isascii() or not _CANDIDATE.search(text):
        return []
    return [found[0] for found in _HIDDEN.finditer(text) if found.lastgroup is None]


def read_tags(run: str) -> str:
    """Return the ASCII text that tag characters in a run stand for."""
    return "".join(chr(ord(character) - 0xE0000) for character in run if 0xE0020 <= ord(character) <= 0xE007E)


def read_selectors(run: str) -> str:
    """Return the text whose bytes variation selectors in a run stand for, as far as it is ASCII."""
    codes = [ord(character) for character in run]
    values = [
        code - 0xFE00 if 0xFE00 <= code <= 0xFE0F else code - 0xE0100 + 16
        for code in codes
        if 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF
    ]
    return "".join(chr(value) for value in values if 0x20 <= value < 0x7F)


def _marked_run(found: re.Match[str]) -> str:
    return found[0] if found.lastgroup is not None else _mark(len(found[0]))


def _marked_spread(found: re.Match[str]) -> str:
    return _with_mark(_EMOJI_OR_UNSEEN, found[0])


def _marked_strewn(found: re.Match[str]) -> str:
    return found[0] if _is_typeset(found[0]) else _with_mark(_SEEN_OR_STRAYS, found[0])


def _marked_flood(found: re.Match[str]) -> str:
    return f"[{len(found[0])} combining marks]"


def _with_mark(parts: re.Pattern[str], stretch: str) -> str:
    """Return the seen parts of a stretch, and behind them how much there was beside."""
    seen = parts.sub(lambda part: part["seen"] or "", stretch)
    return seen + _mark(len(stretch) - len(seen))


def _strays(stretch: str) -> list[str]:
    return [part["strays"] for part in _SEEN_OR_STRAYS.finditer(stretch) if part["strays"]]


def _is_typeset(stretch: str) -> bool:
    """Tell whether a stretch has but marks of direction around numbers, or places where lines may break."""
    strays = _strays(_COPIED_NUMBER.sub("", stretch))
    return len(strays) < _FEWEST_STREWN or (set(strays) == {_BREAK} and _SOFT_HYPHEN not in stretch)


def _picture(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code >= 0x80:
        return "\ufffd"
    return chr(0x2421 if code == 0x7F else 0x2400 + code)


def _mark(count: int) -> str:
    return f"[{count} invisible character{'' if count == 1 else 's'}]"
