"""The console that commands print to: warnings, tables of amounts, and the live progress of a run."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.measure import Measurement
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from mind2web2.utils.invisible_characters import made_visible
from mind2web2.utils.text import dollars

if TYPE_CHECKING:
    from mind2web2.judge.protocol import RunUsage
    from mind2web2.pages.crawl import CrawlProgress, PageOutcome
    from mind2web2.runs.answer import AnswerOutcome
    from mind2web2.runs.progress_file import ProgressFile, RunState
    from mind2web2.runs.run import RunProgress

_ALIKE_EVERY_S = 10.0
_KEEP_EVERY_S = 1.0


class _PlainConsole(Console):
    """A console to which no page and no answer can send the escapes that terminals obey."""

    outlives_reader = False

    def render_str(self, text: str, **options: Any) -> Text:
        """Return the text to print, what is invisible in it made visible."""
        return super().render_str(made_visible(text), **options)

    def on_broken_pipe(self) -> None:
        """Say nothing more once the reader has gone, as ``head`` does; only work for files goes on."""
        self.quiet = True
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.file.fileno())
        os.close(nowhere)
        if not self.outlives_reader:
            raise BrokenPipeError


def plain_console(file: IO[str] | None = None, *, outlives_reader: bool = False) -> Console:
    """Return the console; names and reasons are shown as they are, whatever they look like to rich.

    Args:
        file: standard output by default.
        outlives_reader: go on in silence when nobody reads any more: what is done is not for the console.

    Raises:
        BrokenPipeError: while printing, unless it outlives its reader.
    """
    console = _PlainConsole(file=file, markup=False, emoji=False, highlight=False)
    console.outlives_reader = outlives_reader
    return console


class ConsoleHandler(logging.Handler):
    """Prints warnings and errors.

    A warning that comes once for each of many requests has ``alike`` (``extra=``), which says what it has in
    common with the others: of those one in ten seconds is printed, and says how many there were meanwhile.

    Args:
        console: has the display that they must not tear, where both are on a terminal.
    """

    def __init__(self, console: Console) -> None:
        super().__init__(logging.WARNING)
        is_shared = console.is_terminal and sys.stderr.isatty()
        self._console = console if is_shared else plain_console(file=sys.stderr, outlives_reader=True)
        self._alike: dict[str, _Alike] = {}
        self._printed: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Print the message on a line of its own, the same one only once."""
        alike = getattr(record, "alike", None)
        held_back = 0 if alike is None else self._held_back(alike, record.created)
        if held_back is None:
            return
        text = " ".join(record.getMessage().split())
        if alike is None and text in self._printed:
            return
        self._printed.add(text)
        text += f" ({held_back} more like it in between)" if held_back else ""
        self._console.print(f"{record.levelname.lower()}: {text}", soft_wrap=True)

    def _held_back(self, alike: str, now_s: float) -> int | None:
        """Return how many such warnings were held back since the last one; ``None`` to hold this one back."""
        state = self._alike.setdefault(alike, _Alike())
        if now_s < state.next_shown_s:
            state.held_back += 1
            return None
        self._alike[alike] = _Alike(now_s + _ALIKE_EVERY_S)
        return state.held_back


@dataclass(slots=True)
class _Alike:
    """Warnings of one kind: when the next one is shown, in seconds of the epoch, and what came too soon."""

    next_shown_s: float = 0.0
    held_back: int = 0


@contextmanager
def warnings_on(console: Console) -> Iterator[None]:
    """Show the package's warnings for the time of a run."""
    handler = ConsoleHandler(console)
    package = logging.getLogger("mind2web2")
    package.addHandler(handler)
    try:
        yield
    finally:
        package.removeHandler(handler)


