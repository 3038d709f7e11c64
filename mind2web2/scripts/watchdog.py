"""Stopping an eval script that never gives way to others: an endless loop, a ``time.sleep``."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Self

from mind2web2.scheduling.scheduler import ScriptBlockedError, blocks_noted, stop_script
from mind2web2.scripts.load import MODULE_PREFIX

__all__ = ["LONGEST_BLOCK_S", "LoopGuard", "ScriptBlockedError", "blocks_noted"]

# A script that lets nobody else run for so long never will.
LONGEST_BLOCK_S = 60.0


class LoopGuard:
    """While entered, lets no eval script block the event loop for longer than ``limit_s``.

    Works by an alarm signal that the running loop keeps putting off, so that it reaches Python code that
    loops as well as calls that wait. Has to be entered in the main thread; scripts only are interrupted.
    Systems without such alarms (Windows) go unguarded.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._ticking: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        if not hasattr(signal, "setitimer"):
            return self
        self._previous = signal.signal(signal.SIGALRM, self._on_alarm)
        # Armed at once: the task that puts it off first runs when the caller gives way.
        signal.setitimer(signal.ITIMER_REAL, self._limit_s)
        self._ticking = asyncio.create_task(self._put_off())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._ticking is None:
            return
        self._ticking.cancel()
        with suppress(asyncio.CancelledError):
            await self._ticking
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._previous)

    async def _put_off(self) -> None:
        while True:
            signal.setitimer(signal.ITIMER_REAL, self._limit_s)
            await asyncio.sleep(self._limit_s / 4)

    def _on_alarm(self, _number: int, frame: FrameType | None) -> None:
        signal.setitimer(signal.ITIMER_REAL, self._limit_s)
        while frame is not None:
            if str(frame.f_globals.get("__name__")).startswith(MODULE_PREFIX):
                stop_script(f"it blocked all other work for {self._limit_s:g} s")
            frame = frame.f_back
