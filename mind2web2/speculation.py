"""What judging ahead of time costs: requests whose verdict turned out to be skipped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class Requests:
    """Judge requests and their price.

    Args:
        sent: requests that were sent, answered or not.
        answered: judgments that came back.
        cost_usd: of those; ``None`` once a model's price is not known.
    """

    sent: int = 0
    answered: int = 0
    cost_usd: float | None = 0.0

    def note_answer(self, cost_usd: float | None) -> None:
        """Count a judgment that came back."""
        self.answered += 1
        self.cost_usd = None if self.cost_usd is None or cost_usd is None else self.cost_usd + cost_usd

    def add(self, other: Requests) -> None:
        """Count others as well."""
        self.sent += other.sent
        self.answered += other.answered
        known = self.cost_usd is not None and other.cost_usd is not None
        self.cost_usd = (self.cost_usd or 0.0) + (other.cost_usd or 0.0) if known else None


_ahead: ContextVar[Requests | None] = ContextVar("mind2web2_asked_ahead", default=None)
_dropped: ContextVar[Requests | None] = ContextVar("mind2web2_dropped", default=None)


def asked_ahead() -> Requests | None:
    """Return where the requests of the running verification are counted, if it is judged ahead of time."""
    return _ahead.get()


@contextmanager
def counted_ahead(requests: Requests) -> Iterator[None]:
    """Count the requests of what starts within the ``with`` block."""
    token = _ahead.set(requests)
    try:
        yield
    finally:
        _ahead.reset(token)


@contextmanager
def dropped_counted(requests: Requests) -> Iterator[None]:
    """Count what is dropped in the ``with`` block, and in all that it starts."""
    token = _dropped.set(requests)
    try:
        yield
    finally:
        _dropped.reset(token)


def note_dropped(requests: Requests) -> None:
    """Count requests whose verdict turned out to be skipped."""
    dropped = _dropped.get()
    if dropped is not None:
        dropped.add(requests)
