"""Captures from the first try to the record, through the manager that scripts know."""

import asyncio
import base64
import contextlib
import logging
import os
import signal
import threading
from pathlib import Path

import pytest
import pytest_asyncio
from capture.shared_browser import capturing
from capture.small_site import SmallSite
from capture.users_browser import users_browser
from fixtures.process_tree import descendants
from patchright.async_api import async_playwright
from servers.toothed_site import BEHIND, FACT, HOST, ToothedSite

from mind2web2.capture import page_tries
from mind2web2.capture.browser_manager import BatchBrowserManager
from mind2web2.capture.models import CaptureSettings, NetworkSettings
from mind2web2.errors import MachineError

LOGGER = logging.getLogger(__name__)


@pytest.fixture(autouse=True)
def _short_delay(monkeypatch):
    """Try a page again without the delay of a second."""
    monkeypatch.setattr(page_tries, "_FIRST_DELAY_S", 0.05)


def settings_for(site, **changes):
    """Return settings under which the site's hosts are to be had."""
    network = NetworkSettings(host_map=site.host_map, trusted_keys=(site.spki,))
    return CaptureSettings(network=network, **changes)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def site():
    """The site with teeth."""
    with ToothedSite() as site:
        yield site


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def manager(browser, site):
    """Captures of the site's pages."""
    async with capturing(browser, NetworkSettings(host_map=site.host_map)) as manager:
        yield manager


async def test_a_page_and_its_record(manager, site):
    """All that a later reader has to know of where it came from."""
    page = await manager.capture(site.at("redirect"))
    record = page.record
    assert FACT in page.text
    assert page.screenshot.startswith(b"\xff\xd8\xff")
    assert (record.kind, record.status, record.tries) == ("web", 200, 1)
    assert (record.requested_url, record.final_url) == (
        site.at("redirect"),
        site.at("plain"),
    )
    assert (record.title, record.text_chars) == ("The weir", len(page.text))
    assert record.content_type.startswith("text/html")
    assert record.captured_at.endswith("+00:00")
    assert {"open", "read", "picture"} <= record.timings_s.keys()
    assert (record.troubles, record.failure, record.refused) == ((), None, ())


@pytest.mark.parametrize("tooth", ["drop-then-fine", "error-then-fine", "limited-then-fine"])
async def test_what_passes_is_tried_again(manager, site, tooth):
    """A page that is there on the second try is there."""
    page = await manager.capture(site.at(tooth, once="tries"))
    assert BEHIND in page.text
    assert (page.record.tries, page.record.troubles) == (2, ())


@pytest.mark.parametrize(("code", "tries"), [(500, 2), (404, 1)])
async def test_an_error_that_stays_is_kept_as_what_it_is(manager, site, code, tries):
    """The server's own page is content, flagged; what is gone for good is asked for once."""
    page = await manager.capture(site.at("status", code=code, own="stays"))
    assert [trouble.kind for trouble in page.record.troubles] == ["http_error"]
    assert (page.record.kind, page.record.status, page.record.tries) == (
        "web",
        code,
        tries,
    )
    assert page.record.is_transient is (tries > 1)
    assert f"Error {code}" in page.text


async def test_a_torn_page_is_kept_as_far_as_it_came(manager, site):
    page = await manager.capture(site.at("drop-body"))
    assert FACT in page.text
    assert (page.record.tries, page.record.is_transient) == (2, True)
    assert [trouble.kind for trouble in page.record.troubles] == ["incomplete"]


@pytest.mark.parametrize(
    ("url", "kind", "transient", "words"),
    [
        ("https://{host}/teeth/drop", "navigation_error", True, "without a reply"),
        (
            "https://{host}/teeth/archive.zip",
            "unsupported_type",
            False,
            "application/zip",
        ),
        ("http://127.0.0.1:{port}/", "refused_address", False, "127.0.0.1"),
        ("http://[::ffff:127.0.0.1]:{port}/", "refused_address", False, "refused"),
        (
            "file:///etc/hostname",
            "refused_address",
            False,
            "not an http or https address",
        ),
        (
            "javascript:alert(1)",
            "refused_address",
            False,
            "not an http or https address",
        ),
        ("not a url", "refused_address", False, "not an http or https address"),
        (
            "https://no-such-name.invalid/",
            "navigation_error",
            False,
            "no-such-name.invalid",
        ),
    ],
)
async def test_nothing_had_is_a_record_of_why(manager, site, url, kind, transient, words):
    """A failure has no content, least of all its own error message."""
    page = await manager.capture(url.format(host=HOST, port=site.port))
    assert (page.text, page.screenshot, page.pdf, page.record.kind) == (
        None,
        None,
        None,
        None,
    )
    assert (page.record.troubles[0].kind, page.record.is_transient) == (kind, transient)
    assert words in page.record.failure


