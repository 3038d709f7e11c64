"""The cache that a run hands to a script; scripts may bring caches of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from mind2web2.pages.page_cache import PageCache
from mind2web2.utils.callers import is_own

if TYPE_CHECKING:
    from mind2web2.llm_client.chat import Limit
    from mind2web2.pages.captures import SharedCaptures


class PageViews(Protocol):
    """The pages of a task as a run's cache knows them (``PageLibrary``)."""

    def forget(self, cache: PageCache) -> None:
        """Drop the prepared pages of a cache in which a page was replaced."""

    def stored_at_first(self, cache: PageCache) -> frozenset[str] | None:
        """Return the addresses (``lookup_key``) of the pages that were stored before the run."""


class RunCache(PageCache, Protocol):
    """The cache that a run hands to a script (``AnswerCache``).

    Attributes:
        task_cache: shared by the answers of a task.
        page_library: the run's prepared pages.
        page_limit: the run's limit on captures, where it has one.
        captures: the run's; ``None`` where it captures nothing, not even with a script's own
            browser.
        looked_up: every URL asked for, with the digest of its page as the judge was shown it.
    """

    task_cache: PageCache
    page_library: PageViews
    page_limit: Limit | None
    captures: SharedCaptures | None
    looked_up: dict[str, str | None]

    def note_captured(self, url: str) -> None:
        """Let the script see a page that its verdicts or values rest on."""


def run_cache(cache: PageCache | None) -> RunCache | None:
    """Return a cache as one of a run, ``None`` for a cache of a script's own."""
    return cast(RunCache, cache) if hasattr(cache, "page_library") else None


def shared_cache(cache: PageCache) -> PageCache:
    """Return the task's cache behind an answer's; any other cache is its own."""
    of_run = run_cache(cache)
    return cache if of_run is None else of_run.task_cache


def has_other_readers(cache: PageCache) -> bool:
    """Return whether a script has replaced a method by which the run reads pages."""
    readers = [
        getattr(part, name)
        for part in (cache, shared_cache(cache))
        for name in ("has", "get_web", "get_pdf")
        if hasattr(part, name)
    ]
    codes = [getattr(reader, "__code__", None) for reader in readers]
    return not all(code is not None and is_own(code.co_filename) for code in codes)
