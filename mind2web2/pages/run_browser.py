"""The browser of a run, opened for the first page that is not stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mind2web2.capture.browser_manager import BatchBrowserManager
    from mind2web2.capture.models import CaptureSettings
    from mind2web2.pages.captures import OpenBrowser, PageCapture

# This module is loaded with the first browser. It imports 18 others, and most runs find every page
# stored.
_MANAGER_MODULE = "mind2web2.capture.browser_manager"


async def _no_check() -> None:
    """Let every capture begin."""


def run_browser(
    settings: CaptureSettings,
    max_pages: int,
    check: Callable[[], Awaitable[None]] = _no_check,
) -> OpenBrowser:
    """Return what opens a browser of our own, for ``SharedCaptures``.

    Args:
        max_pages: captured at once.
        check: awaited before the browser opens; raises where captures would serve no purpose.
    """

    @asynccontextmanager
    async def open_browser() -> AsyncIterator[PageCapture]:
        await check()
        module = await asyncio.to_thread(import_module, _MANAGER_MODULE)
        manager: type[BatchBrowserManager] = module.BatchBrowserManager
        async with manager(
            settings.headless, max_concurrent_pages=max_pages, settings=settings
        ) as browser:
            yield browser

    return open_browser
