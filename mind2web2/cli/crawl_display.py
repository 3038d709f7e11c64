"""The live display of a terminal while pages are captured."""

from __future__ import annotations

import time
from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from mind2web2.cli.console import PlainConsole
from mind2web2.cli.displays import LiveDisplay, progress_bar
from mind2web2.pages.crawl import CrawlProgress, PageOutcome
from mind2web2.utils.text import counted, first_few

_URLS_SHOWN = 5


class CrawlDisplay(LiveDisplay):
    """Shows pages that are finished and pages that are being captured."""

    def __init__(self, console: PlainConsole, progress: CrawlProgress) -> None:
        super().__init__(console)
        self._progress = progress
        self._shown = 0

    def news(self) -> Iterator[str]:
        """Yield a line for each page."""
        for outcome in self._progress.outcomes[self._shown :]:
            self._shown += 1
            yield f"{self._count()} {outcome.url}: {outcome_text(outcome)}"

    def state(self) -> RenderableType:
        """Return how many pages are done, and some that are being captured."""
        progress = self._progress
        if progress.answers_read < progress.answers_total:
            return Text(self._reading())
        done, total = len(progress.outcomes), progress.pages_total
        lines = [
            Text(url, style="dim", no_wrap=True, overflow="ellipsis")
            for url in first_few(list(progress.running), _URLS_SHOWN)
        ]
        return Group(progress_bar(done, total, "pages", f"{progress.pages_cited} cited"), *lines)

    def totals_line(self) -> str:
        """Return how many answers are read, or how many pages are running.

        With the running pages it also says which takes longest.
        """
        progress = self._progress
        if progress.answers_read < progress.answers_total:
            return self._reading()
        pages = f"{self._count()} {counted(len(progress.running), 'page')} running"
        first = next(iter(progress.running.items()), None)
        if first is None:
            return pages
        url, begun_s = first
        return f"{pages}, for {time.monotonic() - begun_s:.0f} s: {url}"

    def _reading(self) -> str:
        progress = self._progress
        step = "asking a model for links" if progress.is_asking else "reading answers"
        return (
            f"{step}: {progress.answers_read} of {counted(progress.answers_total, 'answer')} done"
        )

    def _count(self) -> str:
        return f"[{self._shown}/{self._progress.pages_total}]"


def outcome_text(outcome: PageOutcome) -> str:
    """Return the outcome of a page in one line."""
    record = outcome.record
    if record is None:
        return "copied from another task"
    if record.kind is None:
        text = f"failed: {record.failure or 'it yielded nothing'}"
    elif record.is_suspect:
        text = f"saved, but looks wrong: {'; '.join(trouble.detail for trouble in record.troubles)}"
    else:
        text = "saved" if record.kind == "web" else "saved (PDF)"
    kept = ", so the earlier page stays" if outcome.is_kept else ""
    return f"{text}{', copied from another task' if outcome.is_copied else kept}"
