"""How many judge requests of one answer may run at the same time, and how many votes a claim has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from mind2web2.rubric.verdicts import ALWAYS

# More than any provider accepts at once; bounds the pending verifications of one script.
MOST_PENDING = 256


@dataclass(frozen=True, slots=True)
class ExecutionOptions:
    """How many judge requests of one answer may run at once; the last one may change verdicts.

    Args:
        sequential: one verification, and one source page, after another.
        most_pending: deferred verifications of one script; the next one waits.
        lookahead: verifications behind undecided gates are asked at once.
        votes: how often the judge votes on a claim.
    """

    sequential: bool = False
    most_pending: int = MOST_PENDING
    lookahead: bool = False
    votes: str = ALWAYS


_DEFAULT_OPTIONS = ExecutionOptions()
_options: ContextVar[ExecutionOptions] = ContextVar(
    "mind2web2_execution_options", default=_DEFAULT_OPTIONS
)


def current_options() -> ExecutionOptions:
    """Return the options of the running evaluation; the default outside of any run."""
    return _options.get()


@contextmanager
def execution_options(options: ExecutionOptions) -> Iterator[None]:
    """Set the options for the ``with`` block and all tasks that it starts."""
    token = _options.set(options)
    try:
        yield
    finally:
        _options.reset(token)