def print_amounts(
    console: Console, title: str, kind: str, columns: Sequence[str], rows: Mapping[str, Sequence[str]]
) -> None:
    """Print rows of amounts by name, ``kind`` being the heading of the names.

    A table that is too wide for its terminal would have its words broken: each name is then a line.
    """
    table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column(kind, no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    for name, cells in rows.items():
        table.add_row(name, *cells)
    unbounded = console.options.update(max_width=10_000)
    if not console.is_terminal or Measurement.get(console, unbounded, table).maximum > console.width:
        for name, cells in rows.items():
            amounts = ", ".join(f"{column} {cell}" for column, cell in zip(columns, cells, strict=True))
            console.print(f"{title}: {name}: {amounts}", soft_wrap=True)
        return
    console.print(table)


_REFRESH_S = 0.25
# Off a terminal, a line with the totals this often.
_TOTALS_EVERY_S = 30.0
_NAMES_SHOWN = 4
_URLS_SHOWN = 5
# Fewer answers than this say too little about the pace of a run.
_ANSWERS_FOR_PACE = 3


class LiveDisplay(ABC):
    """Shows a run's progress for as long as it is entered."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._started_s = self._last_totals_s = time.monotonic()
        self._live = (
            Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
        )
        self._following: asyncio.Task[None] | None = None

    @property
    def is_live(self) -> bool:
        """Tell whether there is more to be seen than lines."""
        return self._live is not None

    @property
    def elapsed_s(self) -> float:
        """Return the seconds since the display was made."""
        return time.monotonic() - self._started_s

    @abstractmethod
    def news(self) -> Iterator[str]:
        """Yield a line for each thing that has been done since the last call."""

    @abstractmethod
    def state(self) -> RenderableType:
        """Return what a terminal shows below the lines."""

    @abstractmethod
    def totals_line(self) -> str:
        """Return what has been done so far, for a line once in a while."""

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
        await self.keep("ended" if error is None else "stopped")
        if self._live is not None:
            self._live.stop()

    async def keep(self, state: RunState) -> None:  # noqa: B027  # most displays keep nothing
        """Write the progress to a file, for others to follow; nothing by default."""

    async def _follow(self) -> None:
        kept_s = -math.inf
        while True:
            self._tell_news()
            if time.monotonic() - kept_s >= _KEEP_EVERY_S:
                kept_s = time.monotonic()
                await self.keep("running")
            if self._live is not None:
                self._live.update(self.state(), refresh=True)
            elif time.monotonic() - self._last_totals_s >= _TOTALS_EVERY_S:
                self._last_totals_s = time.monotonic()
                self._line(self.totals_line())
            await asyncio.sleep(_REFRESH_S)

    def _tell_news(self) -> None:
        for line in self.news():
            self._line(line)

    def _line(self, text: str) -> None:
        self._console.print(text, soft_wrap=True)


class RunDisplay(LiveDisplay):
    """Shows which answers are done and what the judge was asked."""

    def __init__(
        self, console: Console, progress: RunProgress, usage: RunUsage, file: ProgressFile | None = None
    ) -> None:
        super().__init__(console)
        self._progress = progress
        self._usage = usage
        self._file = file
        self._told = 0
        self._told_waiting: set[str] = set()
        # The first answer that each reason has kept from a result.
        self._first_with: dict[str, str] = {}

    def news(self) -> Iterator[str]:
        """Yield a line for each answer, and for each that is waited for."""
        for name in self._progress.waiting.keys() - self._told_waiting:
            self._told_waiting.add(name)
            yield f"{name}.md: another process is judging it; waiting until that is done"
        for outcome in self._progress.outcomes[self._told :]:
            self._told += 1
            yield f"{self._count()} {self._outcome_text(outcome)}"

    def state(self) -> RenderableType:
        """Return how many answers are done, what was asked, and which are under way."""
        progress = self._progress
        done, total = len(progress.outcomes), progress.answers_total
        line = Table.grid(padding=(0, 2))
        line.add_row(
            ProgressBar(total=max(total, 1), completed=done, width=24),
            f"{done}/{total} answers",
            f"{progress.tasks_done}/{progress.tasks_total} tasks",
            self._time_text(),
        )
        names = [*progress.running, *(f"{name} (another process)" for name in progress.waiting)]
        more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
        return Group(
            line, Text(totals_text(self._usage)), Text(", ".join(names[:_NAMES_SHOWN]) + more, style="dim")
        )

    async def keep(self, state: RunState) -> None:
        """Write how far the run has come, for the viewer."""
        if self._file is not None:
            await asyncio.to_thread(self._file.write, self._progress, self._usage, state)

    def totals_line(self) -> str:
        """Return what was asked so far, and the time."""
        return f"{self._count()} so far: {totals_text(self._usage)}; {self._time_text()}"

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
            return f"{name}: no result: {reason if first == name else f'as {first}'}"
        text = f"{name}: {outcome.score:.4f}"
        if outcome.reused:
            return f"{text}, reused"
        return f"{text} (judged again: {outcome.changed})" if outcome.changed else text

    def _count(self) -> str:
        return f"[{self._told}/{self._progress.answers_total}]"


def totals_text(usage: RunUsage) -> str:
    """Return what a run has asked so far in one line."""
    asked, reused = usage.total().asked, usage.total().reused.judgments
    tokens = asked.input_tokens + asked.output_tokens
    cost = "price unknown" if asked.cost_usd is None else dollars(asked.cost_usd)
    judgments = f"{asked.judgments:,} judgment{'s' * (asked.judgments != 1)}"
    counts = f"{judgments} asked, {reused:,} reused, {tokens:,} tokens, {cost}"
    parts = (counts, usage.slowdown.in_words(), usage.retries.in_words())
    return "; ".join(part for part in parts if part)


def duration_text(seconds: float) -> str:
    """Return a time in the units that matter: ``12 s``, ``3 min 05 s``, ``2 h 10 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


class CrawlDisplay(LiveDisplay):
    """Shows which pages are done and under way."""

    def __init__(self, console: Console, progress: CrawlProgress) -> None:
        super().__init__(console)
        self._progress = progress
        self._told = 0

    def news(self) -> Iterator[str]:
        """Yield a line for each page."""
        for outcome in self._progress.outcomes[self._told :]:
            self._told += 1
            yield f"{self._count()} {outcome.url}: {outcome_text(outcome)}"

    def state(self) -> RenderableType:
        """Return how many pages are done, and some that are under way."""
        progress = self._progress
        if progress.answers_read < progress.answers_total:
            return Text(self._reading())
        done, total = len(progress.outcomes), progress.pages_total
        line = Table.grid(padding=(0, 2))
        line.add_row(
            ProgressBar(total=max(total, 1), completed=done, width=24),
            f"{done}/{total} pages",
            f"{progress.pages_cited} cited",
        )
        urls = list(progress.running)
        more = [f"and {len(urls) - _URLS_SHOWN} more"] if len(urls) > _URLS_SHOWN else []
        lines = [
            Text(url, style="dim", no_wrap=True, overflow="ellipsis") for url in (*urls[:_URLS_SHOWN], *more)
        ]
        return Group(line, *lines)

    def totals_line(self) -> str:
        """Return what is read, or how many pages are running and which of them takes longest."""
        progress = self._progress
        if progress.answers_read < progress.answers_total:
            return self._reading()
        count = len(progress.running)
        pages = f"{self._count()} {count} page{'s' * (count != 1)} running"
        first = next(iter(progress.running.items()), None)
        if first is None:
            return pages
        url, begun_s = first
        return f"{pages}, for {time.monotonic() - begun_s:.0f} s: {url}"

    def _reading(self) -> str:
        progress = self._progress
        what = "asking a model for links" if progress.is_asking else "reading answers"
        return f"{what}: {progress.answers_read}/{progress.answers_total} answers done"

    def _count(self) -> str:
        return f"[{self._told}/{self._progress.pages_total}]"


def outcome_text(outcome: PageOutcome) -> str:
    """Return what came of a page in one line."""
    record = outcome.record
    if record is None:
        return "copied from another task"
    if record.kind is None:
        text = f"failed: {record.failure or 'it yielded nothing'}"
    elif record.is_suspect:
        text = f"saved, but looks wrong: {'; '.join(trouble.detail for trouble in record.troubles)}"
    else:
        text = "saved" if record.kind == "web" else "saved (PDF)"
    kept = ", the page cached before stays" if outcome.is_kept else ""
    return f"{text}{', copied from another task' if outcome.is_copied else kept}"
