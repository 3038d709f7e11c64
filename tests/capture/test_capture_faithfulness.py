"""What a capture shows of pages whose facts are known: everything that can be seen, and nothing else."""

import asyncio

import pytest
import pytest_asyncio
from capture.shared_browser import capturing
from page_facts import CORPUS, corpus, missing, shown
from servers.toothed_site import SiteServer

from mind2web2.capture.models import NetworkSettings

PAGES = corpus()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def captured(browser):
    """Every page of the corpus, captured once, several at the same time."""
    with SiteServer(CORPUS) as server:
        async with capturing(
            browser, NetworkSettings(host_map=server.host_map)
        ) as manager:
            pages = await asyncio.gather(*(manager.capture(page.url) for page in PAGES))
    return {expected.url: page for expected, page in zip(PAGES, pages, strict=True)}


@pytest.mark.parametrize(
    "expected", PAGES, ids=[page.url.removeprefix("https://") for page in PAGES]
)
def test_a_capture_shows_what_is_to_be_seen(captured, expected):
    """All of it, nothing that is hidden, and without a complaint about the page."""
    page = captured[expected.url]
    assert page.record.failure is None
    assert missing(expected, page) == []
    assert shown(expected, page) == []
    assert page.record.troubles == ()
