"""Blind questions: the value that a judge read without seeing the claimed one, compared with it.

Pure.
"""

from __future__ import annotations

import re
import unicodedata

from mind2web2.rubric.values import same_date, same_number, same_text
from mind2web2.rubric.verdicts import BlindQuestion
from mind2web2.utils.facts import facts_of_kind

_WORD = re.compile(r"\w+")
# Words of names that one spelling has and another has not.
_IN_NAMES = frozenset(
    _WORD.findall("the of and de la le der die das von van mr mrs ms dr prof sir")
)


def is_claimed(question: BlindQuestion, reading: str | None) -> bool:
    """Tell whether the value that was read is the claimed one."""
    if reading is None or not reading.strip():
        return False
    claimed = question.value
    if question.compare == "number":
        return same_number(reading, claimed, question.within)
    if question.compare == "date":
        return same_date(reading, claimed) or _has_date(reading, claimed)
    if question.compare == "name":
        return same_name(reading, claimed)
    return same_text(reading, claimed)


def _has_date(reading: str, claimed: str) -> bool:
    """Tell whether a date says what the claim says: a day says its month and its year as well."""
    dates = facts_of_kind(claimed, "date")
    if len(dates) != 1:
        return False
    wanted = dates[0].value
    values = [fact.value for fact in facts_of_kind(reading, "date")]
    return any(value == wanted or value.startswith(f"{wanted}-") for value in values)


def same_name(one: str, other: str) -> bool:
    """Tell whether two names may be spellings of one: initials and middle names may be left out.

    Case, accents, titles and punctuation do not count.
    """
    fewer, more = sorted((_name_words(one), _name_words(other)), key=len)
    left = list(more)
    for word in fewer:
        match = next((each for each in left if _is_word_of(word, each)), None)
        if match is None:
            return False
        left.remove(match)
    return any(len(word) > 1 for word in set(fewer) & set(more))


def _is_word_of(word: str, other: str) -> bool:
    shorter, longer = sorted((word, other), key=len)
    return word == other or (len(shorter) == 1 and longer.startswith(shorter))


def _name_words(name: str) -> list[str]:
    plain = unicodedata.normalize("NFKD", name).casefold()
    letters = "".join(sign for sign in plain if not unicodedata.combining(sign))
    return [word for word in _WORD.findall(letters) if word not in _IN_NAMES]
