"""The official OpenAI SDK with the connections under it, at a third of its usual processor time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar
from urllib.request import getproxies

from mind2web2.utils.private_attributes import check_private_attributes

if TYPE_CHECKING:
    import aiohttp
    import httpx2
    from openai import AsyncOpenAI


def use_clean_connections(client: httpx2.AsyncClient) -> None:
    """Have a client of the SDK's aiohttp kind drop a connection on which something came unasked.

    aiohttp keeps such bytes and reads them as the reply to the next request: a server or proxy that answers
    one question twice would thereby decide another one. There is no public way; a test sends such a reply.

    Raises:
        MachineError: the installed versions of these packages hold their connections otherwise.
    """
    check_private_attributes("aiohttp", "httpx2", "openai")
    # Any: what these hold is the SDK's own, and private.
    transports: list[Any] = [client._transport, *client._mounts.values()]
    for transport in transports:
        if transport is not None:
            transport.get_client = partial(_session, transport.get_client)


def _session(build: Any) -> aiohttp.ClientSession:
    from aiohttp.client_proto import ResponseHandler

    class CleanConnection(ResponseHandler):
        def is_connected(self) -> bool:
            return super().is_connected() and not self.should_close

    session: aiohttp.ClientSession = build()
    connector: Any = session.connector
    connector._factory = partial(CleanConnection, loop=asyncio.get_running_loop())
    return session


class _Closable(Protocol):
    async def close(self) -> None: ...


Pool = TypeVar("Pool", bound=_Closable)


class _Opened(NamedTuple, Generic[Pool]):
    pool: Pool
    # Runs from the pool's opening to its closing.
    lifetime: AsyncGenerator[None, None]


class PoolPerLoop(Generic[Pool]):
    """Gives the running loop its pool, so that one client serves several ``asyncio.run`` in turn.

    A pool that nobody closed is closed with its loop, as ``asyncio.run`` closes asynchronous generators last.

    Args:
        build: makes a pool; called at once, so that bad settings are found at once.
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
            # Up to its yield it waits for nothing.
            lifetime.__anext__().send(None)
        opened = self._opened[loop] = _Opened(pool, lifetime)
        return opened

    async def _lifetime(self, loop: asyncio.AbstractEventLoop, pool: Pool) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            del self._opened[loop]
            await pool.close()


# The exchange as a whole is bounded by the retry policy, this by nothing else.
CONNECT_TIMEOUT_S = 30.0


class SdkPool:
    """The SDK's client, and its own HTTP client, which speaks through aiohttp: half the time of httpcore.

    Args:
        connect: makes the SDK's client with this HTTP client, its own retries off.
    """

    def __init__(self, connect: Callable[[httpx2.AsyncClient], AsyncOpenAI]) -> None:
        self._http = _http_client()
        self.sdk = connect(self._http)
        self._answered: dict[str, httpx2.Request] = {}

    async def post(self, path: str, body: AsyncIterable[bytes], size_bytes: int) -> httpx2.Response:
        """Send a body of JSON and return the successful response.

        The SDK prepares a request in more time than it takes to send one, and every time alike. So once one
        has been answered, the others take over its address and headers.

        Raises:
            openai.OpenAIError: as the SDK does, while it prepares.
            httpx2.HTTPError: the request could not be sent, or its response has an error's status.
        """
        import httpx2

        prepared = self._answered.get(path)
        if prepared is None:
            response = await self.sdk.post(
                path,
                cast_to=httpx2.Response,
                content=body,
                options={"headers": {"Content-Length": str(size_bytes)}},
            )
            # A redirect is followed each time: it may lead elsewhere tomorrow.
            if not response.history:
                self._answered[path] = response.request
            return response
        headers = prepared.headers.copy()
        headers["Content-Length"] = str(size_bytes)
        request = httpx2.Request(
            prepared.method, prepared.url, headers=headers, content=body, extensions=prepared.extensions
        )
        response = await self._http.send(request)
        return response.raise_for_status()

    async def close(self) -> None:
        """Close the connections."""
        await self.sdk.close()


def _http_client() -> httpx2.AsyncClient:
    """Return the SDK's HTTP client, its limits (1,000 connections) and the environment's proxies set."""
    import openai  # takes two seconds

    timeout = openai.Timeout(None, connect=CONNECT_TIMEOUT_S)
    # aiohttp speaks to HTTP proxies only.
    if any(address.startswith("socks") for address in getproxies().values()):
        return openai.DefaultAsyncHttpxClient(timeout=timeout)
    client = openai.DefaultAioHttpClient(timeout=timeout)
    use_clean_connections(client)
    return client
