"""What a caching run shows while it goes on."""

from __future__ import annotations

import time
from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from mind2web2.cli.live_display import LiveDisplay
from mind2web2.crawl import CrawlProgress, PageOutcome

_URLS_SHOWN = 5


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

    def sign_of_life(self) -> str:
        """Return what is read, or how many pages are under way and which of them takes longest."""
        progress = self._progress
        if progress.answers_read < progress.answers_total:
            return self._reading()
        pages = f"{self._count()} {len(progress.running)} page{'s' * (len(progress.running) != 1)} under way"
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
        text = f"{record.kind}, suspect: {'; '.join(trouble.detail for trouble in record.troubles)}"
    else:
        text = record.kind
    kept = ", what was cached stays" if outcome.is_kept else ""
    return f"{text}{', copied from another task' if outcome.is_copied else kept}"
