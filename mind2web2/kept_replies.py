"""Replies kept for another attempt at the same evaluation, where no store of judgments keeps them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any


class KeptReplies:
    """Replies by question; in another attempt each is given out once, in the order in which they came."""

    def __init__(self) -> None:
        # Any: whatever a judge has for a reply.
        self._kept: dict[str, deque[Any]] = {}
        self._to_give: dict[str, deque[Any]] = {}

    def start_over(self) -> None:
        """Begin to give out what was kept."""
        self._to_give, self._kept = self._kept, {}

    def keep(self, question: str, reply: Any) -> None:
        """Keep a reply."""
        self._kept.setdefault(question, deque()).append(reply)

    def take(self, question: str) -> Any:
        """Return a kept reply to the same question, ``None`` if there is none left."""
        waiting = self._to_give.get(question)
        return waiting.popleft() if waiting else None


_current: ContextVar[KeptReplies | None] = ContextVar("mind2web2_kept_replies", default=None)


def current_replies() -> KeptReplies | None:
    """Return where this evaluation's replies are kept, if anywhere."""
    return _current.get()


@contextmanager
def replies_kept() -> Iterator[KeptReplies]:
    """Keep the replies of what runs in the ``with`` block."""
    replies = KeptReplies()
    token = _current.set(replies)
    try:
        yield replies
    finally:
        _current.reset(token)
