"""One HTTP request to a judge's server, over aiohttp, and the failure for each error."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit, urlunsplit
from urllib.request import getproxies

from mind2web2 import __version__
from mind2web2.errors import UsageError
from mind2web2.llm_client.failures import RequestFailedError, failure_from_body
from mind2web2.llm_client.transport import JsonBody
from mind2web2.urls.proxies import is_reached_without_proxy
from mind2web2.utils.retry_after import retry_after_s
from mind2web2.utils.shown_text import one_line, start_of

if TYPE_CHECKING:
    import ssl

    import aiohttp

# The retry policy limits only the request as a whole.
CONNECT_TIMEOUT_S = 30.0
_CHUNK_BYTES = 1 << 20
# The limit holds for a reply after decompression.
MAX_REPLY_BYTES = 64_000_000
# Error bodies are only quoted in messages; the rest is not read.
_MAX_ERROR_BYTES = 1_000_000
# The limit for one header of a reply; error pages of gateways have long ones.
_MAX_HEADER_BYTES = 65_536
_USUAL_PORTS = {"http": 80, "https": 443}


class Server:
    """Where requests go, and what goes along with each.

    Args:
        base_url: before the path of each request.
        query: after it.
        secrets: removed from error texts.
    """

    def __init__(
        self,
        base_url: str,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        secrets: tuple[str, ...] = (),
    ) -> None:
        own = {"Accept": "application/json", "User-Agent": f"mind2web2/{__version__}"}
        self._headers = {**own, **(headers or {})}
        self._secrets = secrets
        parts = urlsplit(base_url)
        self._query = "&".join(filter(None, (parts.query, urlencode(query or {}))))
        self._base = urlunsplit(parts._replace(path=parts.path.rstrip("/"), query=""))
        self._proxy = _proxy_for(base_url)
        self._is_tls = parts.scheme == "https"
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connector: aiohttp.TCPConnector | None = None
        if self._is_tls:
            _certificates()  # an error is the user's, and comes before the first request

    def url(self, path: str) -> str:
        """Return the address of a request; what the path holds of names is quoted already."""
        return f"{self._base}{path}?{self._query}" if self._query else f"{self._base}{path}"

    async def get(self, path: str, timeout_s: float, query: Mapping[str, int] | None = None) -> str:
        """Return the text of a file; fails as ``post`` does."""
        return await self._request("GET", path, timeout_s=timeout_s, params=query)

    async def post(
        self, path: str, body: JsonBody | bytes, headers: Mapping[str, str] | None = None
    ) -> str:
        """Send a JSON body, and return the text of the reply.

        Raises:
            RequestFailedError: the request could not be made, or its status is an error.
        """
        headers = {"Content-Type": "application/json", **(headers or {})}
        if isinstance(body, JsonBody):
            headers["Content-Length"] = str(body.size_bytes)
        data = _late(body) if isinstance(body, JsonBody) else body
        return await self._request("POST", path, data=data, headers=headers)

    async def _request(
        self,
        method: str,
        path: str,
        *,
        timeout_s: float | None = None,
        headers: Mapping[str, str] | None = None,
        **content: Any,  # as aiohttp takes it
    ) -> str:
        """Return the text of a successful reply.

        Errors of aiohttp are not chained as causes: logs show causes as they are, and some quote an
        address with a key.
        """
        import aiohttp  # takes half a second

        url = self.url(path)
        try:
            async with (
                self._session() as session,
                session.request(
                    method,
                    url,
                    headers=headers,
                    proxy=self._proxy,
                    # A redirect could take the question, and Azure's key, to another server.
                    allow_redirects=False,
                    timeout=aiohttp.ClientTimeout(timeout_s, sock_connect=CONNECT_TIMEOUT_S),
                    **content,
                ) as response,
            ):
                return await self._text(response)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            text = f"connection error: {self._shown(error)}"
            raise RequestFailedError(text, is_sent=False) from None
        except (aiohttp.InvalidURL, ValueError) as error:
            text = f"no request can be made: {self._shown(error)}"
            raise RequestFailedError(text, is_sent=False, is_final=True) from None
        except aiohttp.ClientHttpProxyError as error:
            text = f"the proxy answered {error.status} {error.message}"
            raise RequestFailedError(text, is_sent=False) from None
        except aiohttp.ClientResponseError as error:
            raise RequestFailedError(f"the reply is not HTTP: {self._shown(error)}") from None
        except (aiohttp.ClientError, OSError) as error:
            text = f"connection error: {self._shown(error)}"
            raise RequestFailedError(text, is_connection_lost=True) from None

    def _session(self) -> aiohttp.ClientSession:
        """Return a session for one request.

        Each request has a connection of its own, which costs a handshake. HTTP/1.1 numbers no
        replies: after one that nobody asked for, each later reply on its connection would answer
        the wrong question. Names of hosts that were looked up are shared.
        """
        import aiohttp

        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop = loop
            self._connector = aiohttp.TCPConnector(
                ssl=_certificates() if self._is_tls else True, limit=0, force_close=True
            )
        return aiohttp.ClientSession(
            headers=self._headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            connector=self._connector,
            connector_owner=False,
            max_line_size=_MAX_HEADER_BYTES,
            max_field_size=_MAX_HEADER_BYTES,
        )

    async def _text(self, response: aiohttp.ClientResponse) -> str:
        import aiohttp

        if 200 <= response.status < 300:
            body = await _read(response, MAX_REPLY_BYTES)
            if len(body) > MAX_REPLY_BYTES:
                text = f"the reply is larger than {MAX_REPLY_BYTES // 10**6} MB"
                raise RequestFailedError(text, is_final=True)
            for encoding in (response.charset or "utf-8-sig", "utf-8-sig"):
                with suppress(LookupError, UnicodeError):
                    return body.decode(encoding)
            shown = start_of(body, self._secrets)
            raise RequestFailedError(f"the reply is not a completion but {shown!r}")
        headers = response.headers
        if 300 <= response.status < 400:
            # Neither a login nor a query, which may be keys.
            target = headers.get("Location", "nowhere").partition("?")[0].rpartition("@")[2]
            text = f"the server redirects to {one_line(target, self._secrets)}: give that address"
            raise RequestFailedError(text, status=response.status, is_final=True)
        body = b""
        # The status alone says that the reply is an error.
        with suppress(aiohttp.ClientError):
            body = await _read(response, _MAX_ERROR_BYTES)
        text = body[:_MAX_ERROR_BYTES].decode(errors="replace")
        raise failure_from_body(response.status, text, retry_after_s(headers), self._secrets)

    def _shown(self, error: Exception) -> str:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return one_line(reason, self._secrets)


async def _read(response: aiohttp.ClientResponse, most_bytes: int) -> bytes:
    """Return the body of a response, unpacked, as far as it is read."""
    body = bytearray()
    while len(body) <= most_bytes and (chunk := await response.content.read(_CHUNK_BYTES)):
        body += chunk
    return bytes(body)


def _proxy_for(url: str) -> str | None:
    """Return the proxy that the environment names for an address."""
    parts = urlsplit(url)
    proxies = getproxies()
    port = parts.port or _USUAL_PORTS.get(parts.scheme, 0)
    if is_reached_without_proxy(parts.hostname or "", port, proxies.get("no", "")):
        return None
    return proxies.get(parts.scheme)


def _certificates() -> ssl.SSLContext:
    """Return the context with the environment's trusted certificates, else the system's.

    Raises:
        UsageError: they cannot be read.
    """
    return _context(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@lru_cache(maxsize=8)
def _context(file: str | None, folder: str | None) -> ssl.SSLContext:
    import httpx2  # finds the system's certificates where OpenSSL does not

    try:
        return httpx2.create_ssl_context()
    except OSError as error:
        raise UsageError(
            f"the trusted certificates cannot be read (SSL_CERT_FILE={file}, "
            f"SSL_CERT_DIR={folder}): {error.strerror or error}"
        ) from error


async def _late(body: JsonBody) -> AsyncIterator[bytes]:
    """Yield a body in one piece, assembled when it is sent and freed then."""
    yield bytes(body)
