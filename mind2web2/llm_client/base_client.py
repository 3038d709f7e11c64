"""Clients of judges: OpenAI, compatible servers, Azure, and the client that a run receives."""

from __future__ import annotations

import atexit
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import Any, Self

from anyio.from_thread import start_blocking_portal

from mind2web2.llm_client.chat import ChatReply, ChatRequest, Limit
from mind2web2.llm_client.openai_protocol import (
    OpenAITransport,
    azure_connection,
    openai_connection,
)
from mind2web2.llm_client.provider import AsyncProviderClient
from mind2web2.llm_client.providers import provider_of_plugin
from mind2web2.llm_client.rate_limiter import RateLimiter
from mind2web2.llm_client.retries import RetryPolicy
from mind2web2.utils.api_misuse import script_api
from mind2web2.utils.entry_points import parts_of


class SyncProviderClient:
    """An asynchronous client on an event loop of its own, in a thread of its own.

    Args:
        client: belongs to this object from now on.
    """

    def __init__(self, client: AsyncProviderClient) -> None:
        self._client = client
        self._open = ExitStack()
        self._portal = self._open.enter_context(
            start_blocking_portal("asyncio", name="judge-client")
        )
        self._open.callback(self._portal.call, client.close)
        # Without a call of close, the interpreter would wait at its end for a thread that is gone.
        atexit.register(self.close)

    @property
    def endpoint(self) -> str:
        """Return provider and address."""
        return self._client.endpoint

    def response(self, **keywords: Any) -> Any:
        """Return the result of ``async_response``; the keywords are the same."""
        return self._portal.call(partial(self._client.async_response, **keywords))

    def close(self) -> None:
        """Close the connection pool and end the thread."""
        atexit.unregister(self.close)
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class AsyncOpenAIClient(AsyncProviderClient):
    """A judge behind the chat completions protocol.

    Args:
        base_url: default ``OPENAI_BASE_URL``, else OpenAI itself.
        api_key: default ``OPENAI_API_KEY``; a server other than OpenAI may need none.

    Raises:
        UsageError: the key is missing, or the address is invalid.
    """

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        retry: RetryPolicy | None = None,
    ) -> None:
        super().__init__(
            OpenAITransport(openai_connection(base_url, api_key)),
            retry or RetryPolicy(),
        )


class OpenAIClient(SyncProviderClient):
    """``AsyncOpenAIClient`` for synchronous code; the parameters are the same."""

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        retry: RetryPolicy | None = None,
    ) -> None:
        super().__init__(AsyncOpenAIClient(base_url=base_url, api_key=api_key, retry=retry))


class AsyncAzureOpenAIClient(AsyncProviderClient):
    """A judge on Azure.

    Args:
        base_url: the resource's address; default ``AZURE_OPENAI_ENDPOINT_URL``.
        api_key: default ``AZURE_OPENAI_API_KEY``.
        api_version: default ``AZURE_OPENAI_API_VERSION``.

    Raises:
        UsageError: one of the three is missing.
    """

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        api_version: str | None = None,
        retry: RetryPolicy | None = None,
    ) -> None:
        connection = azure_connection(base_url, api_key, api_version)
        super().__init__(OpenAITransport(connection), retry or RetryPolicy())


class AzureOpenAIClient(SyncProviderClient):
    """``AsyncAzureOpenAIClient`` for synchronous code; the parameters are the same."""

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        api_version: str | None = None,
        retry: RetryPolicy | None = None,
    ) -> None:
        super().__init__(
            AsyncAzureOpenAIClient(
                base_url=base_url, api_key=api_key, api_version=api_version, retry=retry
            )
        )


PROVIDERS = ("openai", "azure_openai")


@script_api
class LLMClient:
    """A judge, synchronous or asynchronous.

    Args:
        provider: one of ``PROVIDERS``, or one of a plugin.
        is_async: ``True`` for ``async_response`` and ``chat``, ``False`` for ``response``.
        base_url: default from the provider's environment variable; or several servers.
        api_key: default from the provider's environment variable; a pool's and Bedrock's keys come
            only from there.

    Raises:
        ValueError: there is no such provider.
        UsageError: a key, an address or an optional package is missing; the text names it.

    Attributes:
        endpoint: provider and address, such as ``openai https://api.openai.com/v1``.
        slowdown: the delays by rate limits.
        retries: the number of retries and their reasons.
    """

    def __init__(
        self,
        provider: str,
        is_async: bool = False,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        retry: RetryPolicy | None = None,
    ) -> None:
        self.provider = provider
        self.is_async = is_async
        self._async_client = client = _build(provider, base_url, api_key, retry)
        self._sync_client = None if is_async else SyncProviderClient(client)
        self.endpoint = client.endpoint
        self.slowdown = client.slowdown
        self.retries = client.retries

    def response(self, **keywords: Any) -> Any:
        """Return the reply's text or the filled ``response_format``.

        With ``count_token`` it returns the tokens too.

        The keywords are those of ``AsyncProviderClient.async_response``.
        """
        if self._sync_client is None:
            raise ValueError("this client is asynchronous: use await client.async_response(...)")
        return self._sync_client.response(**keywords)

    async def async_response(self, **keywords: Any) -> Any:
        """Return the same as ``response``; the keywords are the same."""
        self._check_is_async("async_response")
        return await self._async_client.async_response(**keywords)

    async def chat(self, request: ChatRequest, limit: Limit | None = None) -> ChatReply:
        """Answer one request, as ``ChatProvider.chat`` promises."""
        self._check_is_async("chat")
        return await self._async_client.chat(request, limit)

    async def check_reachable(self) -> None:
        """Raise ``JudgeUnusableError`` if no connection to the server can be made."""
        self._check_is_async("check_reachable")
        await self._async_client.check_reachable()

    def limiters(self) -> dict[str, RateLimiter]:
        """Return the rate limiter of each server and model."""
        return self._async_client.limiters()

    async def close(self) -> None:
        """Close the connection pool."""
        if self._sync_client is None:
            await self._async_client.close()
        else:
            self._sync_client.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def _check_is_async(self, method: str) -> None:
        if not self.is_async:
            raise ValueError(
                f"{method} needs LLMClient(..., is_async=True); this client has response(...)"
            )


def _build(
    provider: str,
    base_url: str | None,
    api_key: str | None,
    retry: RetryPolicy | None,
) -> AsyncProviderClient:
    if provider == "openai":
        return AsyncOpenAIClient(base_url=base_url, api_key=api_key, retry=retry)
    if provider == "azure_openai":
        return AsyncAzureOpenAIClient(base_url=base_url, api_key=api_key, retry=retry)
    return _client_of_plugin(provider, base_url, api_key, retry)


def provider_names() -> tuple[str, ...]:
    """Return the names of all providers."""
    return (*PROVIDERS, *parts_of("judges"))


def _client_of_plugin(
    name: str, base_url: str | None, api_key: str | None, retry: RetryPolicy | None
) -> AsyncProviderClient:
    provider = provider_of_plugin(name)
    if provider is None:
        raise ValueError(
            f"no such provider: {name!r}, expected one of {', '.join(provider_names())}"
        )
    transport = provider.connect(base_url, api_key)
    probes_images = provider.probes_images
    return AsyncProviderClient(transport, retry or RetryPolicy(), probes_images=probes_images)
