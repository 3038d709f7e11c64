"""The HTTP requests of one question, counted where they are sent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from mind2web2.llm_client.chat import Usage


@dataclass(slots=True)
class SentRequests:
    """The HTTP requests of one question.

    Args:
        requests: those sent over a connection.
        reported: those whose price is known: the server reported the tokens, or an error.
    """

    requests: int = 0
    reported: int = 0
    replies: list[Usage] = field(default_factory=list)

    @property
    def usage(self) -> Usage:
        """Return the usage of all replies together, with the number of requests."""
        unreported = max(self.requests - self.reported, 0)
        return sum(self.replies, Usage(requests=self.requests, unreported_requests=unreported))


_current: ContextVar[SentRequests | None] = ContextVar("mind2web2_sent_requests", default=None)


@contextmanager
def counted_requests() -> Iterator[SentRequests]:
    """Count the requests of the ``with`` block, even if it raises."""
    sent = SentRequests()
    token = _current.set(sent)
    try:
        yield sent
    finally:
        _current.reset(token)


def count_requests(requests: int = 0, usage: Usage | None = None, *, reported: int = 0) -> None:
    """Count requests and a reply's usage in the surrounding ``counted_requests`` block, if there is one."""
    sent = _current.get()
    if sent is not None:
        sent.requests += requests
        sent.reported += reported
        if usage is not None:
            sent.replies.append(usage)
