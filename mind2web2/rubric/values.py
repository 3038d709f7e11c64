"""Extracted values compared without a judge.

Pure, and offered to eval scripts by ``eval_toolkit``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import Any, TypeVar

from pydantic import BaseModel

from mind2web2.urls.parts import host_of

Item = TypeVar("Item", bound=BaseModel)

# U+2212 is the minus sign of typographers. Neither the hyphen of "A-10" nor the point of "No.5"
# belongs to the number.
_NUMBER = re.compile(r"(?:(?<!\w)[-+\u2212])?(?:\d+(?:,\d{3})*(?:\.\d+)?|(?<![\w.])\.\d+)")
_DAYS_OF_DEFAULT = (datetime(2000, 1, 1), datetime(2001, 2, 2))


def is_empty(value: Any) -> bool:
    """Tell whether an extracted value is empty; 0 and ``False`` are not."""
    if value is None:
        return True
    if isinstance(value, str):
        return not value.strip()
    if isinstance(value, BaseModel):
        return all(is_empty(getattr(value, name)) for name in type(value).model_fields)
    if isinstance(value, list | tuple | set | frozenset):
        return all(is_empty(item) for item in value)
    return False


def all_given(*values: Any) -> bool:
    """Tell whether none of the values is empty."""
    return not any(is_empty(value) for value in values)


def first_items(items: Sequence[Item], count: int, kind: type[Item]) -> list[Item]:
    """Return the first ``count`` items that are not empty, filled up with empty ones."""
    filled_items = [item for item in items if not is_empty(item)][:count]
    return [*filled_items, *(kind() for _ in range(count - len(filled_items)))]


def shown(value: Any) -> str:
    """Return a value as it stands in a claim; a whole number has no decimals."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else str(value)


def same_value(one: Any, other: Any) -> bool:
    """Tell whether two values are given and equal to the letter."""
    return all_given(one, other) and one == other


def same_text(one: Any, other: Any) -> bool:
    """Tell whether two texts are given and have the same words.

    Case and punctuation do not count.
    """
    return all_given(one, other) and _fold(one) == _fold(other)


def same_number(one: Any, other: Any, within: float | str = 0.0) -> bool:
    """Tell whether two numbers differ by ``within`` at most, such as 0.5 or ``"1%"``.

    A text counts as the one number that stands in it.
    """
    found, wanted = _number(one), _number(other)
    if found is None or wanted is None:
        return False
    if isinstance(within, str):
        within = abs(wanted) * float(within.rstrip("%")) / 100
    # Decimals such as 0.1 + 0.2 are not to fail for their last digit.
    return abs(found - wanted) <= within + 1e-9 * max(abs(found), abs(wanted))


def number_of(text: str) -> float | None:
    """Return the number that a text is, or ``None``."""
    if not _NUMBER.fullmatch(text):
        return None
    number = float(text.replace(",", "").replace("\u2212", "-"))
    return int(number) if number.is_integer() else number


def total(values: Iterable[Any]) -> float | None:
    """Return the sum of numbers, ``None`` where one is missing."""
    numbers = [_number(value) for value in values]
    known = [number for number in numbers if number is not None]
    if len(known) == len(numbers):
        return sum(known)
    return None


def same_date(one: Any, other: Any) -> bool:
    """Tell whether two texts are given and name the same day."""
    found, wanted = _day(one), _day(other)
    return found is not None and found == wanted


def at_least(value: Any, bound: Any) -> bool:
    """Tell whether two numbers are given, and the first is no less than the second."""
    found, least = _number(value), _number(bound)
    return found is not None and least is not None and found >= least - 1e-9 * abs(least)


def at_most(value: Any, bound: Any) -> bool:
    """Tell whether two numbers are given, and the first is no more than the second."""
    return at_least(bound, value)


def is_day(text: str) -> bool:
    """Tell whether a text names a day."""
    return _day(text) is not None


def is_before(one: Any, other: Any) -> bool:
    """Tell whether two texts name days, and the first is the earlier one."""
    found, bound = _day(one), _day(other)
    return found is not None and bound is not None and found < bound


def number_given(items: Iterable[Any]) -> int:
    """Return how many items are not empty."""
    return sum(not is_empty(item) for item in items)


def in_domains(urls: Iterable[str], domains: Iterable[str]) -> list[str]:
    """Return the addresses on these domains or on names below them."""
    ends = tuple(f".{host_of(domain.strip('.')) or domain}" for domain in domains)
    return [url for url in urls if f".{host_of(url)}".endswith(ends)]


def all_different(values: Iterable[Any]) -> bool:
    """Tell whether all values are given and no two are the same text."""
    listed = list(values)
    folded = [_fold(value) for value in listed]
    return bool(listed) and all_given(*listed) and len(set(folded)) == len(folded)


def is_new(value: Any, earlier: Iterable[Any]) -> bool:
    """Tell whether a value is given and is none of the earlier ones."""
    return not is_empty(value) and _fold(value) not in {_fold(other) for other in earlier}


def _fold(value: Any) -> str:
    plain = unicodedata.normalize("NFKC", shown(value)).casefold()
    words = re.findall(r"\w+", plain)
    return " ".join(words) or plain.strip()


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return float(value)
    numbers = _NUMBER.findall(str(value))
    return number_of(numbers[0]) if len(numbers) == 1 else None


def _day(value: Any) -> date | None:
    from dateutil import parser  # type: ignore[import-untyped]  # ships no types

    if is_empty(value):
        return None
    try:
        # A text that names no full date takes parts from the default: the two then differ.
        days = {parser.parse(shown(value), default=default).date() for default in _DAYS_OF_DEFAULT}
    except (ValueError, OverflowError):
        return None
    return days.pop() if len(days) == 1 else None
