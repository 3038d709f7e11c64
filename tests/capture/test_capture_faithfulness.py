"""A capture shows everything that can be seen on a page, and nothing else."""

import asyncio

import pytest
import pytest_asyncio
from capture.shared_browser import capturing
from page_facts import CORPUS, corpus, missing, shown
from servers.toothed_site import SiteServer

from mind2web2.capture.models import NetworkSettings

PAGES = corpus()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def manager(browser):
    """Captures of the corpus's sites."""
    with SiteServer(CORPUS) as server:
        network = NetworkSettings(host_map=server.host_map)
        async with capturing(browser, network) as manager:
            yield manager


@pytest.mark.parametrize(
    "expected", PAGES, ids=[page.url.removeprefix("https://") for page in PAGES]
)
async def test_a_capture_shows_what_is_to_be_seen(manager, expected):
    """All of it, nothing that is hidden, and without a complaint about the page."""
    page = await manager.capture(expected.url)
    assert page.record.failure is None
    assert missing(expected, page) == []
    assert shown(expected, page) == []
    assert page.record.troubles == ()


async def test_captures_at_the_same_time_show_the_same(manager):
    """Each page has its own time, scrolling and connections."""
    some = PAGES[:: len(PAGES) // 5]
    pages = await asyncio.gather(*(manager.capture(page.url) for page in some))
    for expected, page in zip(some, pages, strict=True):
        assert (page.record.failure, missing(expected, page)) == (None, [])
