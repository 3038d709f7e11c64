"""What asking takes, whether or not anything comes of it: requests, tokens, and why some were tried again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from mind2web2.llm_client.chat import TokenUsage

_REASONS_SHOWN = 4


@dataclass(slots=True)
class Retries:
    """How often a run has tried a request again, by what was wrong with the try before."""

    reasons: Counter[str] = field(default_factory=Counter)

    def note(self, reason: str) -> None:
        """Count one more request that follows one of no use."""
        self.reasons[reason] += 1

    def in_words(self) -> str:
        """Return how often and why, empty where nothing was tried again."""
        if not self.reasons:
            return ""
        reasons = [f"{reason}: {count}" for reason, count in self.reasons.most_common(_REASONS_SHOWN)]
        more = ["..."] if len(self.reasons) > _REASONS_SHOWN else []
        total = self.reasons.total()
        requests = "1 request" if total == 1 else f"{total} requests"
        return f"{requests} tried again ({', '.join(reasons + more)})"


@dataclass(slots=True)
class Toll:
    """What the requests about one question took.

    Args:
        requests: HTTP requests sent; where no connection came about, none was.
        told: those whose price is known: the server gave the tokens, or an error.
        usages: tokens of each reply that came.
    """

    requests: int = 0
    told: int = 0
    usages: list[TokenUsage] = field(default_factory=list)

    @property
    def usage(self) -> TokenUsage:
        """Return the tokens of all replies together."""
        return sum(self.usages, TokenUsage())

    @property
    def untold(self) -> int:
        """Return how many requests may be billed without anything said of their tokens."""
        return max(self.requests - self.told, 0)


_current: ContextVar[Toll | None] = ContextVar("mind2web2_toll", default=None)


@contextmanager
def toll_counted() -> Iterator[Toll]:
    """Count what is asked in the ``with`` block, also where it ends with an error."""
    toll = Toll()
    token = _current.set(toll)
    try:
        yield toll
    finally:
        _current.reset(token)


def note_toll(requests: int = 0, usage: TokenUsage | None = None, *, told: int = 0) -> None:
    """Count requests, a reply's tokens, and what is known of prices, for whoever wants to know."""
    toll = _current.get()
    if toll is not None:
        toll.requests += requests
        toll.told += told
        if usage is not None:
            toll.usages.append(usage)
