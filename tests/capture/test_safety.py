"""Safety: no page reaches an internal address in any way, and a record says what it tried."""

import asyncio
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_address

import pytest
from patchright.async_api import Error
from servers.hostile_site import (
    WAYS,
    WITHOUT_REQUEST,
    CanaryNames,
    host_of,
    hostile_site,
    http_server,
)
from servers.tcp_server import tcp_server, udp_canary

from mind2web2.capture.browser import Browser
from mind2web2.capture.models import CaptureSettings, NetworkSettings
from mind2web2.capture.network.proxy import FilteringProxy

LOOPBACK = ip_address("127.0.0.1")
# A secure context, as an https page is, without a certificate.
SITE = "hostile.localhost"
PATIENCE_S = 20
INTERNAL = """
    127.0.0.1 127.1 127.0.1 2130706433 0x7f000001 0x7f.1 0177.0.0.1 127.0.0.1. %31%32%37.1
    [::1] [::ffff:127.0.0.1] [::ffff:7f00:1] [0:0:0:0:0:ffff:127.0.0.1] [::127.0.0.1] localhost LOCALHOST.
    foo.localhost 0.0.0.0 0 [::] \uff11\uff12\uff17.0.0.1 127\u30020\u30020\u30021 \u2460\u2461\u2466.1
    169.254.169.254 10.0.0.1 192.168.0.1 172.16.0.1 100.64.0.1 100.100.100.200 [fd00::1] [fe80::1]
"""
SPELLINGS = INTERNAL.split()
# The browser's own spellings of these hosts in its requests.
REFUSED_HOSTS = """
    127.0.0.1 ::1 ::ffff:7f00:1 ::7f00:1 localhost foo.localhost 0.0.0.0 :: 169.254.169.254 10.0.0.1
    192.168.0.1 172.16.0.1 100.64.0.1 100.100.100.200 fd00::1 fe80::1
"""


@asynccontextmanager
async def proxied_page(browser, network, resolve=None):
    """Open a page that goes through a proxy; yields the page and the proxy's session."""
    async with (
        FilteringProxy(network, resolve=resolve) as proxy,
        proxy.session(10**9) as session,
        browser.page(session.server_url) as (page, _),
    ):
        yield page, session


@asynccontextmanager
async def attack(browser, *, allow_private_network):
    """Let the hostile page try everything.

    Yields the canary, the names asked for and the proxy's session.
    """
    names = CanaryNames(LOOPBACK, WAYS)
    arriving = {host_of(way) for way in WAYS.keys() - WITHOUT_REQUEST}
    async with (
        http_server(lambda _: (200, {}, ""), arriving) as canary,
        hostile_site(canary.port) as site,
    ):
        network = NetworkSettings(allow_private_network, host_map={SITE: ("127.0.0.1", site.port)})
        async with proxied_page(browser, network, names) as (page, session):
            await page.goto(f"http://{SITE}/", wait_until="commit")
            with suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE_S):
                    await names.all_asked.wait()
            yield canary, names, session


async def test_no_way_out_of_a_page_reaches_an_internal_address(browser):
    """Everything that a page can start is refused with a record of it, and nothing arrives."""
    async with attack(browser, allow_private_network=False) as (canary, names, session):
        assert names.missing == set()
    assert canary.count() == 0
    assert {refused.host for refused in session.refused} >= {host_of(way) for way in WAYS}
    assert {refused.reason for refused in session.refused} == {"127.0.0.1 is a loopback address"}


async def test_every_way_out_would_arrive_if_it_were_allowed(browser):
    """The attempts are real: with private networks allowed, each of them arrives."""
    async with attack(browser, allow_private_network=True) as (canary, names, session):
        assert names.missing == set()
        async with asyncio.timeout(PATIENCE_S):
            await canary.complete.wait()
    assert session.refused == []


async def test_no_spelling_of_an_internal_address_can_be_opened(browser):
    """Each is refused with a record, opened directly and by a redirect."""
    async with http_server(lambda _: (200, {"Content-Type": "text/html"}, "secret")) as canary:

        def redirect(path):
            return (
                302,
                {"Location": f"http://{SPELLINGS[int(path[1:])]}:{canary.port}/"},
                "",
            )

        async with http_server(redirect) as site:
            network = NetworkSettings(host_map={SITE: ("127.0.0.1", site.port)})
            async with proxied_page(browser, network) as (page, session):
                for number, spelling in enumerate(SPELLINGS):
                    for url in (
                        f"http://{spelling}:{canary.port}/",
                        f"http://{SITE}/{number}",
                    ):
                        with pytest.raises(Error, match="net::ERR_"):
                            await page.goto(url, timeout=5000)
        assert canary.count() == 0
        # Several are one address to the browser, which is what the records are by.
        assert {refused.host for refused in session.refused} >= set(REFUSED_HOSTS.split())


