"""The task's page cache as one answer's script sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, cast

from mind2web2.pages.cache import CacheFileSys, listing_sha256
from mind2web2.pages.cache_files import StoredPage, redirect_target
from mind2web2.urls.parts import lookup_key
from mind2web2.utils.api_misuse import script_api
from mind2web2.utils.callers import is_own

if TYPE_CHECKING:
    from mind2web2.capture.models import PageKind
    from mind2web2.pages.captures import SharedCaptures
    from mind2web2.pages.page_cache import PageCache


@script_api
class AnswerCache(CacheFileSys):
    """The task's cache, which notes each URL that is looked up.

    The script sees pages that were stored before the run, pages that its own verdicts and
    extractions rest on, and pages that it stored itself. Pages captured for another answer or
    attempt stay hidden, since whether they are there depends on timing.

    Args:
        task_cache: shared by the answers of a task.
        at_first: the addresses (``lookup_key``) of the pages that were stored before the run;
            ``None`` if all pages are to be seen.
        captures: the run's; ``None`` where it captures nothing, not even with a script's own
            browser.
        on_write: called after each page that the script stores.
    """

    def __init__(
        self,
        task_cache: CacheFileSys,
        at_first: frozenset[str] | None = None,
        captures: SharedCaptures | None = None,
        on_write: Callable[[], object] = object,
    ) -> None:
        # One cache: what is known of its files is known to both.
        vars(self).update(vars(task_cache))
        self.captures = captures
        self.task_cache = task_cache
        self.at_first = at_first
        self._on_write = on_write
        # Every URL asked for, with the digest of its page as the judge was shown it first.
        self.looked_up: dict[str, str | None] = {}
        # Pages that the script has come to see.
        self._captured: set[str] = set()
        # The script asked for the list of stored pages.
        self.is_listed = False

    def put_web(self, url: str, text: str, screenshot: bytes | str | None) -> None:
        """Store a web page."""
        self.task_cache.put_web(str(url), text, screenshot)
        self._on_write()
        self.note_captured(str(url))

    def put_pdf(self, url: str, pdf_bytes: bytes) -> None:
        """Store a PDF."""
        self.task_cache.put_pdf(str(url), pdf_bytes)
        self._on_write()
        self.note_captured(str(url))

    def note_captured(self, url: str) -> None:
        """Let the script see a page, and where that was redirected to, if they are stored."""
        self._captured.add(url)

    @property
    def captured(self) -> list[str]:
        """Return the URLs of the pages that the script has come to see."""
        return sorted(self._captured)

    def note_lookups(
        self, urls: Iterable[str], captured: Iterable[str], *, is_listed: bool
    ) -> None:
        """Note the lookups of the script's own process."""
        self.note_questions([dict.fromkeys(urls)])
        self._captured.update(captured)
        self.is_listed |= is_listed

    def note_questions(self, questions: Iterable[Mapping[str, str | None]]) -> None:
        """Note what questions have looked up, as ``looked_up`` has it."""
        for looked_up in questions:
            for url, sha256 in looked_up.items():
                self.looked_up[url] = self.looked_up.get(url) or sha256

    def pages_used(self) -> dict[str, str | None]:
        """Return the digest of every page looked up, ``None`` where nothing is stored.

        Reads files.
        """
        return {url: sha256 or self.digest(url) for url, sha256 in sorted(self.looked_up.items())}

    def listing_used(self) -> str | None:
        """Return the digest of the list of stored pages.

        ``None`` if the script did not ask for it.
        """
        return listing_sha256(self.task_cache) if self.is_listed else None

    def _seen(self, url: str) -> StoredPage | None:
        """Note that a page is looked up, and return it if it is to be found."""
        self.looked_up.setdefault(str(url), None)
        found = super()._seen(str(url))
        return found if found is not None and self._is_in_view(found.key) else None

    def _stored_kinds(self) -> dict[str, PageKind]:
        self.is_listed = True
        stored = super()._stored_kinds()
        return {key: kind for key, kind in stored.items() if self._is_in_view(key)}

    def _is_in_view(self, index_key: str) -> bool:
        """Tell whether a stored page was there before the run or has become visible since."""
        if self.at_first is None:
            return True
        address = lookup_key(index_key)
        return address in self.at_first or address in set(map(lookup_key, self._seen_since()))

    def _seen_since(self) -> Iterator[str]:
        """Yield the addresses of pages that have become visible since."""
        for url in self._captured:
            yield url
            record = self.capture_record(url)
            target = None if record is None else redirect_target(record)
            if target is not None:
                yield target


# The name that scripts know, in messages about them.
AnswerCache.__name__ = CacheFileSys.__name__


def run_cache(cache: PageCache | None) -> AnswerCache | None:
    """Return a cache as the one that a run hands to a script.

    ``None`` for a cache of a script's own.
    """
    return cast(AnswerCache, cache) if hasattr(cache, "at_first") else None


def has_other_readers(cache: AnswerCache) -> bool:
    """Return whether a script has replaced a method by which the run reads pages."""
    readers = [
        getattr(part, name)
        for part in (cache, cache.task_cache)
        for name in ("has", "get_web", "get_pdf")
    ]
    codes = [getattr(reader, "__code__", None) for reader in readers]
    return not all(code is not None and is_own(code.co_filename) for code in codes)
