"""Check values from Python callers by the functions that read them as options."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real

from mind2web2.errors import UsageError
from mind2web2.utils import values


def check_text(name: str, value: object) -> None:
    """Make sure that a value is a text, and not that of a variable that nobody set.

    Raises:
        UsageError: it is none, or empty.
    """
    if not isinstance(value, str):
        raise UsageError(f"{name} is {value!r}: give a text")
    try:
        values.non_empty(value)
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from None


def check_number(name: str, value: object, parse: Callable[[str], float]) -> None:
    """Make sure that a value is ``None`` or a number that the option takes.

    Args:
        parse: reads the option; its ``ValueError`` says what it takes.

    Raises:
        UsageError: it is another value.
    """
    if value is None:
        return
    if not isinstance(value, Real) or isinstance(value, bool):
        raise UsageError(f"{name} is {value!r}: give a number")
    try:
        parse(str(value))
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from None
