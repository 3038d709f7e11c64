"""Values that people write as text, on the command line and in settings files.

Each function returns the value, or raises ``ValueError`` with a sentence that repeats the text and
says what is expected.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from numbers import Real
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from mind2web2.errors import UsageError
from mind2web2.utils.names import did_you_mean

Value = TypeVar("Value")

_MAX_PORT = 65_535
# Three years; clocks and timers of the system end somewhere above.
_MAX_SECONDS = 1e8


def non_empty(text: str) -> str:
    """Return a text that is not empty. A variable that nobody set gives an empty one."""
    if not text.strip():
        raise ValueError("the value is empty: give one, or leave the option out")
    return text


def positive_int(text: str) -> int:
    """Return a whole number of at least 1."""
    return _whole(text, "a whole number of at least 1", least=1)


def count(text: str) -> int:
    """Return a whole number, 0 included."""
    return _whole(text, "a whole number")


def port_number(text: str) -> int:
    """Return the number of a port, 0 for a free one."""
    return _whole(text, f"a port from 0 (a free one) to {_MAX_PORT}", most=_MAX_PORT)


def _whole(text: str, kind: str, least: int = 0, most: float = math.inf) -> int:
    if not text.isascii() or not text.isdecimal() or not least <= int(text) <= most:
        raise ValueError(f"{text!r} is not {kind}")
    return int(text)


def positive_seconds(text: str) -> float:
    """Return a positive number of seconds."""
    return _amount(
        text,
        "a positive number of seconds",
        least=sys.float_info.min,
        most=_MAX_SECONDS,
    )


def positive_dollars(text: str) -> float:
    """Return a positive number of dollars."""
    return _amount(text.removeprefix("$"), "a positive number of dollars", least=sys.float_info.min)


def temperature(text: str) -> float:
    """Return a sampling temperature."""
    return _amount(text, "a temperature from 0 to 2", most=2)


def share(text: str) -> float:
    """Return a score, or a difference of scores."""
    return _amount(text, "a score from 0 to 1", most=1)


def _amount(text: str, kind: str, least: float = 0, most: float = sys.float_info.max) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not least <= value <= most:
        raise ValueError(f"{text!r} is not {kind}")
    return value


def local_path(text: str) -> Path:
    """Return the path of a file or folder on this machine.

    ``Path`` would make a folder of a URL's scheme.
    """
    if "://" in text:
        # The URL is not repeated: it may hold a password.
        raise ValueError("takes a path on this machine, not a URL")
    return Path(text)


def browser_address(text: str) -> str:
    """Return the address of a running browser."""
    return _address(text, ("http", "https", "ws", "wss"), "http://127.0.0.1:9222")


def web_address(text: str) -> str:
    """Return the address of a web server."""
    return _address(text, ("http", "https"), "https://archive.example")


def is_address(text: str, schemes: tuple[str, ...]) -> bool:
    """Tell whether a text is an address with one of these schemes and a host."""
    try:
        address = urlsplit(text)
        return address.scheme in schemes and bool(address.hostname) and address.port != 0
    except ValueError:
        return False


def _address(text: str, schemes: tuple[str, ...], example: str) -> str:
    if not is_address(text, schemes):
        raise ValueError(f"{text!r} is not an address such as {example}")
    return text


def one_of(choices: tuple[str, ...]) -> Callable[[str], str]:
    """Return the function that accepts these words, and names the nearest one to others."""

    def check_choice(text: str) -> str:
        if text in choices:
            return text
        cure = did_you_mean(text, choices, f"choose from {', '.join(choices)}")
        raise ValueError(f"invalid choice: {text!r}: {cure}")

    return check_choice


def parsed(name: str, parse: Callable[[Any], Value], written: object) -> Value:
    """Return a value as an option reads it.

    Raises:
        UsageError: the option does not take it; the text begins with the name.
    """
    try:
        return parse(written)
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from error


def check_text(name: str, value: object) -> None:
    """Make sure that a value is a text, and not that of a variable that nobody set.

    Raises:
        UsageError: it is none, or empty.
    """
    if not isinstance(value, str):
        raise UsageError(f"{name} is {value!r}: give a text")
    parsed(name, non_empty, value)


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
    parsed(name, parse, str(value))
