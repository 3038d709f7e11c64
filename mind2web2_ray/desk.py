"""The actor that hears from all calls once a second, and divides places and budget among them."""

from __future__ import annotations

import time
from dataclasses import dataclass

# A call that asks for dollars gets this share of what is left, or what its request needs.
_LEASE_SHARE = 0.02


@dataclass(frozen=True)
class DeskNews:
    """The news that the calls have told the desk.

    Args:
        judgments: those that the run has not stored, each as JSON.
        silent_s: seconds since the last message of each call, by the call's name.
    """

    judgments: list[str]
    silent_s: dict[str, float]


class Desk:
    """Divides a run's places and dollars among its calls.

    Args:
        places: judge requests at once, of all calls together.
        budget_usd: ``None`` for no limit.
    """

    def __init__(self, places: int, budget_usd: float | None) -> None:
        self._places = places
        self._left_usd = budget_usd
        self._heard_s: dict[str, float] = {}
        self._judgments: list[str] = []
        self._stored = 0

    def hear(self, call: str, judgments: list[str]) -> int:
        """Take a call's new judgments, and return how many requests it may have in flight."""
        self._heard_s[call] = time.monotonic()
        self._judgments += judgments
        return max(1, self._places // len(self._heard_s))

    def lease(self, missing_usd: float) -> float:
        """Return dollars that a call may spend beside those that it has, 0 if none are left."""
        assert self._left_usd is not None, "calls ask only in a run with a budget"
        leased = min(self._left_usd, max(missing_usd, self._left_usd * _LEASE_SHARE))
        self._left_usd -= leased
        return leased

    def give_back(self, unspent_usd: float) -> None:
        """Take dollars that a call has leased and not spent."""
        if self._left_usd is not None:
            self._left_usd += unspent_usd

    def end(self, call: str) -> None:
        """Forget a call, which has ended or is lost."""
        self._heard_s.pop(call, None)

    def news(self, stored: int) -> DeskNews:
        """Return what the calls have told beside the first judgments, which the run has stored.

        So none is lost if the run is stopped before it has stored what it was told.
        """
        now_s = time.monotonic()
        del self._judgments[: stored - self._stored]
        self._stored = stored
        silent = {call: now_s - heard_s for call, heard_s in self._heard_s.items()}
        return DeskNews(list(self._judgments), silent)