async def test_an_untrusted_certificate_is_told_and_the_page_kept(site):
    network = NetworkSettings(host_map=site.host_map)
    async with BatchBrowserManager(settings=CaptureSettings(network=network)) as manager:
        page = await manager.capture(site.at("plain"))
    assert FACT in page.text
    assert [trouble.kind for trouble in page.record.troubles] == ["certificate_error"]
    assert "ERR_CERT_AUTHORITY_INVALID" in page.record.troubles[0].detail


async def test_a_pdf_is_stored_as_it_is_and_shown_to_scripts(manager, site):
    """Scripts that ask for a page's text get the PDF's."""
    page = await manager.capture(site.at("document"))
    assert page.pdf.startswith(b"%PDF-")
    assert (page.record.kind, page.text, page.screenshot) == ("pdf", None, None)
    screenshot, text = await manager.capture_page(site.at("document"), LOGGER)
    assert base64.b64decode(screenshot).startswith(b"\xff\xd8\xff")
    assert FACT in text


async def test_scripts_get_screenshot_and_text(manager, site):
    screenshot, text = await manager.capture_page(site.at("plain"), LOGGER)
    assert base64.b64decode(screenshot).startswith(b"\xff\xd8\xff")
    assert FACT in text
    assert await manager.capture_page(site.at("drop"), LOGGER) == (None, None)


async def test_a_page_that_takes_too_long_is_given_up(browser, site, manager):
    """No page outlives its time limit, and the next one has a browser."""
    network = NetworkSettings(host_map=site.host_map)
    async with capturing(browser, network, max_retries=3, page_timeout_s=3.0) as limited:
        page = await limited.capture(site.at("silent"))
    assert (page.record.kind, page.record.troubles[0].kind) == (None, "timeout")
    assert page.record.is_transient
    assert FACT in (await manager.capture(site.at("plain"))).text


async def test_a_browser_killed_under_its_pages_is_started_again(site):
    """Pages in flight are tried again, and those to come do not notice."""
    others = _browser_processes()
    async with BatchBrowserManager(settings=settings_for(site)) as manager:
        pages = [
            asyncio.create_task(manager.capture(site.at("slow-body", s=1, page=n)))
            for n in range(3)
        ]
        await _hit(site, "/teeth/slow-body", 3)
        for process in _browser_processes() - others:
            os.kill(process, signal.SIGKILL)
        captured = await asyncio.gather(*pages)
        assert [BEHIND in page.text for page in captured] == [True] * 3
        assert max(page.record.tries for page in captured) == 2


async def test_a_crashing_page_leaves_the_others_alone(manager, site):
    crashed, *others = await asyncio.gather(
        manager.capture(site.at("crash-at-once")),
        *(manager.capture(site.at("slow-headers", s=0.5, page=n)) for n in range(3)),
    )
    assert (crashed.record.kind, crashed.record.troubles[0].kind) == (None, "crash")
    assert [BEHIND in page.text for page in others] == [True] * 3


async def test_a_closed_manager_says_so():
    with pytest.raises(MachineError, match="async with BatchBrowserManager"):
        await BatchBrowserManager().capture("https://a.example/")


async def test_a_cancelled_capture_leaves_nothing_open(manager, site):
    for _ in range(manager.max_concurrent_pages + 1):
        hits = site.hits("/teeth/silent")
        capture = asyncio.create_task(manager.capture(site.at("silent", own="cancelled")))
        await _hit(site, "/teeth/silent", hits + 1)
        capture.cancel()
        await asyncio.gather(capture, return_exceptions=True)
    assert FACT in (await manager.capture(site.at("plain"))).text


async def _hit(site, path, times):
    """Wait until the site was asked so often; its log is another thread's."""
    while site.hits(path) < times:  # noqa: ASYNC110
        await asyncio.sleep(0.01)


