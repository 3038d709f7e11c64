"""Turns at hosts, so that captures stay polite."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

# A host may ask for any length of rest; past this the page is given up for now.
MAX_REST_S = 60.0
DEFAULT_REST_S = 5.0


@dataclass(slots=True)
class _Host:
    turns: asyncio.Semaphore
    rests_until: float = 0.0


class HostTurns:
    """Gives out turns at hosts, a few of each at once."""

    def __init__(self, max_pages_per_host: int) -> None:
        self._max_pages_per_host = max_pages_per_host
        self._hosts: dict[str, _Host] = {}

    @asynccontextmanager
    async def turn(self, host: str) -> AsyncIterator[None]:
        """Wait for a turn at the host, and until it has rested, and hold the turn."""
        state = self._state_of(host)
        async with state.turns:
            # Other captures may have extended the pause.
            while (rest_s := state.rests_until - time.monotonic()) > 0:  # noqa: ASYNC110 - not polling
                await asyncio.sleep(rest_s)
            yield

    def rest(self, host: str, seconds: float | None) -> None:
        """Send the host no request for so long, ``DEFAULT_REST_S`` where it named no time."""
        wanted_s = DEFAULT_REST_S if seconds is None else min(seconds, MAX_REST_S)
        state = self._state_of(host)
        state.rests_until = max(state.rests_until, time.monotonic() + wanted_s)

    def _state_of(self, host: str) -> _Host:
        return self._hosts.setdefault(host, _Host(asyncio.Semaphore(self._max_pages_per_host)))
