"""A value that a page still has in another form: in words, by a magnitude, in a range, as a sum."""

from __future__ import annotations

import re
from itertools import combinations

from mind2web2.plugin import (
    NUMBER_WORDS,
    Fact,
    facts_in,
)
from mind2web2_trust.probe.passages import sentences

_SCALES = {"dozen": 12, "hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9}
# "1.2 km" is "1,200 m".
_SCALES |= {"k": 1000, "km": 1000, "kg": 1000, "mio": 10**6, "bn": 10**9, "mrd": 10**9}
_SCALE = re.compile(rf"[ \u00a0\u202f-]?({'|'.join(_SCALES)})\b", re.IGNORECASE)
_NUMBER_WORD = rf"(?:an?|one|{'|'.join([*NUMBER_WORDS, *_SCALES])})"
_IN_WORDS = re.compile(rf"\b{_NUMBER_WORD}(?:[ -]+(?:and )?{_NUMBER_WORD})*\b", re.IGNORECASE)
_TO = r"(?:st|nd|rd|th)?\s*(?:to|until|and|[-\u2013])\s*"
_FIRST_DAY = re.compile(rf"(\d\d?){_TO}$")
_LAST_DAY = re.compile(rf"{_TO}(\d\d?)\b")
_MONTH_AND_DAY = re.compile(r"-(\d\d)-(\d\d)$")
# More numbers in one sentence are a table's.
_MOST_PARTS = 8


def says_otherwise(text: str, claim: str, fact: Fact) -> bool:
    """Tell whether a text has a number or date of a claim in a form that is no such fact."""
    if fact.kind == "date":
        short_year = f"[\u2018\u2019']{fact.value[2:4]}\\b"
        return _has_day_in_range(text, fact.value) or re.search(short_year, text) is not None
    amount = _amount_of(claim, fact)
    spelled = {_spelled(words) for words in _IN_WORDS.findall(text) if " " in words or "-" in words}
    return bool(amount) and (amount in spelled or _has_amount(text, amount, fact.value))


def _amount_of(text: str, fact: Fact) -> float:
    """Return the amount of a number in a text with the magnitude behind it; 0 of a time."""
    scale = _SCALE.match(text, fact.end)
    number = 0 if ":" in fact.value else float(fact.value)
    return number * (_SCALES[scale[1].lower()] if scale else 1)


def _has_amount(text: str, amount: float, value: str) -> bool:
    """Tell whether numbers are an amount by their magnitude, or add up to it in a sentence."""
    for sentence in sentences(text):
        part = text[sentence.start : sentence.end]
        facts = [fact for fact in facts_in(part, "number") if fact.value != value]
        numbers = [_amount_of(part, fact) for fact in facts]
        pairs = combinations(numbers, 2) if len(numbers) <= _MOST_PARTS else ()
        if amount in (*numbers, sum(numbers), *map(sum, pairs)):
            return True
    return False


def _spelled(words: str) -> int:
    """Return the number that words such as "one hundred and ninety-seven" name."""
    total = part = 0
    for word in re.findall(rf"\b{_NUMBER_WORD}\b", words.lower()):
        if word == "hundred":
            part = max(part, 1) * 100
        elif word in _SCALES:
            total, part = total + max(part, 1) * _SCALES[word], 0
        else:
            part += NUMBER_WORDS.get(word, 1)
    return total + part


def _has_day_in_range(text: str, date: str) -> bool:
    """Tell whether a text has a range of days, such as "6 to 8 September", with a date in it."""
    wanted = _MONTH_AND_DAY.search(date)
    for fact in facts_in(text, "date") if wanted else ():
        end = _FIRST_DAY.search(text[: fact.start]) or _LAST_DAY.match(text, fact.end)
        day = _MONTH_AND_DAY.search(fact.value)
        if wanted and end and day and day[1] == wanted[1]:
            first, last = sorted((int(day[2]), int(end[1])))
            if first <= int(wanted[2]) <= last:
                return True
    return False
