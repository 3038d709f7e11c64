"""The browser that captures pages, as eval scripts know it (contract.md)."""

from __future__ import annotations

import logging
from types import TracebackType
from typing import Self

from mind2web2.errors import CaptureError


class BatchBrowserManager:
    """Captures pages with one browser for many URLs.

    This version has no browser yet: every page counts as one that cannot be had, with that reason, until
    it is in the cache.

    Args:
        headless: without a window.
        max_concurrent_pages: captured at once.
        max_retries: of a failed capture.
    """

    def __init__(self, headless: bool = True, max_concurrent_pages: int = 5, max_retries: int = 1) -> None:
        self.headless = headless
        self.max_concurrent_pages = max_concurrent_pages
        self.max_retries = max_retries

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    async def capture_page(self, url: str, logger: logging.Logger) -> tuple[str | None, str | None]:
        """Return the screenshot as base64 text and the page's text.

        Raises:
            CaptureError: always, as long as there is no browser.
        """
        logger.info("page not captured, this version has no browser url=%s", url)
        raise CaptureError("not in the cache, and this version has no browser to capture it with")
