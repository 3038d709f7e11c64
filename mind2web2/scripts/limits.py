"""Limits within an eval script's process.

The script may not block its event loop, nor log or ask without end.
"""

from __future__ import annotations

import asyncio
import resource
import signal
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any, NoReturn, Self

from mind2web2.utils.api_misuse import script_api

# Real scripts take a few seconds of processor time and less than 100 MB, most of it for Python
# itself.
DEFAULT_MEMORY_BYTES = 1024**3
DEFAULT_PROCESSOR_S = 600
# A script that blocks the event loop for so long never releases it.
LONGEST_BLOCK_S = 60.0
# A full disk costs every answer of the run.
MAX_FILE_BYTES = 1024**3
_CPU_GRACE_S = 5
# Far more than any rubric has; a script that asks for more loops without end.
MAX_QUESTIONS = 10_000


@dataclass(frozen=True, slots=True)
class ScriptLimits:
    """Limits for one answer's evaluation; a process that exceeds one is killed.

    Args:
        memory_bytes: of the process, on Linux. Allocations do not fail at the limit: a script might
            catch the error and return another score.
        processor_s: seconds of processor time.
        block_s: a script that blocks the event loop for so long is interrupted.
    """

    memory_bytes: int = DEFAULT_MEMORY_BYTES
    processor_s: int = DEFAULT_PROCESSOR_S
    block_s: float = LONGEST_BLOCK_S

    def apply_to_this_process(self) -> None:
        """Set the system's limits for this process and for all that it starts."""
        # First the signal that names the reason, then SIGKILL.
        _lower(resource.RLIMIT_CPU, self.processor_s, self.processor_s + _CPU_GRACE_S)
        _lower(resource.RLIMIT_FSIZE, MAX_FILE_BYTES, MAX_FILE_BYTES)
        # Python ignores it, so that the write raises an error that a script may catch.
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        # A core file would take hundreds of megabytes.
        _lower(resource.RLIMIT_CORE, 0, 0)


def _lower(kind: int, limit: int, last_limit: int) -> None:
    _, hard_limit = resource.getrlimit(kind)
    if hard_limit == resource.RLIM_INFINITY or hard_limit > last_limit:
        resource.setrlimit(kind, (limit, last_limit))


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


@script_api
class DualSemaphore:
    """The limits that a script receives.

    ``async with`` on the pair itself holds neither permit: every request inside enters its own
    limit.
    """

    def __init__(self, webpage_semaphore: Any, llm_semaphore: Any) -> None:
        self.webpage = webpage_semaphore
        self.llm = llm_semaphore

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None


class LoopGuard:
    """While entered, stops an eval script that blocks the event loop for longer than ``limit_s``.

    Works by an alarm signal that the running loop keeps putting off, so that it reaches Python code
    that loops as well as calls that wait. Has to be entered in the main thread; scripts only are
    interrupted.
    """

    def __init__(self, limit_s: float, stops: ScriptStops) -> None:
        self._limit_s = limit_s
        self._stops = stops

    async def __aenter__(self) -> Self:
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
