"""The live display of a terminal while answers are judged."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from types import TracebackType
from typing import Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from mind2web2.cli.console import PlainConsole
from mind2web2.judge.usage import RunUsage
from mind2web2.runs.answer import AnswerOutcome
from mind2web2.runs.run import RunProgress
from mind2web2.runs.settings import RunSettings
from mind2web2.utils.names import first_names
from mind2web2.utils.text import counted, number

_REFRESH_S = 0.25
# Off a terminal, a line with the totals this often.
_TOTALS_EVERY_S = 30.0
_NAMES_SHOWN = 4
# Fewer answers than this say too little about the pace of a run.
_ANSWERS_FOR_PACE = 3


class LiveDisplay(ABC):
    """Shows a run's progress for as long as it is entered.

    Args:
        is_quiet: print no lines; a terminal shows the progress none the less.
    """

    def __init__(self, console: PlainConsole, *, is_quiet: bool = False) -> None:
        self._console = console
        self._is_quiet = is_quiet
        self._started_s = self._last_totals_s = time.monotonic()
        self._live = (
            Live(console=console, auto_refresh=False, transient=True)
            if console.is_terminal
            else None
        )

    @property
    def elapsed_s(self) -> float:
        """Return the seconds since the display was made."""
        return time.monotonic() - self._started_s

    @abstractmethod
    def news(self) -> Iterator[str]:
        """Yield a line for each step that was finished since the last call."""

    @abstractmethod
    def state(self) -> RenderableType:
        """Return the display below the lines of a terminal."""

    @abstractmethod
    def totals_line(self) -> str:
        """Return the state of the run in one line, for outputs that are not a terminal."""

    async def __aenter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        self._following = asyncio.create_task(self._follow())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._following.cancel()
        with suppress(asyncio.CancelledError):
            await self._following
        self._print_news()
        if self._live is not None:
            self._live.stop()

    async def _follow(self) -> None:
        while True:
            self._print_news()
            if self._live is not None:
                self._live.update(self.state(), refresh=True)
            elif not self._is_quiet and time.monotonic() - self._last_totals_s >= _TOTALS_EVERY_S:
                self._last_totals_s = time.monotonic()
                self._console.print_line(self.totals_line())
            await asyncio.sleep(_REFRESH_S)

    def _print_news(self) -> None:
        for text in self.news():
            if not self._is_quiet:
                self._console.print_line(text)


class RunDisplay(LiveDisplay):
    """Shows finished answers and the judge's use."""

    def __init__(
        self,
        console: PlainConsole,
        progress: RunProgress,
        usage: RunUsage,
        *,
        is_quiet: bool = False,
    ) -> None:
        super().__init__(console, is_quiet=is_quiet)
        self._progress = progress
        self._usage = usage
        self._shown = 0
        self._shown_waiting: set[str] = set()
        # The first answer that each reason has kept from a result.
        self._first_with: dict[str, str] = {}

    def news(self) -> Iterator[str]:
        """Yield a line for each answer, and for answers that another process judges."""
        for name in self._progress.waiting.keys() - self._shown_waiting:
            self._shown_waiting.add(name)
            yield f"{name}.md: waiting for another process that is judging it"
        for outcome in self._progress.outcomes[self._shown :]:
            self._shown += 1
            yield f"{self._count()} {self._outcome_text(outcome)}"

    def state(self) -> RenderableType:
        """Return how many answers are done, the judge's use, and the answers being judged."""
        progress = self._progress
        done, total = len(progress.outcomes), progress.answers_total
        parts = (
            f"{progress.tasks_done}/{counted(progress.tasks_total, 'task')}",
            self._time_text(),
        )
        names = [
            *progress.running,
            *(f"{name} (another process)" for name in progress.waiting),
        ]
        return Group(
            progress_bar(done, total, "answers", *parts),
            Text(self._usage.in_words()),
            Text(first_names(names, _NAMES_SHOWN), style="dim"),
        )

    def totals_line(self) -> str:
        """Return the judge's use so far, and the time."""
        return f"{self._count()} so far: {self._usage.in_words()}; {self._time_text()}"

    def _time_text(self) -> str:
        judged = sum(not outcome.reused for outcome in self._progress.outcomes)
        left = self._progress.answers_total - len(self._progress.outcomes)
        elapsed = f"{duration_text(self.elapsed_s)} elapsed"
        if judged < _ANSWERS_FOR_PACE or not left:
            return elapsed
        return f"{elapsed}, about {duration_text(self.elapsed_s / judged * left)} left"

    def _outcome_text(self, outcome: AnswerOutcome) -> str:
        name = f"{outcome.task_id}/{outcome.answer_name}"
        if outcome.score is None:
            reason = str(outcome.reason)
            first = self._first_with.setdefault(reason, name)
            return f"{name}: no result: {reason if first == name else f'the same as {first}'}"
        text = f"{name}: {number(outcome.score)}"
        if outcome.reused:
            return f"{text}, reused"
        return f"{text} (judged again: {outcome.changed})" if outcome.changed else text

    def _count(self) -> str:
        return f"[{self._shown}/{self._progress.answers_total}]"


def progress_bar(done: int, total: int, noun: str, *parts: str) -> RenderableType:
    """Return a bar with its numbers, and further parts beside it."""
    bar = Table.grid(padding=(0, 2))
    bar.add_row(
        ProgressBar(total=max(total, 1), completed=done, width=24),
        f"{done}/{total} {noun}",
        *parts,
    )
    return bar


def unreported_text(usage: RunUsage) -> str | None:
    """Return how many requests may be billed without being counted; ``None`` if none are."""
    requests = usage.total().asked.unreported_requests
    if not requests:
        return None
    return (
        f"Judge use: the server did not report the tokens of {counted(requests, 'request')}, "
        "because they were stopped, timed out or were answered without a count. They may be "
        "billed, and the totals leave them out."
    )


def uncached_text(pages: int, settings: RunSettings) -> str:
    """Return how many cited pages are not cached, and what becomes of the claims on them."""
    if not pages:
        return "All cited pages are cached."
    text = f"{counted(pages, 'cited page')} not cached."
    if settings.captures_pages:
        return f"{text} A page is captured when a claim needs it."
    return f"{text} This run captures nothing, so claims on them are not supported."


def duration_text(seconds: float) -> str:
    """Return a time in the units that matter: ``12 s``, ``3 min 05 s``, ``2 h 10 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"
