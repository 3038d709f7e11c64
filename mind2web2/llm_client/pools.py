"""One connection pool for each event loop: a connection dies with the loop that opened it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Generic, NamedTuple, Protocol, TypeVar


class _Closable(Protocol):
    async def close(self) -> None: ...


Pool = TypeVar("Pool", bound=_Closable)


class _Opened(NamedTuple, Generic[Pool]):
    pool: Pool
    # Runs from the pool's opening to its closing.
    lifetime: AsyncGenerator[None, None]


class PoolPerLoop(Generic[Pool]):
    """Gives the running loop its pool, so that one client serves several ``asyncio.run`` in turn.

    A pool that nobody closed is closed with its loop, as ``asyncio.run`` closes asynchronous generators last.

    Args:
        build: makes a pool; called at once, so that bad settings are found at once.
    """

    def __init__(self, build: Callable[[], Pool]) -> None:
        self._build = build
        self._unused: Pool | None = build()
        self._opened: dict[asyncio.AbstractEventLoop, _Opened[Pool]] = {}

    def here(self) -> Pool:
        """Return the running loop's pool."""
        loop = asyncio.get_running_loop()
        opened = self._opened.get(loop) or self._open(loop)
        return opened.pool

    async def close(self) -> None:
        """Close the running loop's pool."""
        opened = self._opened.get(asyncio.get_running_loop())
        if opened is not None:
            await opened.lifetime.aclose()
        elif self._unused is not None:
            await self._unused.close()

    def _open(self, loop: asyncio.AbstractEventLoop) -> _Opened[Pool]:
        pool = self._unused or self._build()
        self._unused = None
        lifetime = self._lifetime(loop, pool)
        with suppress(StopIteration):
            # Up to its yield it waits for nothing.
            lifetime.__anext__().send(None)
        opened = self._opened[loop] = _Opened(pool, lifetime)
        return opened

    async def _lifetime(self, loop: asyncio.AbstractEventLoop, pool: Pool) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            del self._opened[loop]
            await pool.close()
