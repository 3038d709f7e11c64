"""Connections to one server over aiohttp: requests, their replies, and the failure for each error."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar
from urllib.parse import urlencode, urlsplit, urlunsplit
from urllib.request import getproxies, getproxies_environment, proxy_bypass

from mind2web2 import __version__
from mind2web2.errors import UsageError
from mind2web2.llm_client.failures import (
    RequestFailedError,
    allowances_in,
    failure_from_body,
    one_line,
)
from mind2web2.llm_client.settings import public_address
from mind2web2.llm_client.transport import JsonBody
from mind2web2.urls.no_proxy import is_reached_without_proxy
from mind2web2.utils.private_attributes import check_private_attributes
from mind2web2.utils.retry_after import retry_after_s

if TYPE_CHECKING:
    import ssl

    import aiohttp

# The retry policy limits only the request as a whole.
CONNECT_TIMEOUT_S = 30.0
_MOST_CONNECTIONS = 1000
_CHUNK_BYTES = 1 << 20
# Unpacked; files of batch jobs have no limit, as they go to the disk.
_MOST_REPLY_BYTES = 64_000_000
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

    def here(self) -> Pool:
        """Return the running loop's pool."""
        loop = asyncio.get_running_loop()
        opened = self._opened.get(loop) or self._open(loop)
        return opened.pool

    async def close(self) -> None:
        """Close the running loop's pool."""
        opened = self._opened.get(asyncio.get_running_loop())
        if opened is not None:
            await opened.lifetime.aclose()
        elif self._unused is not None:
            await self._unused.close()

    def _open(self, loop: asyncio.AbstractEventLoop) -> _Opened[Pool]:
        pool = self._unused or self._build()
        self._unused = None
        lifetime = self._lifetime(loop, pool)
        with suppress(StopIteration):
            # It does not wait before its yield.
            lifetime.__anext__().send(None)
        opened = self._opened[loop] = _Opened(pool, lifetime)
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

    base_url: str
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
        # What a SOCKS proxy raises; aiohttp speaks to HTTP proxies only.
        self._proxy_errors: tuple[type[Exception], ...] = ()
        self._session: aiohttp.ClientSession | None = None

    async def request(
        self, method: str, path: str, timeout_s: float | None = None, **content: Any
    ) -> HttpReply:
        """Make a request and return its successful reply.

        Args:
            content: a body or parameters, as aiohttp takes them.

        Raises:
            RequestFailedError: it could not be made, or its status is an error.
        """
        async with self._response(method, path, timeout_s, **content) as response:
            with self._failures():
                return HttpReply(await _read(response), response.headers)

    async def chunks(self, path: str) -> AsyncGenerator[bytes, None]:
        """Yield a file piece by piece; fails as ``request`` does."""
        async with self._response("GET", path) as response:
            while True:
                with self._failures():
                    chunk = await response.content.read(_CHUNK_BYTES)
                if not chunk:
                    return
                yield chunk

    @asynccontextmanager
    async def _response(
        self, method: str, path: str, timeout_s: float | None = None, **content: Any
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        import aiohttp  # takes half a second

        timeout = aiohttp.ClientTimeout(timeout_s, sock_connect=CONNECT_TIMEOUT_S)
        url = self._server.url(path)
        with self._failures():
            opened = await self._opened().request(
                method, url, timeout=timeout, **content
            )
        async with opened:
            if not 200 <= opened.status < 300:
                with self._failures():
                    body = await _read(opened)
                text = _decoded(body, opened.charset or "utf-8")
                raise failed_response(
                    opened.status, text, opened.headers, self._server.secrets
                )
            yield opened

    async def post_json(self, path: str, body: JsonBody) -> HttpReply:
        """Send a JSON body, assembled when it is sent."""
        return await self.request("POST", path, data=_json_payload()(body))

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
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
        if not self._proxy.startswith("socks"):
            proxy = self._proxy or None
            connector = _clean_connector(self._tls)
            return aiohttp.ClientSession(
                headers=headers,
                connector=connector,
                proxy=proxy,
                middlewares=(self._stay,),
            )
        import aiohttp_socks

        self._proxy_errors = (
            aiohttp_socks.ProxyConnectionError,
            aiohttp_socks.ProxyTimeoutError,
            aiohttp_socks.ProxyError,
        )
        # Each request has a connection of its own: no other reply can be on it.
        through_proxy = aiohttp_socks.ProxyConnector.from_url(
            # A name is resolved by the proxy, where it can: it may be known there alone.
            self._proxy.replace("socks5h://", "socks5://"),
            ssl=True if self._tls is None else self._tls,
            limit=_MOST_CONNECTIONS,
            force_close=True,
        )
        return aiohttp.ClientSession(
            headers=headers, connector=through_proxy, middlewares=(self._stay,)
        )

    async def _stay(
        self, request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        """Send a request, after a redirect too, to this server alone: it has the key and the question."""
        own = type(request.url)(self._server.base_url)
        if request.url.origin() != own.origin():
            raise redirected(str(request.url), self._server.secrets)
        return await send(request)

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Turn errors of aiohttp into ``RequestFailedError``."""
        import aiohttp

        secrets = self._server.secrets
        try:
            yield
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise not_connected(error, secrets, is_sent=False) from error
        except aiohttp.ClientHttpProxyError as error:
            # Its own text has the proxy's address, with the password.
            reason = one_line(f"{error.status} {error.message}", secrets)
            raise RequestFailedError(
                f"connection error: the proxy answered {reason}", is_sent=False
            ) from None
        except aiohttp.ClientResponseError as error:
            # What is not HTTP, or redirects without end: the server is there.
            reason = one_line(error.message or "it redirects without end", secrets)
            raise RequestFailedError(f"bad reply: {reason}") from error
        except (aiohttp.ClientError, TimeoutError) as error:
            raise not_connected(error, secrets, is_sent=True) from error
        except self._proxy_errors as error:
            raise not_connected(error, secrets, is_sent=False) from error


def proxy_for(url: str) -> str:
    """Return the proxy that the environment names for an address, empty without one.

    Raises:
        UsageError: it is no address of a proxy; the text does not repeat it, since it may hold a password.
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
            "the proxy of the environment (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY) must be http://HOST:PORT, "
            "https://HOST:PORT or socks5://HOST:PORT, with USER:PASSWORD@ before HOST if it asks for them; "
            "write special characters as %XX"
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
        if len(body) > _MOST_REPLY_BYTES:
            raise RequestFailedError(
                f"the reply is larger than {_MOST_REPLY_BYTES // 10**6} MB",
                is_final=True,
            )
    return bytes(body)


def _decoded(body: bytes, encoding: str) -> str:
    try:
        return body.decode(encoding, errors="replace")
    except (LookupError, UnicodeError):  # a codec that is none of texts, such as hex
        return body.decode(errors="replace")


def redirected(address: str, secrets: tuple[str, ...]) -> RequestFailedError:
    """Return the failure for a redirect that is not followed."""
    shown = one_line(public_address(address), secrets)
    text = f"the server redirects to {shown}, which gets no key and no question"
    return RequestFailedError(text, is_final=True)


def _trusted_certificates() -> ssl.SSLContext:
    """Return the context that httpx2 makes: it finds the system's certificates where OpenSSL does not."""
    import httpx2

    return httpx2.create_ssl_context()


def _clean_connector(tls: ssl.SSLContext | None) -> aiohttp.TCPConnector:
    """Return a connector that drops a connection which received data without a request.

    aiohttp reads such data as the reply to the next request, so that a server that answers one question twice
    would decide another one. There is no public way.

    Raises:
        MachineError: the installed version lacks the private attributes.
    """
    import aiohttp
    from aiohttp.client_proto import ResponseHandler

    class CleanConnection(ResponseHandler):
        def is_connected(self) -> bool:
            return super().is_connected() and not self.should_close

    check_private_attributes("aiohttp")
    connector = aiohttp.TCPConnector(
        limit=_MOST_CONNECTIONS, ssl=True if tls is None else tls
    )
    private: Any = connector
    private._factory = partial(CleanConnection, loop=asyncio.get_running_loop())
    return connector


@cache
def _json_payload() -> type[aiohttp.Payload]:
    """Return a body for aiohttp, assembled when it is sent and freed then; a redirect sends it again."""
    import aiohttp

    class JsonPayload(aiohttp.Payload):
        def __init__(self, body: JsonBody) -> None:
            super().__init__(body, content_type="application/json")
            self._size = body.size_bytes

        def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
            return bytes(self._value).decode(encoding, errors)

        async def write(self, writer: Any) -> None:
            # In one piece, which takes the fewest writes.
            await writer.write(bytes(self._value))

    return JsonPayload


def failed_response(
    status: int, text: str, headers: Mapping[str, str], secrets: tuple[str, ...]
) -> RequestFailedError:
    """Return the failure that a response with an error status describes."""
    return failure_from_body(
        status, text, retry_after_s(headers), secrets, allowances_in(headers)
    )


def not_connected(
    error: BaseException, secrets: tuple[str, ...], *, is_sent: bool
) -> RequestFailedError:
    """Return the failure for an error of the HTTP client.

    Args:
        is_sent: ``False`` if no connection was made.
    """
    reason = connection_reason(error) or one_line(
        f"{error or type(error).__name__}", secrets
    )
    text = f"connection error: {reason}"
    return RequestFailedError(text, is_sent=is_sent, is_connection_lost=True)


def connection_reason(error: BaseException) -> str | None:
    """Return the usual words for a failed connection, ``None`` for other failures."""
    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in causes:
        causes.append(cause)
        cause = getattr(cause, "os_error", None) or cause.__cause__ or cause.__context__
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return "host name not found"
    is_refused = any(
        getattr(cause, "errno", None) == errno.ECONNREFUSED for cause in causes
    )
    if is_refused or "Connect call failed" in str(error):
        return "connection refused"
    return None
