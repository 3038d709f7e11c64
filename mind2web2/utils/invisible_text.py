"""Invisible characters: those that have no use in a text are shown as marks.

People cannot see them, but models read them. The judge sees that something was there, but not its
content, which no reader of the page could see. They are kept where languages need them.
"""

from __future__ import annotations

import re

# Tags and the rest of plane 14 that is never drawn, without the variation selectors in it. Whole
# sentences can be written in them; the only use that is left to them are the flags of England,
# Scotland and Wales.
_TAGS = "\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
# Chinese characters are one each; a byte can be hidden in every other one.
_IDEOGRAPHIC_SELECTORS = "\U000e0100-\U000e01ef"
_FLAGS = "".join(
    f"{'|' if code != 'gbeng' else ''}{''.join(chr(0xE0000 + ord(letter)) for letter in code)}\U000e007f"
    for code in ("gbeng", "gbsct", "gbwls")
)
_IDEOGRAPHS = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# Characters that are used in ones and twos: joiners, breaks, marks of direction, fillers,
# selectors.
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
_MAX_COMBINING = 8
# Scripts that set joiners, selectors and marks of direction inside of words, or that join with
# fillers.
_JOINED = (
    f"{_RIGHT_TO_LEFT}\u0900-\u0fff\u1000-\u109f\u1100-\u11ff\u1700-\u18af\u1900-\u1aaf\u1b00-\u1c4f"
    "\u1cd0-\u1cff\u2d30-\u2d7f\u3130-\u318f\ua840-\uabff\ud7b0-\ud7ff\uffa0-\uffdc"
    "\U00010a00-\U00011fff\U00013000-\U0001345f\U0001bc00-\U0001bcaf\U0001d100-\U0001d1ff"
)
# Characters that can be an emoji, and those that make it one or join it to the next.
_SYMBOLS = "\u00a9\u00ae\u203c\u2049\u2100-\u214f\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
_EMOJI = f"[{_SYMBOLS}][\ufe0e\ufe0f]?+\u200d?+"
# So many letters, each with something unseen behind it, are not an accident of typesetting.
_FEWEST_SPREAD = 5
# Neither are so many such places so near to each other: unseen are more than one character in
# forty.
_FEWEST_STREWN = 8
_WIDEST_GAP = 40
_SOFT_HYPHEN = "\u00ad"
_BREAK = "\u200b"
# NEL is missing because it ends a line. The others remain from text in the wrong encoding, or
# control a terminal.
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
    f"(?<![{_SYMBOLS}{_SELDOM_SEEN}{_JOINED}])(?!\ufe0f\u20e3)(?>(?:{_STRAY})+)"
    f"(?:(?>{_SEEN}{{1,{_WIDEST_GAP}}})(?>(?:{_STRAY})+)){{{_FEWEST_STREWN - 1},}}"
)
_SEEN_OR_STRAYS = re.compile(f"(?P<seen>{_SEEN})|(?P<strays>(?>(?:{_STRAY})+))")
# As systems for addresses and calls give it out.
_COPIED_NUMBER = re.compile("[\u202a\u202d\u2066][+(]?[0-9][0-9 \u00a0()./-]{1,30}[\u202c\u2069]")
_FLOOD = re.compile(f"[{_COMBINING}]{{{_MAX_COMBINING + 1},}}")
_HAS_RIGHT_TO_LEFT = re.compile(f"[{_RIGHT_TO_LEFT}]")
# Without letters that run to the left, an embedding to the left can only make a text look like
# another.
_OVERRIDE = re.compile(f"\u202e|\u202d(?=[^\n\u202c]*[{_RIGHT_TO_LEFT}])")
_OVERRIDE_IN_LATIN = re.compile("[\u202b\u202e\u2067]")
_UNSEEN = re.compile(f"[{_INVISIBLE}]")
_EMOJI_OR_UNSEEN = re.compile(f"(?P<seen>{_EMOJI})|[{_INVISIBLE}]")
_OVERRIDE_MARK = "[text direction override]"


def make_visible(text: str) -> str:
    """Return the text with marks in place of invisible characters that have no use there.

    Kept are single joiners, breaks, marks of direction and selectors as languages and emoji need
    them.
    """
    if _CONTROL.search(text):
        # So that no terminal obeys them either.
        text = _CONTROL.sub(_picture, text)
    if text.isascii() or not _CANDIDATE.search(text):
        return text
    text = _HIDDEN.sub(_mark_run, text)
    text = _FLOOD.sub(_mark_flood, text)
    text = _SPREAD.sub(_mark_spread, text)
    text = _STREWN.sub(_mark_strewn, text)
    # Once more: removed characters may have separated marks.
    text = _FLOOD.sub(_mark_flood, text)
    override = _OVERRIDE if _HAS_RIGHT_TO_LEFT.search(text) else _OVERRIDE_IN_LATIN
    return override.sub(_OVERRIDE_MARK, text)


def without_unseen(text: str) -> str:
    """Return the text without invisible characters, to search it for words."""
    return text if text.isascii() else _UNSEEN.sub("", text)


def hidden_runs(text: str) -> list[str]:
    """Return the runs of invisible characters that ``make_visible`` replaces by a mark."""
    if text.isascii() or not _CANDIDATE.search(text):
        return []
    return [run[0] for run in _HIDDEN.finditer(text) if run.lastgroup is None]


def read_tags(run: str) -> str:
    """Return the ASCII text that tag characters in a run stand for."""
    return "".join(
        chr(ord(character) - 0xE0000) for character in run if 0xE0020 <= ord(character) <= 0xE007E
    )


def read_selectors(run: str) -> str:
    """Return the text whose bytes variation selectors in a run stand for, as far as it is ASCII."""
    codes = [ord(character) for character in run]
    values = [
        code - 0xFE00 if 0xFE00 <= code <= 0xFE0F else code - 0xE0100 + 16
        for code in codes
        if 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF
    ]
    return "".join(chr(value) for value in values if 0x20 <= value < 0x7F)


def _mark_run(run: re.Match[str]) -> str:
    if run.lastgroup is not None:
        return run[0]
    return _mark(len(run[0]))


def _mark_spread(run: re.Match[str]) -> str:
    return _with_mark(_EMOJI_OR_UNSEEN, run[0])


def _mark_strewn(run: re.Match[str]) -> str:
    if _is_typeset(run[0]):
        return run[0]
    return _with_mark(_SEEN_OR_STRAYS, run[0])


def _mark_flood(found: re.Match[str]) -> str:
    return f"[{len(found[0])} combining marks]"


def _with_mark(parts: re.Pattern[str], stretch: str) -> str:
    """Return the seen parts of a stretch, and behind them how much there was beside."""
    seen = parts.sub(lambda part: part["seen"] or "", stretch)
    return seen + _mark(len(stretch) - len(seen))


def _strays(stretch: str) -> list[str]:
    return [part["strays"] for part in _SEEN_OR_STRAYS.finditer(stretch) if part["strays"]]


def _is_typeset(stretch: str) -> bool:
    """Tell whether a stretch has only direction marks around numbers, or line breaks."""
    strays = _strays(_COPIED_NUMBER.sub("", stretch))
    return len(strays) < _FEWEST_STREWN or (set(strays) == {_BREAK} and _SOFT_HYPHEN not in stretch)


def _picture(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code >= 0x80:
        return "\ufffd"
    return chr(0x2421 if code == 0x7F else 0x2400 + code)


def _mark(count: int) -> str:
    return f"[{count} invisible character{'' if count == 1 else 's'}]"
