"""The real Chromium for the tests of this folder, started once in each process that runs them."""

import inspect

import pytest
import pytest_asyncio
from capture.loaded import end_sessions
from patchright.async_api import async_playwright
from servers.toothed_site import certificate

from mind2web2.capture.browser import Browser
from mind2web2.capture.models import CaptureSettings, NetworkSettings


def pytest_collection_modifyitems(items):
    """Run the tests of this folder in the event loop that the browser lives in."""
    for item in items:
        if item.nodeid.startswith("tests/capture/") and inspect.iscoroutinefunction(item.function):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser():
    """The browser as captures use it, for tests that do it no harm.

    It trusts every ``SiteServer``.
    """
    network = NetworkSettings(trusted_keys=(certificate().spki,))
    async with Browser(CaptureSettings(network=network)) as browser:
        yield browser


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium():
    """The system's headless Chromium, without our proxy or settings."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path="/usr/bin/chromium-headless-shell"
        )
        yield browser
        await browser.close()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def tab(chromium):
    """A tab for all tests of a module: to open one takes longer than most tests."""
    context = await chromium.new_context()
    yield await context.new_page()
    await context.close()


@pytest_asyncio.fixture(loop_scope="session")
async def page(tab):
    """The tab, empty and as wide as captures are.

    Another document has other scripts and prototypes.
    """
    await tab.set_viewport_size({"width": 1100, "height": 1400})
    await tab.goto("about:blank")
    yield tab
    await end_sessions(tab)
