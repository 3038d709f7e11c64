"""Captures and downloads through a real proxy on loopback that asks for credentials."""

import logging

import pytest
from capture.shared_browser import capturing
from capture.small_site import SmallSite
from servers.http_proxy import PASSWORD, http_proxy
from servers.toothed_site import FACT, HOST, ToothedSite

from mind2web2.api_tools.pdf_download import download
from mind2web2.api_tools.surroundings import downloads_from
from mind2web2.capture.models import NetworkSettings
from mind2web2.capture.network.destinations import Destinations, PrivateDestinationError
from mind2web2.capture.network.upstream import upstream_for
from mind2web2.errors import CaptureError, UsageError
from mind2web2.urls.proxies import parse_upstream

PROXIES = {"http": "http://a.example:80", "https": "http://b.example:443"}


@pytest.mark.parametrize(
    ("host", "port", "no_proxy", "expected"),
    [
        ("x.example", 80, "", "a.example"),
        ("x.example", 443, "", "b.example"),
        ("x.example", 8080, "", "b.example"),
        ("x.example", 443, "example", None),
        ("x.example", 443, ".example, other", None),
        ("x.example", 443, "*.example", None),
        ("x.example", 443, "x.example:443", None),
        ("x.example", 443, "x.example:80", "b.example"),
        ("ax.example", 443, "x.example", "b.example"),
        ("x.example", 443, "*", None),
        ("93.184.215.14", 443, "93.184.0.0/16", None),
        ("93.185.215.14", 443, "93.184.0.0/16", "b.example"),
        ("2001:4860:4860::8888", 443, "2001:4860::/32", None),
        ("2001:4860:4860::8888", 443, "2001:4860:4860:0:0:0:0:8888", None),
        ("2001:4860:4860::8888", 443, "[2001:4860:4860::8888]:443", None),
        ("2001:4860:4860::8888", 443, "[2001:4860:4860::8888]:80", "b.example"),
        ("x.example", 443, "https://x.example/path", None),
        ("x.example", 443, "https://x.example:80", "b.example"),
        ("93.184.215.14", 80, "93.184.0.0/16:80", None),
        ("93.184.215.14", 443, "93.184.0.0/16:80", "b.example"),
        ("x.example", 443, ", .", "b.example"),
    ],
)
def test_which_proxy_a_connection_takes(host, port, no_proxy, expected):
    """The port decides, unless NO_PROXY lists the host."""
    upstream = upstream_for(host, port, {**PROXIES, "no": no_proxy})
    assert (upstream and upstream.host) == expected


@pytest.mark.parametrize(
    "url",
    ["socks5://u:secret@h:1", "http://", "http://u:secret@h:x", "ftp://u:secret@h", "h"],
)
def test_an_unusable_proxy_is_an_error_that_hides_its_password(url):
    with pytest.raises(UsageError, match="HOST:PORT") as error:
        NetworkSettings(proxies={"https": url})
    assert "secret" not in str(error.value)


def test_no_representation_holds_a_password():
    """Settings and proxies may be logged."""
    url = "http://u:secret@h:1"
    assert (
        "secret" not in f"{NetworkSettings(proxies={'http': url})!r} {parse_upstream(url)!r} "
        f"{parse_upstream(url)}"
    )
    assert (parse_upstream("h:3128").host, parse_upstream("h:3128").port) == (
        "h",
        3128,
    )


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "10.0.0.1",
        "0x7f.1",
        "169.254.169.254",
        "::1",
        "localhost",
        "a.localhost",
        "intranet",
        "files.corp",
        "printer.local",
        "metadata.google.internal",
        "nas.home.arpa",
    ],
)
async def test_private_addresses_and_names_stay_refused(host):
    """The proxy is not asked for them; where private networks are allowed, it is."""
    proxies = {"https": "http://proxy.example:3128"}
    with pytest.raises(PrivateDestinationError):
        await Destinations(NetworkSettings(proxies=proxies)).find(host, 443)
    allowed = NetworkSettings(proxies=proxies, allow_private_network=True)
    assert (await Destinations(allowed).find(host, 443)).upstream.host == "proxy.example"


@pytest.mark.parametrize("tunnels_to", [None, 443])
async def test_a_page_is_captured_through_a_proxy(browser, tunnels_to, caplog):
    caplog.set_level(logging.DEBUG)
    with ToothedSite() as site:
        async with http_proxy(site.host_map, tunnels_to=tunnels_to) as proxy:
            url = proxy.url_with_credentials
            network = NetworkSettings(proxies={"http": url, "https": url})
            async with capturing(browser, network) as manager:
                pages = [
                    await manager.capture(site.at("plain", scheme=scheme))
                    for scheme in ("https", "http")
                ]
                unknown = await manager.capture("https://unknown.example/")
    assert [FACT in (page.text or "") for page in pages] == [True, True]
    assert f"{HOST}:443" in proxy.tunnels
    assert any(request.startswith(f"http://{HOST}/") for request in proxy.requests) is (
        tunnels_to == 443
    )
    assert "answered HTTP 502 when asked for unknown.example:443" in unknown.record.failure
    assert unknown.record.is_transient
    assert PASSWORD not in caplog.text + "".join(
        page.record.model_dump_json() for page in (*pages, unknown)
    )


async def test_a_download_takes_the_proxy_of_the_environment(monkeypatch):
    with SmallSite() as site:
        site.pages["/file"] = b"whole"
        address = ("127.0.0.1", site.port)
        async with http_proxy({"files.example": address}) as proxy:
            monkeypatch.setenv("HTTP_PROXY", proxy.url_with_credentials)
            assert await download("http://files.example/file") == b"whole"
            assert proxy.tunnels == ["files.example:80"]
            monkeypatch.setenv("HTTP_PROXY", proxy.url.replace("http://", "http://u:secret@"))
            with pytest.raises(CaptureError, match=r"HTTP 407.*check its user") as error:
                await download("http://files.example/file", first_delay_s=0)
            assert "secret" not in str(error.value)


async def test_a_proxy_that_is_down_is_named():
    with (
        downloads_from(NetworkSettings(proxies={"http": "http://127.0.0.1:9"})),
        pytest.raises(CaptureError, match=r"proxy 127\.0\.0\.1:9 cannot be reached"),
    ):
        await download("http://files.example/file", first_delay_s=0)
