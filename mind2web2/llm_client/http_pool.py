"""Connections to one server over aiohttp.

The module has requests, their replies, and the failure for each error.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar
from urllib.parse import urlencode, urlsplit, urlunsplit
from urllib.request import getproxies, getproxies_environment, proxy_bypass

from mind2web2 import __version__
from mind2web2.errors import UsageError
from mind2web2.llm_client.allowances import allowances_in
from mind2web2.llm_client.failures import RequestFailedError, failure_from_body
from mind2web2.llm_client.settings import public_address
from mind2web2.llm_client.transport import JsonBody
from mind2web2.urls.no_proxy import is_reached_without_proxy
from mind2web2.utils.retry_after import retry_after_s
from mind2web2.utils.shown_text import one_line

if TYPE_CHECKING:
    import ssl

    import aiohttp
    from yarl import URL

# The retry policy limits only the request as a whole.
CONNECT_TIMEOUT_S = 30.0
_MAX_CONNECTIONS = 1000
_CHUNK_BYTES = 1 << 20
# The limit holds for a reply after decompression.
MAX_REPLY_BYTES = 64_000_000
# Error bodies are only quoted in messages; the rest is not read.
_MAX_ERROR_BYTES = 1_000_000
# The limit for one header of a reply; error pages of gateways have long ones.
_MAX_HEADER_BYTES = 65_536
# aiohttp decompresses these, some by optional packages, and asks servers only for those it can.
_KNOWN_ENCODINGS = ("", "identity", "gzip", "deflate", "br", "zstd")
# The redirects that have an address. The last two repeat the request with its body; the others use
# GET.
_REDIRECTS = (301, 302, 303, 307, 308)
_REPEATING_REDIRECTS = (307, 308)
_MAX_REQUESTS_REDIRECTED = 10
_USUAL_PORTS = {"http": 80, "https": 443}


class _Closable(Protocol):
    async def close(self) -> None: ...


Pool = TypeVar("Pool", bound=_Closable)


class _Opened(NamedTuple, Generic[Pool]):
    pool: Pool
    # Runs from the pool's opening to its closing.
    lifetime: AsyncGenerator[None, None]


class PoolPerLoop(Generic[Pool]):
    """Holds a pool for each event loop, so that one client serves several ``asyncio.run`` in turn.

    An open pool is closed with its loop, as ``asyncio.run`` closes asynchronous generators last.

    Args:
        build: makes a pool; called at once, so that invalid settings fail early.
    """

    def __init__(self, build: Callable[[], Pool]) -> None:
        self._build = build
        self._unused: Pool | None = build()
        self._opened: dict[asyncio.AbstractEventLoop, _Opened[Pool]] = {}

    async def here(self) -> Pool:
        """Return the running loop's pool."""
        loop = asyncio.get_running_loop()
        opened = self._opened.get(loop) or await self._open(loop)
        return opened.pool

    async def close(self) -> None:
        """Close the running loop's pool."""
        opened = self._opened.get(asyncio.get_running_loop())
        if opened is not None:
            await opened.lifetime.aclose()
        elif self._unused is not None:
            unused, self._unused = self._unused, None
            await unused.close()

    async def _open(self, loop: asyncio.AbstractEventLoop) -> _Opened[Pool]:
        pool = self._unused or self._build()
        self._unused = None
        lifetime = self._lifetime(loop, pool)
        opened = self._opened[loop] = _Opened(pool, lifetime)
        # The generator runs to its yield without waiting; the loop closes it from then on.
        await anext(lifetime)
        return opened

    async def _lifetime(
        self, loop: asyncio.AbstractEventLoop, pool: Pool
    ) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            del self._opened[loop]
            await pool.close()


@dataclass(frozen=True, slots=True)
class Server:
    """Where requests go, and what goes along with each.

    Args:
        base_url: before the path of each request.
        query: after it.
        secrets: removed from error texts.
    """

    base_url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    query: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def url(self, path: str) -> str:
        """Return the address of a request; what the path holds of names is quoted already."""
        parts = urlsplit(self.base_url)
        query = "&".join(filter(None, (parts.query, urlencode(self.query))))
        path = parts.path.rstrip("/") + path
        return urlunsplit(parts._replace(path=path, query=query))


