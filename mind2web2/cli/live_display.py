"""Progress while a run goes on: a live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from types import TracebackType
from typing import Self

from rich.console import Console, RenderableType
from rich.live import Live

_REFRESH_S = 0.25
# Elsewhere than on a terminal a line at least this often, so that a long run does not look dead.
_LONGEST_SILENCE_S = 30.0


class LiveDisplay(ABC):
    """Shows a run's progress for as long as it is entered."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last_line_s = time.monotonic()
        self._live = (
            Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
        )
        self._following: asyncio.Task[None] | None = None

    @property
    def is_live(self) -> bool:
        """Tell whether there is more to be seen than lines."""
        return self._live is not None

    @abstractmethod
    def news(self) -> Iterator[str]:
        """Yield a line for each thing that has been done since the last call."""

    @abstractmethod
    def state(self) -> RenderableType:
        """Return what a terminal shows below the lines."""

    @abstractmethod
    def sign_of_life(self) -> str:
        """Return a line for the time when nothing is done for long."""

    async def __aenter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        self._following = asyncio.create_task(self._follow())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._following is not None:
            self._following.cancel()
            with suppress(asyncio.CancelledError):
                await self._following
        self._tell_news()
        if self._live is not None:
            self._live.stop()

    async def _follow(self) -> None:
        while True:
            self._tell_news()
            if self._live is not None:
                self._live.update(self.state(), refresh=True)
            elif time.monotonic() - self._last_line_s >= _LONGEST_SILENCE_S:
                self._line(self.sign_of_life())
            await asyncio.sleep(_REFRESH_S)

    def _tell_news(self) -> None:
        for line in self.news():
            self._line(line)

    def _line(self, text: str) -> None:
        self._last_line_s = time.monotonic()
        self._console.print(text, soft_wrap=True)
