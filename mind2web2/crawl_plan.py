"""Which cited pages are to be had, each once, in an order that spreads them over their hosts (pure)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from mind2web2.capture.record import CaptureRecord, PageKind
from mind2web2.utils.url_key import lookup_key

_HOST_END = re.compile("[/?#]")

Choice = Literal["missing", "failed", "suspect"]


@dataclass(frozen=True, slots=True)
class CitedPage:
    """One page that a task's answers cite, as the task's cache has it.

    Args:
        url: the spelling that the answers use.
        kind: how it is stored, ``None`` for not.
        record: of its capture, or of the failed one; older tools leave none.
    """

    url: str
    kind: PageKind | None
    record: CaptureRecord | None

    @property
    def is_suspect(self) -> bool:
        """Tell whether it is stored and looks wrong."""
        return self.kind is not None and self.record is not None and self.record.is_suspect

    @property
    def failure(self) -> str | None:
        """Return why it could not be had, ``None`` where it is stored or was never tried."""
        if self.kind is not None or self.record is None:
            return None
        return self.record.failure or "it yielded nothing"

    def is_chosen(self, choice: Choice) -> bool:
        """Tell whether a run that is to get these pages gets this one."""
        if choice == "suspect":
            return self.is_suspect
        if choice == "failed":
            return self.kind is None and self.record is not None
        # What a server sent instead of the page while it was out of order is not the page.
        return self.kind is None or (self.record is not None and self.record.is_transient)


@dataclass(frozen=True, slots=True)
class TaskPages:
    """The pages that a task's answers cite."""

    task_id: str
    pages: tuple[CitedPage, ...]


@dataclass(frozen=True, slots=True)
class PageJob:
    """One page to be had, and the tasks that want it, each by its own spelling of the URL."""

    url: str
    wanted_by: tuple[tuple[str, str], ...]


def page_jobs(tasks: Iterable[TaskPages], choice: Choice) -> list[PageJob]:
    """Return the chosen pages, each once however many tasks cite it."""
    wanted: dict[str, dict[str, str]] = {}
    for task in tasks:
        for page in task.pages:
            if page.is_chosen(choice):
                wanted.setdefault(lookup_key(page.url) or page.url, {}).setdefault(task.task_id, page.url)
    jobs = [PageJob(next(iter(urls.values())), tuple(urls.items())) for urls in wanted.values()]
    return _spread(jobs)


def _spread(jobs: Sequence[PageJob]) -> list[PageJob]:
    """Put the first page of every host before any host's second, so that no host holds up the others."""
    seen: Counter[str] = Counter()
    ranks = []
    for job in jobs:
        host = _HOST_END.split(lookup_key(job.url) or job.url)[0]
        ranks.append(seen[host])
        seen[host] += 1
    return [jobs[position] for position in sorted(range(len(jobs)), key=lambda position: ranks[position])]
