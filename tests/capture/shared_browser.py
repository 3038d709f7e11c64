"""Captures with other settings and hosts by a browser that runs already."""

from contextlib import asynccontextmanager

from mind2web2.capture.browser_manager import BatchBrowserManager
from mind2web2.capture.models import CaptureSettings
from mind2web2.capture.network.proxy import FilteringProxy
from mind2web2.capture.page_tries import CaptureTools


class _Manager(BatchBrowserManager):
    """A manager that starts no browser."""

    def __init__(self, tools):
        super().__init__(settings=tools.settings)
        self._tools = tools


@asynccontextmanager
async def capturing(browser, network, max_retries=1, **changes):
    """Yield a manager with a proxy and settings of its own, over the shared browser."""
    settings = CaptureSettings(network=network, **changes)
    async with FilteringProxy(network) as proxy:
        version = await browser.start()
        tools = CaptureTools.of(
            settings,
            proxy,
            browser,
            max_pages=5,
            max_retries=max_retries,
            browser_version=version,
        )
        yield _Manager(tools)
