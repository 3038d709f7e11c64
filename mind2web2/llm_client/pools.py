"""One connection pool for each event loop: a connection dies with the loop that opened it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary


class _Closable(Protocol):
    async def close(self) -> None: ...


Pool = TypeVar("Pool", bound=_Closable)


class PoolPerLoop(Generic[Pool]):
    """Gives the running loop its pool, so that one client serves several ``asyncio.run`` in turn.

    Args:
        build: makes a pool; called at once, so that bad settings are found at once.
    """

    def __init__(self, build: Callable[[], Pool]) -> None:
        self._build = build
        self._unused: Pool | None = build()
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, Pool] = WeakKeyDictionary()

    def here(self) -> Pool:
        """Return the running loop's pool."""
        loop = asyncio.get_running_loop()
        if loop not in self._pools:
            self._pools[loop] = self._unused or self._build()
            self._unused = None
        return self._pools[loop]

    async def close(self) -> None:
        """Close the running loop's pool; pools of loops that have ended hold no connection any more."""
        pool = self._pools.pop(asyncio.get_running_loop(), self._unused)
        if pool is not None:
            await pool.close()
