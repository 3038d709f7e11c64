"""Download files from public addresses, within bounds of size and time, with retries."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mind2web2.capture.models import NetworkSettings
from mind2web2.errors import CaptureError
from mind2web2.utils.text import retry_after_s

if TYPE_CHECKING:
    import httpx2

    from mind2web2.capture.network.proxy import ProxySession

log = logging.getLogger(__name__)

MAX_DOWNLOAD_BYTES = 100 * 1024**2
DOWNLOAD_TIMEOUT_S = 60.0
MAX_TRIES = 3
MAX_RETRY_DELAY_S = 10.0
MAX_REDIRECTS = 10

_PASSING_STATUSES = {408, 425, 429, 500, 502, 503, 504}
_HEADERS = {
    # Many publishers answer unknown programs with an error page.
    "User-Agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (compatible; mind2web2)",
    "Accept": "application/pdf,*/*;q=0.8",
    # PDFs are compressed inside; a second layer is only a chance to send a bomb.
    "Accept-Encoding": "identity",
}


# Unset, only the public internet can be reached.
_network: ContextVar[NetworkSettings | None] = ContextVar("network of downloads", default=None)


# Called with each URL that is refused because its address is private.
_tell_refusal: ContextVar[Callable[[str], None] | None] = ContextVar("teller of refusals", default=None)


class _PassingError(Exception):
    """A failure that may be gone on the next try; never leaves this module."""

    def __init__(self, reason: str, retry_after_s: float = 0.0) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s


@contextmanager
def downloads_from(network: NetworkSettings) -> Iterator[None]:
    """Apply network settings to downloads in this block, and in tasks started in it."""
    token = _network.set(network)
    try:
        yield
    finally:
        _network.reset(token)


@contextmanager
def refusals_told(tell: Callable[[str], None]) -> Iterator[None]:
    """Report each URL that this block or its tasks may not download because its address is private."""
    token = _tell_refusal.set(tell)
    try:
        yield
    finally:
        _tell_refusal.reset(token)


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
    _check_address(url)
    try:
        async with asyncio.timeout(timeout_s):
            return await _download_with_retries(url, first_bytes, max_bytes, first_delay_s)
    except TimeoutError as error:
        raise CaptureError(f"cannot download {url}: no complete answer within {timeout_s:g} s") from error


async def _download_with_retries(url: str, first_bytes: int | None, max_bytes: int, delay_s: float) -> bytes:
    for attempt in range(1, MAX_TRIES + 1):
        try:
            return await _download_once(url, first_bytes, max_bytes)
        except _PassingError as failure:
            if attempt == MAX_TRIES:
                raise CaptureError(f"cannot download {url}: {failure}") from failure
            log.info("download failed, trying again url=%s reason=%s", url, failure)
            await asyncio.sleep(min(max(delay_s, failure.retry_after_s), MAX_RETRY_DELAY_S))
            delay_s *= 2
    raise AssertionError("unreachable: the last try returns or raises")


async def _download_once(url: str, first_bytes: int | None, max_bytes: int) -> bytes:
    from mind2web2.capture.network.proxy import FilteringProxy

    # Headers, redirects and TLS come on top of the content, which is measured for itself.
    max_wire_bytes = max_bytes + max_bytes // 4 + 2 * 1024**2
    async with (
        FilteringProxy(_network.get() or NetworkSettings()) as proxy,
        proxy.session(max_wire_bytes, is_optimistic=True) as session,
    ):
        try:
            return await _get(url, first_bytes, max_bytes, session)
        except _PassingError as failure:
            if any(refused.is_private for refused in session.refused) and (tell := _tell_refusal.get()):
                tell(url)
            if reason := _lasting_reason(session):
                raise CaptureError(f"cannot download {url}: {reason}") from failure
            if reason := _passing_reason(session):
                raise _PassingError(reason) from failure
            raise


async def _get(url: str, first_bytes: int | None, max_bytes: int, session: ProxySession) -> bytes:
    import httpx2

    client = httpx2.AsyncClient(
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
        raise _PassingError(_reason(error)) from error


def _lasting_reason(session: ProxySession) -> str | None:
    """Return why a retry would fail as well."""
    if session.refused:
        return f"connection refused by our rules: {session.refused[0].reason}"
    if session.is_exhausted:
        return "larger than is allowed"
    return next((failure.reason for failure in session.failures.values() if not failure.is_transient), None)


def _passing_reason(session: ProxySession) -> str | None:
    return next((failure.reason for failure in session.failures.values()), None)


def _check_address(url: str) -> None:
    try:
        parts = urlsplit(url)
        is_web_address = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_web_address = False
    if not is_web_address:
        raise CaptureError(f"cannot download {' '.join(url.split())}: not an http or https address")


def _check_status(url: str, response: httpx2.Response) -> None:
    if response.status_code in _PASSING_STATUSES:
        raise _PassingError(f"HTTP {response.status_code}", retry_after_s(response.headers) or 0.0)
    if not response.is_success:
        raise CaptureError(f"cannot download {url}: HTTP {response.status_code}")


async def _read_body(url: str, response: httpx2.Response, first_bytes: int | None, max_bytes: int) -> bytes:
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
