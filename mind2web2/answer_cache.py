"""The task's page cache as one answer's script sees it: it remembers which pages were looked up."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from mind2web2.llm_client.chat import Limit
from mind2web2.page_library import PageLibrary
from mind2web2.shared_captures import SharedCaptures
from mind2web2.utils.cache_filesys import CacheFileSys


class AnswerCache:
    """Passes everything on to the task's cache and notes each URL asked for.

    Args:
        task_cache: shared by the answers of a task.
        page_library: the run's prepared pages; evaluators find it here.
        page_limit: the run's limit on captures; likewise.
        captures: the run's; ``None`` where it captures nothing, not even with a script's own browser.
    """

    def __init__(
        self,
        task_cache: CacheFileSys,
        page_library: PageLibrary,
        page_limit: Limit | None = None,
        captures: SharedCaptures | None = None,
    ) -> None:
        self.page_limit = page_limit
        self.captures = captures
        self.task_cache = task_cache
        self.page_library = page_library
        self._looked_up: set[str] = set()
        self._shown: dict[str, str | None] = {}
        self._listed = False

    def has(self, url: str) -> Any:
        """Return what is stored for the URL."""
        return self._noting(url).has(str(url))

    def has_web(self, url: str) -> bool:
        """Tell whether a web page is stored."""
        return self._noting(url).has_web(str(url))

    def has_pdf(self, url: str) -> bool:
        """Tell whether a PDF is stored."""
        return self._noting(url).has_pdf(str(url))

    def get_web(self, url: str, get_screenshot: bool = True) -> tuple[str, bytes | None]:
        """Return a web page's text and screenshot."""
        return self._noting(url).get_web(str(url), get_screenshot)

    def get_pdf(self, url: str) -> bytes:
        """Return a stored PDF."""
        return self._noting(url).get_pdf(str(url))

    def digest(self, url: str) -> str | None:
        """Return a digest of the stored page."""
        return self._noting(url).digest(str(url))

    def put_web(self, url: str, text: str, screenshot: bytes | str | None) -> None:
        """Store a web page; what was prepared of an earlier one no longer counts."""
        self.task_cache.put_web(str(url), text, screenshot)
        self.page_library.forget(self.task_cache)

    def put_pdf(self, url: str, pdf_bytes: bytes) -> None:
        """Store a PDF; what was prepared of an earlier page no longer counts."""
        self.task_cache.put_pdf(str(url), pdf_bytes)
        self.page_library.forget(self.task_cache)

    def get_all_urls(self) -> list[str]:
        """Return the index keys of all stored pages."""
        self._listed = True
        return self.task_cache.get_all_urls()

    def summary(self) -> dict[str, int]:
        """Return how many pages are stored."""
        self._listed = True
        return self.task_cache.summary()

    def __getattr__(self, name: str) -> Any:
        """Pass on what needs no noting, such as ``save`` and ``clear``."""
        return getattr(self.task_cache, name)

    @property
    def looked_up(self) -> list[str]:
        """Return every URL asked for."""
        return sorted(self._looked_up)

    @property
    def is_listed(self) -> bool:
        """Tell whether anybody asked for the list of stored pages."""
        return self._listed

    def note_lookups(self, urls: Iterable[str], *, is_listed: bool) -> None:
        """Note what was looked up by way of another object, in a process of the script's own."""
        self._looked_up.update(urls)
        self._listed = self._listed or is_listed

    def note_shown(self, url: str, sha256: str | None) -> None:
        """Note the digest of a page as the judge was shown it, which may have changed on disk since."""
        self._shown.setdefault(url, sha256)

    def pages_used(self) -> dict[str, str | None]:
        """Return the digest of every page looked up, ``None`` where nothing is stored; reads files."""
        return {
            url: self._shown[url] if url in self._shown else self.task_cache.digest(url)
            for url in sorted(self._looked_up)
        }

    def listing_used(self) -> str | None:
        """Return the digest of the list of stored pages, ``None`` where nobody asked for it."""
        return listing_sha256(self.task_cache) if self._listed else None

    def _noting(self, url: str) -> CacheFileSys:
        self._looked_up.add(str(url))
        return self.task_cache


def listing_sha256(cache: CacheFileSys) -> str:
    """Return a digest of which pages a cache holds."""
    return hashlib.sha256("\n".join(cache.get_all_urls()).encode("utf-8", "replace")).hexdigest()
