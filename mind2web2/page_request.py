"""Which page is wanted and how, and what is asked of the cache that may hold it."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Protocol

from mind2web2.capture.record import CaptureRecord
from mind2web2.llm_client.chat import Limit
from mind2web2.prepared_page import PageKind, PageSettings
from mind2web2.shared_captures import SharedCaptures


class PageCache(Protocol):
    """What is asked of a cache (contract.md, "Cache, tools, client")."""

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


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Which page is wanted, and how.

    Args:
        cache: where it is stored, and where a captured page goes.
        capture: asked for a page that is not stored; ``None`` where a run captures nothing.
        limit: entered around a capture.
        with_images: ``False`` for the text alone.
    """

    cache: PageCache
    url: str
    settings: PageSettings
    with_images: bool
    capture: SharedCaptures | None
    limit: Limit
    logger: logging.Logger

    @property
    def shared_cache(self) -> PageCache:
        """Return the task's cache behind an answer's."""
        return shared_cache(self.cache)

    def record(self) -> CaptureRecord | None:
        """Return what is known of the page's capture; reads a file. Caches of another kind know nothing."""
        capture_record = getattr(self.cache, "capture_record", None)
        record: CaptureRecord | None = None if capture_record is None else capture_record(self.url)
        return record

    def digest(self) -> str | None:
        """Return a digest of the stored page; reads its files. Caches of another kind may know none."""
        digest = getattr(self.cache, "digest", None)
        found: str | None = None if digest is None else digest(self.url)
        return found


def shared_cache(cache: PageCache) -> PageCache:
    """Return the task's cache behind an answer's."""
    shared: PageCache = getattr(cache, "task_cache", cache)
    return shared
