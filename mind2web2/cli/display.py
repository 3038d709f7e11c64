"""What a run shows while it goes on: a live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from mind2web2.answer_evaluation import AnswerOutcome
from mind2web2.eval_runner import RunProgress
from mind2web2.recorded_judge import RunTotals

_REFRESH_S = 0.25
# Elsewhere than on a terminal a line at least this often, so that a long run does not look dead.
_LONGEST_SILENCE_S = 30.0
_NAMES_SHOWN = 4


class RunDisplay:
    """Shows a run's progress for as long as it is entered."""

    def __init__(self, console: Console, progress: RunProgress, totals: RunTotals) -> None:
        self._console = console
        self._progress = progress
        self._totals = totals
        self._told = 0
        self._last_line_s = time.monotonic()
        self._live = (
            Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
        )
        self._following: asyncio.Task[None] | None = None

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
        self._tell_new()
        if self._live is not None:
            self._live.stop()

    async def _follow(self) -> None:
        while True:
            self._tell_new()
            if self._live is not None:
                self._live.update(self._state(), refresh=True)
            elif time.monotonic() - self._last_line_s >= _LONGEST_SILENCE_S:
                self._line(f"{self._count()} {totals_text(self._totals)}")
            await asyncio.sleep(_REFRESH_S)

    def _tell_new(self) -> None:
        for outcome in self._progress.outcomes[self._told :]:
            self._told += 1
            told = f"{self._count()} {_outcome_text(outcome)}"
            if self._live is None and self._totals.asked:
                told += f" (so far: {totals_text(self._totals)})"
            self._line(told)

    def _count(self) -> str:
        return f"[{self._told}/{self._progress.answers_total}]"

    def _line(self, text: str) -> None:
        self._last_line_s = time.monotonic()
        self._console.print(text, soft_wrap=True)

    def _state(self) -> RenderableType:
        progress = self._progress
        done, total = len(progress.outcomes), progress.answers_total
        line = Table.grid(padding=(0, 2))
        line.add_row(
            ProgressBar(total=max(total, 1), completed=done, width=24),
            f"{done}/{total} answers",
            f"{progress.tasks_done}/{progress.tasks_total} tasks",
        )
        names = list(progress.running)
        more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
        return Group(
            line, Text(totals_text(self._totals)), Text(", ".join(names[:_NAMES_SHOWN]) + more, style="dim")
        )


def totals_text(totals: RunTotals) -> str:
    """Return what a run has asked so far in one line."""
    tokens = totals.usage.input_tokens + totals.usage.output_tokens
    cost = "price unknown" if totals.cost_usd is None else f"${totals.cost_usd:.4f}"
    return f"{totals.asked} judgments asked, {totals.reused} reused, {tokens:,} tokens, {cost}"


def _outcome_text(outcome: AnswerOutcome) -> str:
    name = f"{outcome.task_id}/{outcome.answer_name}"
    if outcome.score is None:
        return f"{name}: no result: {outcome.reason}"
    return f"{name}: {outcome.score:.4f}{', reused' if outcome.reused else ''}"
