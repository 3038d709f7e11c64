"""Names of folders and files: checked, sorted and listed; the stamp of logs and results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TypeGuard

from mind2web2.errors import UsageError

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
    if (
        not isinstance(value, str)
        or not value.strip(".")
        or "/" in value
        or "\\" in value
        or "\0" in value
    ):
        return False
    return len(value.encode("utf-8", "replace")) <= MAX_NAME_BYTES


def natural_key(name: str) -> tuple[tuple[tuple[int, int, str], ...], str]:
    """Return a sort key by which ``answer_2`` comes before ``answer_10``."""
    parts = re.split(r"([0-9]+)", name)
    return tuple(_part_key(part) for part in parts if part), name


def _part_key(part: str) -> tuple[int, int, str]:
    # Digits are compared by length, then as text: int() refuses the very long ones.
    digits = part.lstrip("0")
    if part[0] in "0123456789":
        return (0, len(digits), digits)
    return (1, 0, part)


def name_list(names: Iterable[str]) -> str:
    """Return names in natural order for one line of a message, shortened when there are many."""
    return first_names(sorted(names, key=natural_key), MAX_NAMES_SHOWN) or "none"


def first_names(names: Sequence[str], most: int) -> str:
    """Return the first names for one line, and how many more there are."""
    shown = ", ".join(names[:most])
    hidden = len(names) - most
    return f"{shown} and {hidden} more" if hidden > 0 else shown


def stamp_now() -> str:
    """Return the local time as ``YYYYMMDD_HHMMSS``, for names of logs and results."""
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


_LIKENESS = 0.6


def nearest_name(name: str, known: Iterable[str], likeness: float = _LIKENESS) -> str | None:
    """Return the known name that is spelled most like this one; ``None`` where none is near.

    Args:
        likeness: of two names that are near, from 0 to 1.
    """
    from difflib import get_close_matches  # late: needed for a message only

    found = get_close_matches(name, list(known), n=1, cutoff=likeness)
    return found[0] if found else None


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return the end of a message: a question for the nearest name, or other words."""
    near = nearest_name(name, known)
    return otherwise if near is None else f"did you mean {near}?"
