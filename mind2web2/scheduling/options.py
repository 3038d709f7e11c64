"""How an evaluation goes about its judge requests: one after another, or together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

# More than any provider is asked at once; bounds what one script can pile up.
MOST_UNDER_WAY = 256


@dataclass(frozen=True, slots=True)
class Pace:
    """What may be asked before the program gets there; no choice changes a verdict.

    Args:
        sequential: everything in program order: one verification, and one source page, after another.
        in_own_process: the process runs nothing but this answer's script.
        most_under_way: verifications of one script that nobody waits for; the next one waits.
    """

    sequential: bool = False
    most_under_way: int = MOST_UNDER_WAY
    in_own_process: bool = False


_DEFAULT = Pace()
_current: ContextVar[Pace] = ContextVar("mind2web2_pace", default=_DEFAULT)


def current_pace() -> Pace:
    """Return the pace that the running evaluation keeps; the default outside of any run."""
    return _current.get()


@contextmanager
def pace_kept(pace: Pace) -> Iterator[None]:
    """Keep a pace while the ``with`` block runs, in all tasks that it starts."""
    token = _current.set(pace)
    try:
        yield
    finally:
        _current.reset(token)
