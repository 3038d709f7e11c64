"""What a capture shows of pages whose facts are known: everything that can be seen, and nothing else."""

import asyncio

import pytest
from page_facts import CORPUS, corpus, missing, shown
from servers.toothed_site import SiteServer

from mind2web2.capture.browser_manager import BatchBrowserManager
from mind2web2.capture.models import CaptureSettings, NetworkSettings

PAGES = corpus()


async def capture_all(server):
    """Capture the corpus with one browser, several pages at once."""
    network = NetworkSettings(host_map=server.host_map, trusted_keys=(server.spki,))
    async with BatchBrowserManager(settings=CaptureSettings(network=network)) as manager:
        pages = await asyncio.gather(*(manager.capture(page.url) for page in PAGES))
    return {expected.url: page for expected, page in zip(PAGES, pages, strict=True)}


@pytest.fixture(scope="module")
def captured():
    """Every page of the corpus, captured once."""
    with SiteServer(CORPUS) as server:
        return asyncio.run(capture_all(server))


@pytest.mark.parametrize("expected", PAGES, ids=[page.url.removeprefix("https://") for page in PAGES])
def test_a_capture_shows_what_is_to_be_seen(captured, expected):
    """All of it, nothing that is hidden, and without a complaint about the page."""
    page = captured[expected.url]
    assert page.record.failure is None
    assert missing(expected, page) == []
    assert shown(expected, page) == []
    assert page.record.troubles == ()
