"""Page caches for the judge's questions: ours, and simpler ones that scripts bring.

A script's own cache needs the methods of ``PageCache`` alone. The functions below ask for what ours
can do beyond that, and say what holds for a cache that lacks it.
"""

from __future__ import annotations

from typing import Any, Protocol

from mind2web2.capture.models import CapturedPage, CaptureRecord, PageKind


class PageCache(Protocol):
    """The methods of a cache (eval-scripts.md, "Cache, tools, client")."""

    def has(self, url: str) -> PageKind | None:
        """Tell how the page is stored."""

    def get_web(self, url: str, get_screenshot: bool = True) -> tuple[str, bytes | None]:
        """Return text and screenshot."""

    def get_pdf(self, url: str) -> bytes:
        """Return the PDF."""

    def put_web(self, url: str, text: str, screenshot: str | bytes | None) -> Any:
        """Store a page."""

    def put_pdf(self, url: str, pdf_bytes: bytes) -> Any:
        """Store a PDF."""


def _asked(cache: PageCache, name: str, *arguments: Any, default: Any = None) -> Any:
    """Return what a method of our own caches says, the default for a cache that lacks it."""
    return getattr(cache, name, lambda *_: default)(*arguments)


def page_digest(cache: PageCache, url: str) -> str | None:
    """Return a digest of a stored page, ``None`` where there is none; reads files."""
    digest: str | None = _asked(cache, "digest", url)
    return digest


def capture_record(cache: PageCache, url: str) -> CaptureRecord | None:
    """Return the record of a page's capture, ``None`` where there is none; reads a file."""
    record: CaptureRecord | None = _asked(cache, "capture_record", url)
    return record


def listed_failure(cache: PageCache, url: str) -> str | None:
    """Return why a page is listed as unavailable, ``None`` for one that is not; may read a file."""
    failure: str | None = _asked(cache, "listed_failure", url)
    return failure


def addresses(cache: PageCache) -> list[str] | None:
    """Return the URLs of stored pages and those redirected to them.

    ``None`` from a cache without a list.
    """
    stored = _asked(cache, "get_all_urls")
    return None if stored is None else [*stored, *_asked(cache, "redirected_urls", default=())]


def copy_page(cache: PageCache, url: str, source: PageCache) -> bool:
    """Copy a page from another cache; return whether that could be done."""
    is_copied: bool = _asked(cache, "copy_page", url, source, default=False)
    return is_copied


def put_capture(cache: PageCache, page: CapturedPage, url: str, *, must_be_better: bool) -> None:
    """Store a captured page, in a cache that keeps records with its record.

    Raises:
        CacheWriteError: it cannot be stored.
    """
    put = getattr(cache, "put_capture", None)
    if put is not None:
        put(page, url=url, must_be_better=must_be_better)
    elif page.pdf is not None:
        cache.put_pdf(url, page.pdf)
    elif page.record.kind == "web":
        cache.put_web(url, page.text or "", page.screenshot)
