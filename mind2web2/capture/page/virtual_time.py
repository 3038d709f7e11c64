"""Virtual time of a page: its timers run ahead while no response is pending.

Pages render late because they wait for responses or for timers. The browser's virtual time (DevTools
protocol, ``Emulation.setVirtualTimePolicy``) stands still while a request of the page is pending and jumps
from timer to timer while none is: seconds of a page's time pass in milliseconds of ours, and a response that
is slow is waited for, not guessed at.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from mind2web2.capture.page.isolated_world import send

if TYPE_CHECKING:
    from patchright.async_api import CDPSession

log = logging.getLogger(__name__)

# Chromium lets timers run in one go; higher values let a page that never rests take longer turns.
_MAX_TASK_STARVATION = 100_000


class PageClock:
    """Runs the virtual time of one page. Between calls of ``advance`` its timers stand still."""

    def __init__(self, session: CDPSession) -> None:
        self._session = session
        self._expired = asyncio.Event()
        session.on("Emulation.virtualTimeBudgetExpired", self._on_expired)

    async def advance(self, page_time_s: float, limit_s: float) -> bool:
        """Let so many seconds of the page's time pass, pending responses included, for ``limit_s`` at most.

        Returns:
            Whether all of it passed; otherwise a request is still pending, and timers have run all the same.
        """
        self._expired.clear()
        if await self._run("pauseIfNetworkFetchesPending", page_time_s, limit_s):
            return True
        # A response does not come. The timers run without it.
        await self._run("advance", page_time_s, 1.0)
        return False

    async def _run(self, policy: str, page_time_s: float, limit_s: float) -> bool:
        await send(
            self._session,
            "Emulation.setVirtualTimePolicy",
            policy=policy,
            budget=page_time_s * 1000,
            maxVirtualTimeTaskStarvationCount=_MAX_TASK_STARVATION,
        )
        try:
            async with asyncio.timeout(limit_s):
                await self._expired.wait()
        except TimeoutError:
            return False
        return True

    def _on_expired(self, _event: Any) -> None:
        self._expired.set()