def _browser_processes():
    """Return all browser processes that this one has started."""
    found = set()
    for pid in descendants(os.getpid()):
        with contextlib.suppress(OSError):  # it has ended
            if Path(f"/proc/{pid}/comm").read_text().startswith("chrom"):
                found.add(pid)
    return found


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def small(browser, site):
    """Return a function that captures a page of this text.

    The site with teeth can be reached too.
    """
    with SmallSite() as pages:
        network = NetworkSettings(
            host_map={**site.host_map, "small.example": ("127.0.0.1", pages.port)}
        )
        limits = {"settle_timeout_s": 1.0, "max_text_chars": 5000}
        async with capturing(browser, network, max_retries=0, **limits) as manager:

            async def capture(body, path="page", more=None):
                pages.pages = {f"/{path}": HTML + body} | (more or {})
                return await manager.capture(f"http://small.example/{path}")

            yield capture


HTML = "<!doctype html><meta charset=utf-8>"
ARTICLE = (
    "<h1>The lock</h1><p>"
    + "The lock at Brim was built in 1887 and raises boats by four metres. " * 6
)


async def test_a_page_is_recorded_with_where_it_is(manager, site):
    """A bare domain is recorded too; a client-side route differs from the address without it."""
    plain = site.at("plain")
    for asked, final in (
        (f"{HOST}/teeth/plain", plain),
        (f"{plain}#/about", f"{plain}#/about"),
        (site.at("redirect") + "#!about", f"{plain}#!about"),
    ):
        page = await manager.capture(asked)
        assert (page.record.final_url, FACT in page.text) == (final, True)


async def test_a_torn_page_is_torn_at_an_address_with_a_fragment(manager, site):
    """The fragment is not part of the request."""
    page = await manager.capture(site.at("drop-body", own="fragment") + "#part")
    assert [trouble.kind for trouble in page.record.troubles] == ["incomplete"]


ASKS = (
    "<title>Before you continue</title><h1>Before you continue</h1><p>We use cookies. Cookies "
    "help us.</p>"
)
CHOICES = "<form action='/{}'><button>Reject all</button><button>Accept all</button></form>"


async def test_what_a_request_for_consent_led_away_from_is_kept(small):
    """The page that consent led away from may have been the one that was asked for."""
    body = f"{ASKS}<p>The weir is open from May.</p>{CHOICES.format('region')}"
    page = await small(body, more={"/region": HTML + ARTICLE})
    assert "The weir is open from May." in page.text
    assert page.screenshot.startswith(b"\xff\xd8\xff")
    assert page.record.final_url == page.record.requested_url
    assert [trouble.kind for trouble in page.record.troubles] == ["consent_wall"]


BANNER = (
    "<div id=c style='position:fixed;bottom:0;left:0;right:0;background:#eee;padding:20px'>We use "
    "cookies to improve our site. <button onclick='c.remove()'>Reject all</button><button "
    "onclick='c.remove()'>Accept all</button></div>"
)
COVERED = {
    "a request that leads to the page": (
        f"{ASKS}<form action='/page?utm_consent=1'><input type=hidden name=utm_ok "
        "value=1><button>Accept all</button></form><script>if (location.search) "
        f"document.body.innerHTML = `{ARTICLE}`</script>",
        "The lock at Brim",
        [],
    ),
    "a banner on a short page": (
        f"<p>It is 41 metres tall and was lit in 1887.</p>{BANNER}",
        "41 metres",
        [],
    ),
    "a wall over the page": (
        f"{ARTICLE}<div role=dialog style='position:fixed;inset:0;background:white'>"
        "Subscribe to continue reading. Already a subscriber?</div>",
        "The lock at Brim",
        ["login_wall"],
    ),
    "more text than the bound": (ARTICLE * 20, "The lock at Brim", ["incomplete"]),
}


@pytest.mark.parametrize("name", COVERED)
async def test_a_page_behind_a_request_or_wall_is_read(small, name):
    body, text, troubles = COVERED[name]
    page = await small(body)
    assert text in page.text
    assert [trouble.kind for trouble in page.record.troubles] == troubles


async def test_an_address_that_scripts_set_tells_where_the_page_led(small):
    """A login or the home page in place of the page is noticed, and is not a second address."""
    page = await small(
        f"{ARTICLE}<script>history.replaceState(0, '', '/')</script>", path="lists/7"
    )
    assert [trouble.kind for trouble in page.record.troubles] == ["soft_404"]
    assert page.record.final_url == page.record.requested_url


async def test_a_stylesheet_that_does_not_come_costs_no_screenshot(small):
    page = await small(f"<link rel=stylesheet href='https://{HOST}/teeth/silent'>{ARTICLE}")
    assert "The lock at Brim" in page.text
    assert page.screenshot.startswith(b"\xff\xd8\xff")


