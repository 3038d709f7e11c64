"""The download of a PDF that a script names, with tries and limits."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from mind2web2.api_tools.surroundings import surroundings
from mind2web2.capture.models import NetworkSettings
from mind2web2.capture.network.proxy import FilteringProxy
from mind2web2.errors import CaptureError
from mind2web2.urls.parts import host_of, split_url
from mind2web2.utils.retry import PassingError, Tries, tried
from mind2web2.utils.retry_after import retry_after_s

if TYPE_CHECKING:
    import httpx2

    from mind2web2.capture.network.proxy import ProxySession

MAX_DOWNLOAD_BYTES = 100 * 1024**2
DOWNLOAD_TIMEOUT_S = 60.0
MAX_TRIES = 3
_LONGEST_WAIT_S = 10.0
MAX_REDIRECTS = 10

_PASSING_STATUSES = {408, 425, 429, 500, 502, 503, 504}
_HEADERS = {
    # Many publishers answer unknown programs with an error page.
    "User-Agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (compatible; mind2web2)",
    "Accept": "application/pdf,*/*;q=0.8",
    # PDFs are compressed inside; a second layer is only a chance to send a bomb.
    "Accept-Encoding": "identity",
}


# Causes of errors that may be gone on another day.
PASSING = (PassingError, TimeoutError)


async def download(
    url: str,
    *,
    first_bytes: int | None = None,
    max_bytes: int = MAX_DOWNLOAD_BYTES,
    timeout_s: float = DOWNLOAD_TIMEOUT_S,
    first_delay_s: float = 0.5,
) -> bytes:
    """Return the content of an http or https URL, or only about its ``first_bytes``.

    Connects to public addresses only, redirects included, unless ``downloads_from`` says otherwise.

    Raises:
        CaptureError: no whole answer within the bounds; the text names the URL and the reason.
    """
    if not is_web_address(url):
        raise CaptureError(f"cannot download {' '.join(url.split())}: not an http or https address")
    try:
        async with asyncio.timeout(timeout_s):
            tries = Tries(MAX_TRIES, first_delay_s, _LONGEST_WAIT_S)
            return await tried(partial(_download_once, url, first_bytes, max_bytes), tries)
    except PassingError as failure:
        raise CaptureError(f"cannot download {url}: {failure}") from failure
    except TimeoutError as error:
        raise CaptureError(
            f"cannot download {url}: no complete answer within {timeout_s:g} s"
        ) from error


async def _download_once(url: str, first_bytes: int | None, max_bytes: int) -> bytes:
    # Headers, redirects and TLS come on top of the content, which is measured for itself.
    max_wire_bytes = max_bytes + max_bytes // 4 + 2 * 1024**2
    around = surroundings()
    async with (
        FilteringProxy(around.network or NetworkSettings()) as proxy,
        proxy.session(max_wire_bytes, is_optimistic=True) as session,
    ):
        try:
            return await _get(url, first_bytes, max_bytes, session)
        except PassingError as failure:
            if any(refused.is_private for refused in session.refused):
                around.report_refused(url)
            if reason := _lasting_reason(session):
                raise CaptureError(f"cannot download {url}: {reason}") from failure
            failures = list(session.failures.values())
            if failures:
                raise PassingError(failures[0].reason) from failure
            raise


async def _get(url: str, first_bytes: int | None, max_bytes: int, session: ProxySession) -> bytes:
    import httpx2

    async def check(request: httpx2.Request) -> None:
        # Our proxy cannot be asked for a host name that is too long.
        if not host_of(str(request.url)):
            raise CaptureError(f"cannot download {url}: it redirects to no host name")

    client = httpx2.AsyncClient(
        event_hooks={"request": [check]},
        proxy=session.server_url,
        trust_env=False,  # a proxy that the environment names would lead around ours
        follow_redirects=True,
        max_redirects=MAX_REDIRECTS,
        headers=_HEADERS,
        timeout=20.0,
    )
    try:
        async with client, client.stream("GET", url) as response:
            _check_status(url, response)
            return await _read_body(url, response, first_bytes, max_bytes)
    except (
        httpx2.UnsupportedProtocol,
        httpx2.InvalidURL,
        httpx2.TooManyRedirects,
        httpx2.DecodingError,
    ) as error:
        raise CaptureError(f"cannot download {url}: {_reason(error)}") from error
    except httpx2.TransportError as error:
        raise PassingError(_reason(error)) from error


def _lasting_reason(session: ProxySession) -> str | None:
    """Return why a retry would fail as well."""
    if session.refused:
        return f"connection refused by our rules: {session.refused[0].reason}"
    if session.is_exhausted:
        return "larger than is allowed"
    return next(
        (failure.reason for failure in session.failures.values() if not failure.is_transient),
        None,
    )


def is_web_address(url: str) -> bool:
    """Tell whether a URL is an http or https address of a host."""
    return split_url(url).scheme in {"http", "https"} and host_of(url) != ""


def _check_status(url: str, response: httpx2.Response) -> None:
    if response.status_code in _PASSING_STATUSES:
        raise PassingError(f"HTTP {response.status_code}", retry_after_s(response.headers) or 0.0)
    if not response.is_success:
        raise CaptureError(f"cannot download {url}: HTTP {response.status_code}")


async def _read_body(
    url: str, response: httpx2.Response, first_bytes: int | None, max_bytes: int
) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if first_bytes is not None and len(body) >= first_bytes:
            break
        if len(body) > max_bytes:
            raise CaptureError(f"cannot download {url}: larger than {max_bytes} bytes")
    return bytes(body)


def _reason(error: Exception) -> str:
    """Return an exception's text on one line; some have none."""
    return " ".join(str(error).split()) or type(error).__name__
