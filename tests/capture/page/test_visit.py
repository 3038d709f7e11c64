"""Pages are waited for, held in place and stopped, whatever they do."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
import pytest_asyncio
from servers.toothed_site import BEHIND, FACT, ToothedSite

from mind2web2.capture.models import CaptureSettings, NetworkSettings
from mind2web2.capture.network.proxy import FilteringProxy
from mind2web2.capture.page import visit as visit_module
from mind2web2.capture.page.visit import Visit
from mind2web2.capture.page_failure import PageFailureError

LONG_S = 20.0


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def tools(browser):
    """The site with teeth, the proxy and the browser, for all tests of this module."""
    with ToothedSite() as site:
        network = NetworkSettings(host_map=site.host_map)
        settings = CaptureSettings(network=network, load_timeout_s=LONG_S)
        async with FilteringProxy(network) as proxy:
            yield site, settings, proxy, browser


@pytest.fixture
def visit(tools):
    """Visits a tooth and gives the visit back before it ends."""
    site, settings, proxy, browser = tools

    @asynccontextmanager
    async def open_tooth(name, limits=None, **query):
        async with (
            proxy.session(max_bytes=settings.max_page_bytes) as session,
            browser.page(session.server_url) as (page, cdp),
            Visit(page, cdp, limits or settings) as visit,
        ):
            await visit.open(site.at(name, **query))
            yield visit

    return open_tooth


@pytest.mark.parametrize(
    "tooth",
    [
        "plain",
        "slow-headers",
        "slow-body",
        "drip",
        "late",
        "late-fetch",
        "animation",
        "wrong-charset",
        "packed",
    ],
)
async def test_what_comes_late_is_waited_for(visit, tooth):
    """Responses and timers alike, however long the page's own clock says they take."""
    async with visit(tooth) as visited:
        state = await visited.state()
        assert FACT in state.text
        assert (BEHIND in state.text) == (tooth != "wrong-charset")
        assert visited.is_complete


@pytest.mark.parametrize("tooth", ["redirect", "meta-refresh", "js-redirect", "challenge"])
async def test_a_page_on_the_way_to_another_is_not_stayed_on(visit, tooth):
    async with visit(tooth) as visited:
        assert BEHIND in (await visited.state()).text


@pytest.mark.parametrize(
    ("tooth", "held_back"),
    [
        ("navigates-away", ["elsewhere"]),
        ("reload-loop", None),
        ("history-loop", None),
        ("opens-windows", None),
        ("unload-dialog", None),
    ],
)
async def test_a_page_is_held_in_place(visit, tooth, held_back):
    async with visit(tooth) as visited:
        assert FACT in (await visited.state()).text
        assert f"/teeth/{tooth}" in visited.navigation.document.url
        assert visited.page.context.pages == [visited.page]
        if held_back:
            while not visited.navigation.held_back:  # noqa: ASYNC110 - an event of the browser
                await asyncio.sleep(0.01)
            assert [url.rpartition("/")[2] for url in visited.navigation.held_back] == held_back


@pytest.mark.parametrize("tooth", ["alerts", "busy", "busy-at-once", "print-loop"])
async def test_a_page_that_never_rests_is_stopped_and_read(visit, tools, tooth, monkeypatch):
    monkeypatch.setattr(visit_module, "_BLOCKED_AFTER_S", 1.5)
    limits = replace(tools[1], settle_timeout_s=2.0)
    async with visit(tooth, limits) as visited:
        assert FACT in (await visited.state()).text
        if tooth == "busy":
            assert not visited.is_complete
            assert "the page's scripts were stopped, since they did not rest" in visited.notes


@pytest.mark.parametrize("tooth", ["silent-body", "endless-stream"])
async def test_a_document_without_end_is_read_as_far_as_it_came(visit, tools, tooth):
    limits = CaptureSettings(network=tools[1].network, load_timeout_s=2.0)
    async with visit(tooth, limits) as visited:
        assert FACT in (await visited.state()).text
        assert not visited.is_complete
        assert "still loading after 2 s" in visited.notes[0]


@pytest.mark.parametrize(
    ("tooth", "kind", "transient"),
    [
        ("drop", "navigation_error", True),
        ("redirect-loop", "navigation_error", False),
        ("crash-at-once", "crash", True),
        ("crash", "crash", True),
    ],
)
async def test_a_page_that_yields_nothing_says_why(visit, tooth, kind, transient):
    """A lost connection may be found again, an endless redirect stays one."""
    with pytest.raises(PageFailureError) as failure:
        async with visit(tooth):
            pass
    assert (failure.value.kind, failure.value.is_transient) == (kind, transient)


@pytest.mark.parametrize(
    ("tooth", "kind"),
    [
        ("document", "pdf"),
        ("table.csv", "text"),
        ("record.json", "text"),
        ("note.txt", "text"),
        ("feed.xml", "text"),
        ("picture.png", "image"),
        ("attached.csv", "text"),
        ("archive.zip", None),
    ],
)
async def test_a_file_comes_from_the_one_response(visit, tools, tooth, kind):
    site = tools[0]
    before = site.hits(f"/teeth/{tooth}")
    async with visit(tooth) as visited:
        assert visited.navigation.document.file.kind() == kind
    assert site.hits(f"/teeth/{tooth}") == before + 1


@pytest.mark.parametrize("tooth", ["landing.pdf", "attached.html"])
async def test_a_page_under_a_files_name_is_a_page(visit, tooth):
    """Neither the ending of an address nor an attachment's header makes a file of a page."""
    async with visit(tooth) as visited:
        assert visited.navigation.document.file is None
        assert FACT in (await visited.state()).text


async def test_a_file_beyond_the_bound_is_cut(visit, tools):
    """Downloads are bounded, and the cut is known."""
    limits = CaptureSettings(network=tools[1].network, max_document_bytes=20)
    async with visit("note.txt", limits) as visited:
        file = visited.navigation.document.file
        assert (len(file.body), file.is_cut) == (20, True)


async def test_what_the_server_said_is_kept(visit):
    """Status, headers and the way through redirects."""
    async with visit("status", code=404) as visited:
        assert visited.navigation.document.status == 404
    async with visit("redirect", n=5) as visited:
        assert len(visited.navigation.document.redirects) == 5
        assert visited.navigation.document.content_type.startswith("text/html")
