"""Numbers in the text that cite a source.

They are glued to a word or its full stop, stand behind it, or stand in parentheses.
"""

from __future__ import annotations

import re

from mind2web2.plugins.check.words import COUNTING, NUMBERED, NUMBERING

# Each pattern has the groups "mark" and "numbers".
_NUMBERS = r"(?P<numbers>\d{1,3}(?:[,–-]\s?\d{1,3})*)"
GLUED = re.compile(
    rf"(?<=[.,;:!?)\]\"”’*_a-z。，；！？])(?P<mark>{_NUMBERS})(?=$|[\s|)\]*_\"”]|[.,;:](?:\s|$))",
    re.MULTILINE,
)
SPACED = re.compile(
    r"(?<=[A-Za-zÀ-ÿ)*”\"_])[ "
    rf"\t](?P<mark>{_NUMBERS})(?=\s*[,;:|]|\s*$|\s+(?:and|but|while|whereas|which"
    r"|although|because|is|are|was|were|has|have|had|may|can|that|as|with)\b|\))",
    re.MULTILINE,
)
IN_PARENTHESES = re.compile(
    rf"(?<=[a-zà-ÿ\"”’)])\s?(?P<mark>\({_NUMBERS}\))(?=[.,;:]|\s*$)", re.MULTILINE
)
_CHARS_BEFORE = 40
_PUNCTUATION = '.,;:!?)]"”’*_。，；！？'
_EMPHASIZED = re.compile(r"[a-z.,;:!?)”\"]\**_*$")
_WORDS_IN_PARENTHESES = re.compile(r"[A-Za-z]{2,}\)$|\d{4}\)$")
_YEAR = re.compile(r"\W*(?:1[5-9]|20)\d\d")
_NEXT_SENTENCE = re.compile(r"\s+[\"“(*]*[A-Z]|\s*$|\n")
_LONG_WORD = re.compile(r"(?:^|[\s(“\"])[a-z]{4,}$")
_LAST_WORD = re.compile(r"([^\s(]+)$")
# "Their outer layer 8" has a mark, "in layer 8" has not.
_IS_DESCRIBED = re.compile(r"\b(?:an?|the|its|their|this|our)\s+(?:[\w-]+\s+){1,3}$")


def is_behind_punctuation(mark: re.Match[str]) -> bool:
    """Tell whether a number glued to punctuation is a mark, unlike those of 24.96 and of Fig.2."""
    before = _before(mark)
    if before[-1].islower():
        return False
    word = before.split()[-1]
    body = word.rstrip(_PUNCTUATION)
    if not body:
        return False
    if body[-1].isdigit() and word[-1] in ".,:":
        return _is_behind_number(body, word[-1], mark)
    if word[-1] in "*_":
        return _EMPHASIZED.search(word) is not None
    if word[-1] == ")":
        return _WORDS_IN_PARENTHESES.search(word) is not None
    return not (word[-1] == "." and body.lower().lstrip("([") in NUMBERING)


def _is_behind_number(number: str, sign: str, mark: re.Match[str]) -> bool:
    """Tell whether the sign behind a number ends a clause, and is not a decimal point."""
    after = mark.string[mark.end() : mark.end() + 3]
    is_year = _YEAR.fullmatch(number) is not None
    if sign == ",":
        return is_year and re.match(r"\s+[a-z]", after) is not None
    is_code = re.search(r"[A-Za-z]", number) is not None
    return sign == "." and (is_year or is_code) and _NEXT_SENTENCE.match(after) is not None


def is_glued_to_word(mark: re.Match[str]) -> bool:
    """Tell whether a number is glued to a word of some length."""
    return _LONG_WORD.search(_before(mark)) is not None


def is_behind_word(mark: re.Match[str]) -> bool:
    """Tell whether a number behind a word is a mark: it neither counts nor belongs to a name."""
    before = _before(mark)
    word = _LAST_WORD.search(before)
    body = word[1].strip('*_"”’)') if word else ""
    if word is None or not body or body[-1].isdigit() or body.lower() in COUNTING:
        return False
    is_name = body[:1].isupper() and body[1:].islower() and before[-1].isalnum()
    is_numbered = body.lower() in NUMBERED and not _IS_DESCRIBED.search(before[: word.start()])
    return not is_name and not is_numbered


def _before(mark: re.Match[str]) -> str:
    return mark.string[max(0, mark.start() - _CHARS_BEFORE) : mark.start()]
