"""The browser that captures pages, as eval scripts know it."""

from __future__ import annotations

import base64
import logging
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Self

from mind2web2.capture.browser import Browser
from mind2web2.capture.models import (
    CapturedPage,
    CaptureRecord,
    CaptureSettings,
    PackageBrowser,
)
from mind2web2.capture.network.proxy import FilteringProxy
from mind2web2.capture.page_tries import CaptureTools, PageTries
from mind2web2.capture.pdf import render_pdf
from mind2web2.errors import DocumentError, MachineError

log = logging.getLogger(__name__)


class BatchBrowserManager(PackageBrowser):
    """Captures pages with one browser, many at once, politely and within bounds.

    Used as an async context manager. Everything that a page fetches goes through a filtering proxy
    that connects to public addresses only. A page that fails for a temporary reason is tried again;
    a browser that crashes is started again.

    Args:
        headless: without a window.
        max_concurrent_pages: captured at once.
        max_retries: of a page whose capture failed for a temporary reason.
        settings: everything else; its ``headless`` gives way to the argument.
    """

    def __init__(
        self,
        headless: bool = True,
        max_concurrent_pages: int = 5,
        max_retries: int = 1,
        *,
        settings: CaptureSettings | None = None,
    ) -> None:
        self.headless = headless
        self.max_concurrent_pages = max_concurrent_pages
        self.max_retries = max_retries
        self.settings = replace(settings or CaptureSettings(), headless=headless)
        self._exits = AsyncExitStack()
        self._tools: CaptureTools | None = None

    async def __aenter__(self) -> Self:
        """Start proxy and browser.

        Raises:
            MachineError: there is no browser, or it does not start; the text names the remedy.
        """
        async with AsyncExitStack() as exits:
            proxy = await exits.enter_async_context(FilteringProxy(self.settings.network))
            browser = await exits.enter_async_context(Browser(self.settings))
            version = await browser.start()
            self._exits = exits.pop_all()
        self._tools = CaptureTools.of(
            self.settings,
            proxy,
            browser,
            max_pages=self.max_concurrent_pages,
            max_retries=self.max_retries,
            browser_version=version,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the browser and all its pages."""
        await self._exits.aclose()
        self._tools = None

    async def capture_page(self, url: str, logger: logging.Logger) -> tuple[str | None, str | None]:
        """Return a page's screenshot as base64 JPEG and its text; ``None`` for a missing one.

        A PDF gives its text and its first page. ``capture`` says more, such as why there is
        neither.
        """
        page = await self.capture(url, logger)
        if page.pdf is not None:
            return await _pdf_shown(page.pdf)
        screenshot = base64.b64encode(page.screenshot).decode() if page.screenshot else None
        return screenshot, page.text

    async def capture(
        self,
        url: str,
        logger: logging.Logger | None = None,
        *,
        is_patient: bool = False,
    ) -> CapturedPage:
        """Return a page's content, with a record of its capture and of signs of trouble.

        A failed capture raises nothing: its record's ``failure`` says why.

        Args:
            is_patient: wait longer for the server's answer.

        Raises:
            MachineError: the browser does not start any more.
        """
        page = await PageTries(self._open_tools(), url, is_patient=is_patient).run()
        _log_outcome(logger or log, page.record)
        return page

    def _open_tools(self) -> CaptureTools:
        if self._tools is None:
            raise MachineError(
                "the browser is not open: use `async with BatchBrowserManager() as manager`"
            )
        return self._tools


def _log_outcome(logger: logging.Logger, record: CaptureRecord) -> None:
    if record.failure:
        logger.info("page not captured url=%s reason=%s", record.requested_url, record.failure)
        return
    logger.info(
        "page captured url=%s kind=%s status=%s chars=%d troubles=%s",
        record.requested_url,
        record.kind,
        record.status,
        record.text_chars,
        ",".join(trouble.kind for trouble in record.troubles) or "none",
    )


async def _pdf_shown(pdf: bytes) -> tuple[str | None, str | None]:
    """Return a PDF's first page as base64 JPEG and the text of all its pages."""
    try:
        rendered = await render_pdf(pdf, max_image_pages=1)
    except DocumentError as error:
        log.info("pdf captured but not readable reason=%s", error)
        return None, None
    if rendered.images:
        first = base64.b64encode(rendered.images[0]).decode()
    else:
        first = None
    return first, rendered.text or None
