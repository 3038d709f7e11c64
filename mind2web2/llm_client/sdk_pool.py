"""The official OpenAI SDK with the connections under it, at a third of its usual processor time."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable
from typing import TYPE_CHECKING
from urllib.request import getproxies

from mind2web2.llm_client.clean_connections import use_clean_connections

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI

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
