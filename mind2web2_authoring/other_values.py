"""Other values in place of those of an answer; pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from mind2web2.plugin import FieldShape

# Keys that lead to a value; "*" stands for every item of a list.
FieldPath = tuple[str, ...]
_YEAR = re.compile(r"\b(1\d{3}|20\d\d)\b")
_NUMBER = re.compile(r"\d+")
_FAR, _FAR_YEARS = 50, 60


def texts_in(values: object) -> Iterator[str]:
    """Yield the texts and numbers among values, however deep."""
    if isinstance(values, dict):
        values = list(values.values())
    if isinstance(values, list):
        for value in values:
            yield from texts_in(value)
    elif isinstance(values, str | int | float) and not isinstance(values, bool):
        yield str(values)


def change_values(
    values: dict[str, Any], path: FieldPath, change: Callable[[Any, int], Any]
) -> dict[str, Any]:
    """Return the values with another value at a path, in every item of the lists on the way.

    Args:
        change: gets the value and the number of the value, from 0.
    """
    numbers = count()
    result: dict[str, Any] = _change_at(values, path, lambda value: change(value, next(numbers)))
    return result


def _change_at(value: Any, path: FieldPath, change: Callable[[Any], Any]) -> Any:
    if not path:
        return change(value)
    if path[0] == "*":
        is_list = isinstance(value, list)
        return [_change_at(each, path[1:], change) for each in value] if is_list else value
    if not isinstance(value, dict) or path[0] not in value:
        return value
    return {**value, path[0]: _change_at(value[path[0]], path[1:], change)}


def other_value(shape: FieldShape, value: Any, number: int) -> Any:
    """Return another value of the same kind."""
    if isinstance(value, list):
        return [other_value(shape, each, number * 20 + place) for place, each in enumerate(value)]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return _other_number(value, number)
    if isinstance(value, str) and value.strip():
        return _other_text(shape, value, number)
    return value


def far_value(value: Any, sign: int) -> Any:
    """Return a much smaller value (``sign`` -1) or a much larger one (1).

    The value is a number, or a number in a text.
    """
    if isinstance(value, list):
        return [far_value(each, sign) for each in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        if 1000 <= value <= 2100:
            return value + sign * _FAR_YEARS
        return type(value)(value * _FAR**sign)
    if isinstance(value, str):
        pattern = _YEAR if _YEAR.search(value) else _NUMBER
        return pattern.sub(lambda digits: str(far_value(int(digits[0]), sign)), value, count=1)
    return value


def _other_number(value: float, number: int) -> float:
    is_year = 1000 <= value <= 2100
    return value - 13 - number if is_year else value * 3 + 11 + number


def _other_text(shape: FieldShape, value: str, number: int) -> Any:
    if shape.choices:
        return next((each for each in shape.choices if each != value), value)
    if re.match(r"https?://", value):
        return f"{'/'.join(value.split('/')[:3])}/another-page-{number}"
    pattern = _YEAR if _YEAR.search(value) else _NUMBER
    if pattern.search(value):
        return pattern.sub(lambda digits: str(_other_number(int(digits[0]), number)), value)
    return f"Vardo Quent {number + 1}"
