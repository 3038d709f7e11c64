"""The task's page cache as one answer's script sees it: it remembers which pages were looked up."""

from __future__ import annotations

from typing import Any

from mind2web2.page_library import PageLibrary
from mind2web2.utils.cache_filesys import CacheFileSys


class AnswerCache:
    """Passes everything on to the task's cache and notes each URL asked for.

    Args:
        task_cache: shared by the answers of a task.
        page_library: the run's prepared pages; evaluators find it here.
    """

    def __init__(self, task_cache: CacheFileSys, page_library: PageLibrary) -> None:
        self.task_cache = task_cache
        self.page_library = page_library
        self._looked_up: set[str] = set()

    def has(self, url: str) -> Any:
        """Return what is stored for the URL."""
        return self._noting(url).has(url)

    def has_web(self, url: str) -> bool:
        """Tell whether a web page is stored."""
        return self._noting(url).has_web(url)

    def has_pdf(self, url: str) -> bool:
        """Tell whether a PDF is stored."""
        return self._noting(url).has_pdf(url)

    def get_web(self, url: str, get_screenshot: bool = True) -> tuple[str, bytes | None]:
        """Return a web page's text and screenshot."""
        return self._noting(url).get_web(url, get_screenshot)

    def get_pdf(self, url: str) -> bytes:
        """Return a stored PDF."""
        return self._noting(url).get_pdf(url)

    def digest(self, url: str) -> str | None:
        """Return a digest of the stored page."""
        return self._noting(url).digest(url)

    def __getattr__(self, name: str) -> Any:
        """Pass on what needs no noting: writes, listings, ``save`` and ``clear``."""
        return getattr(self.task_cache, name)

    def pages_used(self) -> dict[str, str | None]:
        """Return the digest of every page looked up, ``None`` where nothing is stored; reads files."""
        return {url: self.task_cache.digest(url) for url in sorted(self._looked_up)}

    def _noting(self, url: str) -> CacheFileSys:
        self._looked_up.add(str(url))
        return self.task_cache