async def test_a_missing_screenshot_is_noted(small):
    """A page of a single colour has none to show."""
    page = await small(
        "<p style='color:white;font-size:1px'>.</p><title>Nothing</title>" + "<!--x-->"
    )
    assert (page.screenshot, page.record.kind) == (None, None)
    assert any(note.startswith("no screenshot") for note in page.record.notes)


class TellingPages(dict):
    """Pages that tell when the first of them is asked for."""

    def __init__(self):
        super().__init__()
        self.are_asked_for = threading.Event()

    def get(self, path):
        """Return the page."""
        self.are_asked_for.set()
        return super().get(path)


async def test_the_users_browser_captures_many_at_once_and_keeps_its_tabs(tmp_path):
    """Each page is whole, pop-ups are closed, and the user's own tabs stay."""
    with SmallSite() as pages:
        port = pages.port
        pages.pages = TellingPages()
        for letter in "abcde":
            pages.pages[f"/{letter}"] = (
                f"{HTML}<script>window.open('/popup')</script><p>Page {letter}</p>{ARTICLE}"
            )
        hosts = [f"{letter}.example" for letter in "abcde"]
        network = NetworkSettings(host_map=dict.fromkeys(hosts, ("127.0.0.1", port)))
        rules = f"--host-resolver-rules=MAP *.example 127.0.0.1:{port}"
        async with (
            users_browser(tmp_path, rules) as address,
            async_playwright() as user,
        ):
            chrome = await user.chromium.connect_over_cdp(address)
            settings = CaptureSettings(network=network, cdp_url=address)
            async with BatchBrowserManager(max_retries=0, settings=settings) as manager:
                captures = [
                    asyncio.create_task(manager.capture(f"http://{letter}.example/{letter}"))
                    for letter in "abcde"
                ]
                assert await asyncio.to_thread(pages.pages.are_asked_for.wait, 20)
                own = await chrome.contexts[0].new_page()
                await own.goto("about:blank#mine")
                done = await asyncio.gather(*captures)
            assert [page.record.failure for page in done] == [None] * 5
            assert all(
                f"Page {letter}" in page.text for letter, page in zip("abcde", done, strict=True)
            )
            browser_session = await chrome.new_browser_cdp_session()
            targets = (await browser_session.send("Target.getTargets"))["targetInfos"]
            left = {target["url"] for target in targets if target["type"] == "page"}
            assert left == {"about:blank#users", "about:blank#mine"}


async def test_the_record_says_whether_a_part_came_from_a_private_network(browser):
    """Other runs may not go there; a local replica of a site stands for the site."""
    with SmallSite() as pages, SmallSite() as internal:
        picture = f"<img src='{internal.url}/map.png'>"
        pages.pages |= {"/a": HTML + ARTICLE, "/b": HTML + ARTICLE + picture}
        hosts = {"a.example": ("127.0.0.1", pages.port)}
        network = NetworkSettings(allow_private_network=True, host_map=hosts)
        async with capturing(browser, network) as manager:
            records = [(await manager.capture(f"http://a.example/{name}")).record for name in "ab"]
    assert [record.is_private for record in records] == [False, True]


@pytest.mark.parametrize("is_allowed", [False, True])
async def test_the_users_browser_loads_frames_from_within_where_allowed(tmp_path, is_allowed):
    with SmallSite() as pages, SmallSite() as internal:
        internal.pages["/secret"] = f"{HTML}<p>Internal secret</p>"
        pages.pages["/a"] = (
            f"{HTML}{ARTICLE}<iframe src='{internal.url}/secret' width=400 height=200></iframe>"
        )
        port = pages.port
        hosts = {"a.example": ("127.0.0.1", port)}
        network = NetworkSettings(allow_private_network=is_allowed, host_map=hosts)
        rules = f"--host-resolver-rules=MAP *.example 127.0.0.1:{port}"
        async with users_browser(tmp_path, rules) as address:
            settings = CaptureSettings(network=network, cdp_url=address)
            async with BatchBrowserManager(max_retries=0, settings=settings) as manager:
                page = await manager.capture("http://a.example/a")
        assert ("/secret" in internal.asked) is is_allowed
        assert "The lock at Brim" in page.text
        refused = [refused.host for refused in page.record.refused]
        assert refused == ([] if is_allowed else ["127.0.0.1"])
        assert page.record.is_private is is_allowed