STUN = """port => {
    const peer = new RTCPeerConnection({iceServers: [
        {urls: `stun:127.0.0.1:${port}`},
        {urls: `turn:127.0.0.1:${port}?transport=udp`, username: "u", credential: "c"}]});
    peer.createDataChannel("x");
    window.peer = peer;
    const gathered = new Promise(resolve => peer.onicegatheringstatechange =
        () => peer.iceGatheringState === "complete" && resolve());
    peer.createOffer().then(offer => peer.setLocalDescription(offer));
    return gathered;
}"""
WEB_TRANSPORT = (
    """port => new WebTransport(`https://127.0.0.1:${port}/`).ready.catch(error => error.name)"""
)


@pytest.mark.parametrize("script", [STUN, WEB_TRANSPORT], ids=["stun", "webtransport"])
async def test_no_datagram_leaves_a_page(browser, chromium, script):
    """WebRTC and WebTransport send nothing past the proxy, as they do in an ordinary browser."""
    async with (
        udp_canary() as canary,
        http_server(lambda _: (200, {"Content-Type": "text/html"}, "")) as site,
    ):
        network = NetworkSettings(host_map={SITE: ("127.0.0.1", site.port)})
        async with proxied_page(browser, network) as (page, _):
            await page.goto(f"http://{SITE}/")
            await page.evaluate(script, canary.port)
        assert canary.datagrams == 0

        ordinary = await chromium.new_context()
        page = await ordinary.new_page()
        await page.goto(f"http://127.0.0.1:{site.port}/")
        attempt = asyncio.create_task(page.evaluate(script, canary.port))
        async with asyncio.timeout(PATIENCE_S):
            await canary.arrived.wait()
        await ordinary.close()
        await asyncio.gather(attempt, return_exceptions=True)
        assert canary.datagrams > 0


SCHEMES = [
    "file:///etc/hostname",
    "chrome://version/",
    "chrome-untrusted://print/",
    "view-source:http://{host}/",
    "ftp://{host}/",
    "gopher://{host}/",
    "filesystem:http://{host}/temporary/x",
    "devtools://devtools/x",
    "about:credits",
    "data:text/html,data",
    "ws://{host}/",
    "mailto:x@{host}",
    "intent://{host}/",
]


async def test_other_schemes_lead_nowhere_from_a_page(browser):
    """Frames, windows and links to anything but the web open neither files nor connections."""
    async with tcp_server(lambda *_: asyncio.sleep(0)) as canary:
        urls = [scheme.format(host=f"127.0.0.1:{canary.port}") for scheme in SCHEMES]
        frames = "".join(f'<iframe src="{url}"></iframe>' for url in urls)
        opens = "".join(
            f"<script>window.open('{url}'); location.hash = 'on'</script>" for url in urls
        )
        body = f"<title>schemes</title>{frames}{opens}"
        async with http_server(lambda _: (200, {"Content-Type": "text/html"}, body)) as site:
            network = NetworkSettings(host_map={SITE: ("127.0.0.1", site.port)})
            async with proxied_page(browser, network) as (page, _):
                await page.goto(f"http://{SITE}/")
                assert await page.title() == "schemes"
                assert page.context.pages == [page]
                texts = [
                    await frame.evaluate("document.documentElement.innerText")
                    for frame in page.frames[1:]
                ]
        assert {text.strip() for text in texts} <= {"", "data"}
        assert canary.connections == 0


async def test_what_belongs_to_no_page_has_no_way_out(browser):
    """A context that was given no proxy, and the browser itself, are connected to nothing."""
    async with http_server(lambda _: (200, {}, "")) as canary:
        async with proxied_page(browser, NetworkSettings(allow_private_network=True)) as (page, _):
            stray = await page.context.browser.new_context()
            stray_page = await stray.new_page()
            with pytest.raises(Error, match="net::ERR_"):
                await stray_page.goto(f"http://127.0.0.1:{canary.port}/")
            await stray.close()
        assert canary.count() == 0


async def test_no_setting_of_the_environment_leads_around_the_proxy(monkeypatch):
    """Loopback goes through it too where patchright is told to leave that out."""
    monkeypatch.setenv("PLAYWRIGHT_DISABLE_FORCED_CHROMIUM_PROXIED_LOOPBACK", "1")
    async with (
        http_server(lambda _: (200, {}, "")) as canary,
        Browser(CaptureSettings()) as browser,
        proxied_page(browser, NetworkSettings()) as (page, session),
    ):
        with pytest.raises(Error, match="net::ERR_"):
            await page.goto(f"http://127.0.0.1:{canary.port}/")
        assert canary.count() == 0
        assert [refused.host for refused in session.refused] == ["127.0.0.1"]


async def test_a_refused_page_leaves_the_others_alone(browser):
    """Pages beside a hostile one are captured as if it were not there."""
    async with http_server(
        lambda _: (200, {"Content-Type": "text/html"}, "<title>fine</title>")
    ) as site:
        network = NetworkSettings(host_map={"fine.example": ("127.0.0.1", site.port)})

        async def visit(url):
            async with proxied_page(browser, network) as (page, session):
                with suppress(Error):
                    await page.goto(url)
                return await page.title(), len(session.refused)

        fine, refused, also_fine = await asyncio.gather(
            visit("http://fine.example/"),
            visit("http://127.0.0.1/"),
            visit("http://fine.example/"),
        )
        assert fine == also_fine == ("fine", 0)
        assert refused[1] == 1
