"""Which of some names a misspelled one probably means."""

from __future__ import annotations

from collections.abc import Iterable

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
