"""Limits within an eval script's process.

The script may not block its event loop, nor log or ask without end.
"""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import NoReturn, Self

# Far more than any rubric has; a script that asks for more loops without end.
MAX_QUESTIONS = 10_000


class ScriptBlockedError(BaseException):
    """An eval script would never end; the error is raised in the script.

    It is not an ``Exception``, so that the script's own handlers do not catch it.
    """


@dataclass
class ScriptStops:
    """Why a script was stopped, whatever it makes of that."""

    reason: str | None = None

    def stop(self, reason: str) -> NoReturn:
        """Stop the script that calls this."""
        self.reason = self.reason or reason
        raise ScriptBlockedError(reason)


class LoopGuard:
    """While entered, stops an eval script that blocks the event loop for longer than ``limit_s``.

    Works by an alarm signal that the running loop keeps putting off, so that it reaches Python code
    that loops as well as calls that wait. Has to be entered in the main thread; scripts only are
    interrupted. Systems without such alarms (Windows) go unguarded.
    """

    def __init__(self, limit_s: float, stops: ScriptStops) -> None:
        self._limit_s = limit_s
        self._stops = stops
        self._ticking: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        if not hasattr(signal, "setitimer"):
            return self
        self._previous = signal.signal(signal.SIGALRM, self._on_alarm)
        # The timer starts at once, because the task that puts it off only runs when the caller
        # gives way.
        signal.setitimer(signal.ITIMER_REAL, self._limit_s)
        self._ticking = asyncio.create_task(self._put_off())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
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
                self._stops.stop(f"it blocked all other work for {self._limit_s:g} s")
            frame = frame.f_back


MODULE_PREFIX = "mind2web2_eval_script_"
