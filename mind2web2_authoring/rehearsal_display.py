"""The progress of a command that rehearses many tasks."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from rich.console import RenderableType
from rich.text import Text

from mind2web2.plugin import (
    LiveDisplay,
    PlainConsole,
    counted,
    duration_text,
)


@dataclass
class RehearsalProgress:
    """How far the rehearsals have come.

    Args:
        running: by task, when its rehearsal was started.
    """

    total: int
    done: int = 0
    running: dict[str, float] = field(default_factory=dict)


class RehearsalDisplay(LiveDisplay):
    """Shows on standard error how many tasks are done, and which takes longest."""

    def __init__(self, progress: RehearsalProgress) -> None:
        super().__init__(PlainConsole(file=sys.stderr, outlives_reader=True))
        self._progress = progress

    def news(self) -> Iterator[str]:
        """Yield nothing: findings are printed at the end, task by task."""
        yield from ()

    def state(self) -> RenderableType:
        """Return the same as for outputs that are not a terminal."""
        return Text(self.totals_line())

    def totals_line(self) -> str:
        """Return how many tasks are done, and which takes longest."""
        progress = self._progress
        text = f"rehearsed {progress.done} of {counted(progress.total, 'task')}"
        longest = next(iter(progress.running.items()), None)
        if longest is None:
            return text
        task_id, started_s = longest
        seconds = time.monotonic() - started_s
        return f"{text}; {task_id} takes {duration_text(seconds)} so far"