@dataclass(frozen=True, slots=True)
class RequestContent:
    """The content of a request: a body or a form, not both.

    Args:
        json_body: assembled when it is sent.
        form: sent once only, as it may hold a file.
        query: added to the address.
        headers: beside those of the server.
    """

    json_body: JsonBody | bytes | None = None
    form: aiohttp.FormData | None = None
    query: Mapping[str, str | int] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


_EMPTY = RequestContent()


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A successful reply."""

    content: bytes
    headers: Mapping[str, str]


class HttpPool:
    """The connections to a server, with the environment's proxies and trusted certificates."""

    def __init__(self, server: Server) -> None:
        self._server = server
        # Here, since both take a while: not with the first request.
        self._proxy = proxy_for(server.base_url)
        is_tls = urlsplit(server.base_url).scheme == "https"
        self._tls = _trusted_certificates() if is_tls else None
        # A SOCKS proxy raises these; aiohttp itself speaks to HTTP proxies only.
        self._proxy_errors: tuple[type[Exception], ...] = ()
        self._session: aiohttp.ClientSession | None = None

    async def request(
        self,
        method: str,
        path: str,
        content: RequestContent = _EMPTY,
        timeout_s: float | None = None,
    ) -> HttpReply:
        """Make a request and return its successful reply.

        Raises:
            RequestFailedError: it could not be made, or its status is an error.
        """
        return await self._reply_to(method, self._server.url(path), content, timeout_s)

    async def post_json(self, path: str, body: JsonBody | bytes) -> HttpReply:
        """Send a JSON body, assembled when it is sent; fails as ``request`` does."""
        return await self.request("POST", path, RequestContent(json_body=body))

    async def chunks(self, path: str) -> AsyncGenerator[bytes, None]:
        """Yield a file piece by piece; fails as ``request`` does."""
        async with self._response("GET", self._server.url(path)) as response:
            while True:
                with self._failures():
                    chunk = await response.content.read(_CHUNK_BYTES)
                if not chunk:
                    return
                yield chunk

    async def _reply_to(
        self,
        method: str,
        url: str | URL,
        content: RequestContent,
        timeout_s: float | None,
    ) -> HttpReply:
        async with self._response(method, url, content, timeout_s) as response:
            with self._failures():
                body = await _read(response)
            # Some servers name something else than a compression here, such as utf-8.
            encoding = response.headers.get("Content-Encoding", "").strip().lower()
            if encoding not in _KNOWN_ENCODINGS and not _is_text(body):
                raise self._unreadable(encoding)
            return HttpReply(_in_utf8(body, response.charset), response.headers)

    @asynccontextmanager
    async def _response(
        self,
        method: str,
        url: str | URL,
        content: RequestContent = _EMPTY,
        timeout_s: float | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        with self._failures():
            opened = await self._follow_redirects(method, url, content, timeout_s)
        async with opened:
            if not 200 <= opened.status < 300:
                body = await _read_start(opened)
                raise self._failure_of(opened, body.decode(errors="replace"))
            yield opened

    async def _follow_redirects(
        self,
        method: str,
        url: str | URL,
        content: RequestContent,
        timeout_s: float | None,
    ) -> aiohttp.ClientResponse:
        """Return the response to a request, after redirects too.

        aiohttp follows more of them: to other servers, and with a question turned into a request
        without one.
        """
        for _ in range(_MAX_REQUESTS_REDIRECTED):
            response = await self._send(method, url, content, timeout_s)
            if response.status not in _REDIRECTS:
                return response
            async with response:
                url = self._redirect_target(response, content)
        raise RequestFailedError(
            "the server redirects without end", status=response.status, is_final=True
        )

    async def _send(
        self,
        method: str,
        url: str | URL,
        content: RequestContent,
        timeout_s: float | None,
    ) -> aiohttp.ClientResponse:
        import aiohttp  # takes half a second

        body: aiohttp.FormData | aiohttp.Payload | None = content.form
        if content.json_body is not None:
            body = _json_payload()(content.json_body)
        connect_s = CONNECT_TIMEOUT_S if timeout_s is None else timeout_s
        # The reply has as much time as the connection.
        total_s = None if timeout_s is None else connect_s + timeout_s
        return await self._open_session().request(
            method,
            url,
            data=body,
            params=content.query or None,
            headers=content.headers,
            timeout=aiohttp.ClientTimeout(total_s, sock_connect=connect_s, sock_read=timeout_s),
            allow_redirects=False,
        )

    def _redirect_target(self, response: aiohttp.ClientResponse, content: RequestContent) -> URL:
        """Return the address that a redirect names, which gets the same request.

        Raises:
            RequestFailedError: it is another server's, which gets no key, or the request would be
                another.
        """
        import yarl

        location = response.headers.get("Location")
        if not location:
            raise _final(response, "the server redirects without an address")
        try:
            # Without its login: ours is in a header.
            url = response.url.join(yarl.URL(location)).with_user(None)
            is_here = url.origin() == response.url.origin()
        except ValueError:
            is_here = None
        if is_here is None or url.scheme not in _USUAL_PORTS:
            # Any part of it may be a key.
            raise _final(response, "the server redirects to what is no http(s) address")
        shown = self._without_secrets(public_address(str(url)))
        if not is_here:
            text = f"the server redirects to {shown}, which gets no key and no question"
            raise _final(response, text)
        is_repeated = response.status in _REPEATING_REDIRECTS and content.form is None
        if response.method != "GET" and not is_repeated:
            text = f"the server redirects to {shown}, where the question would not arrive"
            raise _final(response, text)
        return url

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = self._open()
        return self._session

    def _open(self) -> aiohttp.ClientSession:
        """Open the session; aiohttp needs a running loop for that."""
        import aiohttp

        headers = {
            "Accept": "application/json",
            "User-Agent": f"mind2web2/{__version__}",
            **self._server.headers,
        }
        is_socks = self._proxy.startswith("socks")
        connector = self._socks_connector() if is_socks else aiohttp.TCPConnector(**self._ways())
        return aiohttp.ClientSession(
            headers=headers,
            connector=connector,
            # No question tells the server of an earlier one.
            cookie_jar=aiohttp.DummyCookieJar(),
            proxy=None if is_socks else self._proxy or None,
            max_line_size=_MAX_HEADER_BYTES,
            max_field_size=_MAX_HEADER_BYTES,
        )

    def _ways(self) -> dict[str, Any]:
        """Return how connections are made: keywords of a connector."""
        return {
            "ssl": True if self._tls is None else self._tls,
            "limit": _MAX_CONNECTIONS,
            # Each request has a connection of its own: a server that answers one question twice
            # does not decide another one.
            "force_close": True,
        }

    def _socks_connector(self) -> aiohttp.TCPConnector:
        import aiohttp_socks

        self._proxy_errors = (
            aiohttp_socks.ProxyConnectionError,
            aiohttp_socks.ProxyTimeoutError,
            aiohttp_socks.ProxyError,
        )
        # The proxy resolves the name, which may be known there alone.
        address = self._proxy.replace("socks5h://", "socks5://")
        through_proxy: aiohttp.TCPConnector = aiohttp_socks.ProxyConnector.from_url(
            address, **self._ways()
        )
        return through_proxy

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Turn errors of aiohttp into ``RequestFailedError``.

        They are not chained as causes: logs show causes as they are, and some quote an address with
        a key.
        """
        import aiohttp

        try:
            yield
        except aiohttp.ClientConnectorError as error:
            is_proxy = error.host == urlsplit(self._proxy).hostname
            place = self._proxy_shown() if is_proxy else ""
            raise self._not_connected(error, is_sent=False, place=place) from None
        except aiohttp.ConnectionTimeoutError as error:
            place = self._proxy_shown()
            raise self._not_connected(error, is_sent=False, place=place) from None
        except aiohttp.ClientHttpProxyError as error:
            reason = self._without_secrets(f"{error.status} {error.message}")
            raise RequestFailedError(
                f"connection error: the proxy answered {reason}", is_sent=False
            ) from None
        except (aiohttp.InvalidURL, UnicodeError):
            raise RequestFailedError(
                "no request can be made to this address", is_sent=False, is_final=True
            ) from None
        except aiohttp.ClientResponseError as error:
            raise self._bad_reply(error) from None
        except (aiohttp.ClientError, TimeoutError) as error:
            if _is_badly_packed(error):
                reason = "it cannot be unpacked, although it names its compression"
                raise RequestFailedError(f"bad reply: {reason}") from None
            raise self._not_connected(error, is_sent=True) from None
        except self._proxy_errors as error:
            place = self._proxy_shown()
            raise self._not_connected(error, is_sent=False, place=place) from None

    def _without_secrets(self, text: str) -> str:
        return one_line(text, self._server.secrets)

    def _proxy_shown(self) -> str:
        """Return words for the proxy, none without one."""
        host = urlsplit(self._proxy).netloc.rpartition("@")[2]
        return f"the proxy of the environment ({host}): " if host else ""

    def _not_connected(
        self, error: BaseException, *, is_sent: bool, place: str = ""
    ) -> RequestFailedError:
        """Return the failure for a connection that was not made or was lost.

        Args:
            place: whose connection it is, if not the server's.
        """
        reason = connection_reason(error) or str(error) or type(error).__name__
        return RequestFailedError(
            f"connection error: {place}{self._without_secrets(reason)}",
            is_sent=is_sent,
            is_connection_lost=True,
        )

    def _bad_reply(self, error: aiohttp.ClientResponseError) -> RequestFailedError:
        """Return the failure for a reply that is not HTTP: the server is there."""
        from aiohttp.http_exceptions import LineTooLong

        causes = _causes(error)
        if any(isinstance(cause, LineTooLong) for cause in causes):
            return RequestFailedError(
                f"a header of the reply is longer than {_MAX_HEADER_BYTES:,} bytes",
                is_final=True,
            )
        if _is_badly_packed(error):
            return self._unreadable("brotli or zstd")
        messages = (getattr(cause, "message", "") for cause in causes)
        reason = next(filter(None, messages), "") or "it is not HTTP"
        return RequestFailedError(f"bad reply: {self._without_secrets(reason)}")

    def _unreadable(self, encoding: str) -> RequestFailedError:
        text = (
            f"the server compresses its replies by {self._without_secrets(encoding)}, "
            "which was not asked for and cannot be read"
        )
        return RequestFailedError(text, is_final=True)

    def _failure_of(self, response: aiohttp.ClientResponse, text: str) -> RequestFailedError:
        """Return the failure that a response with an error status describes."""
        if 300 <= response.status < 400:
            return _final(response, "the server redirects without an address")
        headers = response.headers
        return failure_from_body(
            response.status,
            text,
            retry_after_s(headers),
            self._server.secrets,
            allowances_in(headers),
        )


def _final(response: aiohttp.ClientResponse, text: str) -> RequestFailedError:
    return RequestFailedError(text, status=response.status, is_final=True)


def proxy_for(url: str) -> str:
    """Return the proxy that the environment names for an address, empty without one.

    Raises:
        UsageError: it is not an address of a proxy. The text does not repeat it, because it may
            hold a password.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or _USUAL_PORTS.get(parts.scheme, 0)
    no_proxy = getproxies_environment().get("no", "")
    # The second knows the system's own list on macOS and Windows.
    if is_reached_without_proxy(host, port, no_proxy) or proxy_bypass(host):
        return ""
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all") or ""
    if not proxy:
        return ""
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    if not _can_be_used(proxy):
        raise UsageError(
            "the proxy of the environment (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY) must be "
            "http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT, with USER:PASSWORD@ "
            "before HOST if it asks for them; write special characters as %XX"
        )
    return proxy


def _can_be_used(proxy: str) -> bool:
    try:
        parts = urlsplit(proxy)
        host, port = parts.hostname, parts.port
    except ValueError:
        return False
    if not host or port == 0:
        return False
    if parts.scheme in ("socks4", "socks5", "socks5h"):
        return port is not None  # SOCKS has no usual one
    return parts.scheme in ("http", "https")


async def _read(response: aiohttp.ClientResponse) -> bytes:
    """Return a reply's body, unpacked."""
    body = bytearray()
    while chunk := await response.content.read(_CHUNK_BYTES):
        body += chunk
        if len(body) > MAX_REPLY_BYTES:
            raise RequestFailedError(
                f"the reply is larger than {MAX_REPLY_BYTES // 10**6} MB",
                is_final=True,
            )
    return bytes(body)


async def _read_start(response: aiohttp.ClientResponse) -> bytes:
    """Return the start of a reply's body, as far as it comes.

    The status alone says that the reply is an error.
    """
    import aiohttp

    body = bytearray()
    with suppress(aiohttp.ClientError, TimeoutError):
        while len(body) < _MAX_ERROR_BYTES:
            chunk = await response.content.read(_CHUNK_BYTES)
            if not chunk:
                break
            body += chunk
    return bytes(body[:_MAX_ERROR_BYTES])


def _is_text(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _in_utf8(body: bytes, charset: str | None) -> bytes:
    """Return a text in UTF-8, where its server names another encoding."""
    try:
        return body.decode(charset or "utf-8").encode()
    except (LookupError, UnicodeError):
        return body


_CERTIFICATE_NAMES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


def _trusted_certificates() -> ssl.SSLContext:
    """Return the context that httpx2 makes.

    It finds the system's certificates where OpenSSL does not.

    Raises:
        UsageError: they cannot be read.
    """
    import httpx2

    try:
        return httpx2.create_ssl_context()
    except OSError as error:
        places = {name: os.environ.get(name) for name in _CERTIFICATE_NAMES}
        shown = " and ".join(f"{name}={path}" for name, path in places.items() if path)
        raise UsageError(
            f"the trusted certificates cannot be read ({shown or 'those of the system'}): "
            f"{error.strerror or error}"
        ) from error


@cache
def _json_payload() -> type[aiohttp.Payload]:
    """Return a body for aiohttp, assembled when it is sent and freed then.

    A redirect sends it again.
    """
    import aiohttp

    class JsonPayload(aiohttp.Payload):
        def __init__(self, body: JsonBody | bytes) -> None:
            super().__init__(body, content_type="application/json")
            self._size = len(body) if isinstance(body, bytes) else body.size_bytes

        def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
            return bytes(self._value).decode(encoding, errors)

        async def write(self, writer: Any) -> None:
            # In one piece, which takes the fewest writes.
            await writer.write(bytes(self._value))

    return JsonPayload


def connection_reason(error: BaseException) -> str | None:
    """Return the usual words for a failed connection, ``None`` for other failures."""
    causes = _causes(error)
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return "host name not found"
    codes = {getattr(cause, "errno", None) for cause in causes}
    if errno.ECONNREFUSED in codes:
        return "connection refused"
    if not codes.isdisjoint((errno.EHOSTUNREACH, errno.ENETUNREACH)):
        return "host or network unreachable"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    # The error joins one error for each of several addresses.
    return "connection refused" if "Connect call failed" in str(error) else None


def _is_badly_packed(error: BaseException) -> bool:
    from aiohttp.http_exceptions import ContentEncodingError

    return any(isinstance(cause, ContentEncodingError) for cause in _causes(error))


def _causes(error: BaseException) -> list[BaseException]:
    """Return an error and what led to it."""
    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in causes:
        causes.append(cause)
        cause = getattr(cause, "os_error", None) or cause.__cause__ or cause.__context__
    return causes
