"""Downloads: within their bounds, tried again where that helps, and clear about what failed."""

import asyncio
import gzip
import socket
from urllib.parse import urlsplit

import pytest
from servers.local_http import Answer, LocalHttp

from mind2web2.api_tools.download import MAX_TRIES, download, downloads_from
from mind2web2.capture.models import NetworkSettings
from mind2web2.errors import CaptureError

ANYWHERE = NetworkSettings(allow_private_network=True)


async def fetch(answers, **bounds):
    """Return what a download gets from a server that gives these answers, and the number of requests."""
    left = list(answers)
    with LocalHttp(lambda _: left.pop(0) if len(left) > 1 else left[0]) as site, downloads_from(ANYWHERE):
        try:
            return await download(f"{site.url}/file", first_delay_s=0, **bounds), len(site.requests)
        except CaptureError as error:
            assert site.url in str(error)
            return str(error), len(site.requests)


@pytest.mark.parametrize(
    "fault",
    [
        Answer(status=429, headers={"Retry-After": "0"}),
        Answer(status=500),
        Answer(status=503, headers={"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}),
        Answer(drops=True),
        Answer(b"half", promised_bytes=100),
    ],
)
async def test_passing_failures_recover(fault):
    """A good answer after two failures is what counts, and half an answer never does."""
    assert await fetch([fault, fault, Answer(b"whole")]) == (b"whole", 3)


@pytest.mark.parametrize("fault", [Answer(status=500), Answer(drops=True)])
async def test_tries_end(fault):
    """A server that never recovers is given up."""
    message, requests = await fetch([fault])
    assert message.startswith("cannot download")
    assert requests == MAX_TRIES


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer(status=404), "HTTP 404"),
        (Answer(status=401), "HTTP 401"),
        (Answer(status=302, headers={"Location": "file:///etc/passwd"}), "protocol"),
        (Answer(b"x" * 2001), "larger than 2000 bytes"),
        (
            Answer(gzip.compress(b"0" * 3_000_000), headers={"Content-Encoding": "gzip"}),
            "larger than 2000 bytes",
        ),
        (Answer(b"junk", headers={"Content-Encoding": "gzip"}), "cannot download"),
    ],
)
async def test_lasting_failures_fail_at_once(answer, reason):
    """What another try cannot change costs one request and is said on one line."""
    message, requests = await fetch([answer], max_bytes=2000)
    assert reason in message
    assert "\n" not in message
    assert requests == 1


async def test_endless_redirects_end():
    """A page that leads to itself is given up."""
    message, _ = await fetch([Answer(status=302, headers={"Location": "/file"})])
    assert "redirect" in message


async def test_a_silent_server_is_given_up():
    """A download over its time limit fails, naming the limit."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/file"
        with (
            downloads_from(ANYWHERE),
            pytest.raises(CaptureError, match=r"/file: no complete answer within 0\.2 s"),
        ):
            await download(url, timeout_s=0.2)


@pytest.mark.parametrize(
    "url",
    ["ftp://site.example/x", "no scheme", "http://", "http://a..b/", "http://x:99999/", "http://\ud800/"],
)
async def test_addresses_that_are_none_are_refused(url):
    """Only http and https addresses are asked, and nonsense raises nothing else."""
    with pytest.raises(CaptureError):
        await download(url, first_delay_s=0)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1", "2130706433", "[::ffff:127.0.0.1]"])
async def test_internal_addresses_are_refused(host):
    """Unless a caller says otherwise, nothing but the public internet is asked, and that at once."""
    with LocalHttp(lambda _: Answer(b"secret")) as site:
        port = urlsplit(site.url).port
        with pytest.raises(CaptureError, match=r"loopback"):
            await download(f"http://{host}:{port}/file", first_delay_s=60)
        assert site.requests == []
        with downloads_from(ANYWHERE):
            assert await download(f"http://{host}:{port}/file", first_delay_s=0) == b"secret"


async def test_redirects_to_internal_addresses_are_refused():
    """A public site that leads inside is followed no further."""
    with LocalHttp(lambda _: Answer(b"secret")) as inside:
        redirect = Answer(status=302, headers={"Location": f"{inside.url}/file"})
        with LocalHttp(lambda _: redirect) as site:
            network = NetworkSettings(host_map={"public.example": ("127.0.0.1", urlsplit(site.url).port)})
            with downloads_from(network), pytest.raises(CaptureError, match=r"loopback"):
                await download("http://public.example/file", first_delay_s=60)
            assert len(site.requests) == 1
        assert inside.requests == []


async def test_the_environments_proxy_is_no_way_around(monkeypatch):
    """A proxy that the environment names is not used."""
    with LocalHttp(lambda _: Answer(b"secret")) as elsewhere:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, elsewhere.url)
        with pytest.raises(CaptureError, match=r"private"):
            await download("http://10.0.0.1/file", first_delay_s=60)
        assert elsewhere.requests == []


async def test_tasks_inherit_what_may_be_connected_to():
    """A run sets it once; what was outside of the block stays outside."""
    with LocalHttp(lambda _: Answer(b"page")) as site:
        with downloads_from(ANYWHERE):
            task = asyncio.create_task(download(f"{site.url}/file", first_delay_s=0))
        assert await task == b"page"
        with pytest.raises(CaptureError):
            await download(f"{site.url}/file", first_delay_s=0)


async def test_a_host_that_does_not_exist_is_asked_once():
    """A name without an address is a reason of its own, and lasts."""
    with pytest.raises(CaptureError, match=r"no-such-host\.invalid"):
        await download("http://no-such-host.invalid/", first_delay_s=0)
