"""The client that eval scripts and runs are given, whatever the provider."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Literal, Self

from mind2web2.llm_client.chat import ChatReply, ChatRequest, Limit
from mind2web2.llm_client.openai_client import AsyncAzureOpenAIClient, AsyncOpenAIClient
from mind2web2.llm_client.provider import AsyncProviderClient, SyncProviderClient
from mind2web2.llm_client.rate_limiter import Slowdown
from mind2web2.llm_client.retry import Retries, RetryPolicy
from mind2web2.utils.api_misuse import script_api

ProviderName = Literal["openai", "azure_openai", "bedrock_anthropic"]

PROVIDERS: tuple[ProviderName, ...] = ("openai", "azure_openai", "bedrock_anthropic")


@script_api
class LLMClient:
    """A judge, asked synchronously or asynchronously as chosen when it is built.

    Args:
        provider: one of ``PROVIDERS``.
        is_async: ``True`` for ``async_response`` and ``chat``, ``False`` for ``response``.
        base_url: the server's address, default from the provider's environment variable.
        api_key: default from the provider's environment variable; Bedrock takes its keys only from there.
        retry: how long to try.

    Raises:
        ValueError: there is no such provider.
        UsageError: a key, an address or an optional package is missing; the text names it.
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
        self._async_client = _build(provider, base_url, api_key, retry)
        self._sync_client = None if is_async else SyncProviderClient(self._async_client)

    @property
    def endpoint(self) -> str:
        """Return what tells this provider from others, such as ``openai https://api.openai.com/v1``."""
        return self._async_client.endpoint

    @property
    def slowdown(self) -> Slowdown:
        """Return how much rate limits have held requests back."""
        return self._async_client.slowdown

    @property
    def retries(self) -> Retries:
        """Return how often requests were tried again, and why."""
        return self._async_client.retries

    def response(self, **keywords: Any) -> Any:
        """Return the reply's text or the filled ``response_format``, with ``count_token`` the tokens too.

        The keywords are those of ``AsyncProviderClient.async_response``.
        """
        if self._sync_client is None:
            raise ValueError("this client is asynchronous: use await client.async_response(...)")
        return self._sync_client.response(**keywords)

    async def async_response(self, **keywords: Any) -> Any:
        """Return what ``response`` returns; the keywords are the same."""
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

    async def close(self) -> None:
        """Close the connection pool."""
        if self._sync_client is None:
            await self._async_client.close()
        else:
            self._sync_client.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _check_is_async(self, method: str) -> None:
        if not self.is_async:
            raise ValueError(f"{method} needs LLMClient(..., is_async=True); this client has response(...)")


def _build(
    provider: str, base_url: str | None, api_key: str | None, retry: RetryPolicy | None
) -> AsyncProviderClient:
    if provider == "openai":
        return AsyncOpenAIClient(base_url=base_url, api_key=api_key, retry=retry)
    if provider == "azure_openai":
        return AsyncAzureOpenAIClient(base_url=base_url, api_key=api_key, retry=retry)
    if provider == "bedrock_anthropic":
        # Not needed by most runs.
        from mind2web2.llm_client.bedrock_client import AsyncBedrockClient

        return AsyncBedrockClient(base_url=base_url, retry=retry)
    raise ValueError(f"no such provider: {provider!r}, expected one of {', '.join(PROVIDERS)}")
