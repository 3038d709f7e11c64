"""Clients of judges: OpenAI and compatible servers, Azure, and the one that a run is given."""

from __future__ import annotations

from functools import partial
from types import TracebackType
from typing import Any, Literal, Self

from mind2web2.errors import UsageError
from mind2web2.llm_client.chat import ChatReply, ChatRequest, Limit
from mind2web2.llm_client.failures import Service
from mind2web2.llm_client.openai_protocol import Connection, OpenAITransport, SdkPool
from mind2web2.llm_client.provider import AsyncProviderClient, SyncProviderClient
from mind2web2.llm_client.rate_limiter import Slowdown
from mind2web2.llm_client.retry import Retries, RetryPolicy
from mind2web2.llm_client.settings import (
    ADDRESS_GIVEN,
    KEY_GIVEN,
    OPENAI_ADDRESS,
    check_address,
    check_keys,
    public_address,
    require_all,
    setting,
    variable,
)
from mind2web2.utils.api_misuse import script_api

# Local servers ask for no key, but the SDK insists on one.
_NO_KEY = "none"


class AsyncOpenAIClient(AsyncProviderClient):
    """A judge behind the chat completions protocol.

    Args:
        base_url: default ``OPENAI_BASE_URL``, else OpenAI itself.
        api_key: default ``OPENAI_API_KEY``; a server other than OpenAI may need none.
        retry: how long to try.

    Raises:
        UsageError: there is no key, or the address is none.
    """

    def __init__(
        self, *, base_url: str | None = None, api_key: str | None = None, retry: RetryPolicy | None = None
    ) -> None:
        super().__init__(OpenAITransport(*openai_connection(base_url, api_key)), retry or RetryPolicy())


class OpenAIClient(SyncProviderClient):
    """``AsyncOpenAIClient`` for synchronous code; the parameters are the same."""

    def __init__(
        self, *, base_url: str | None = None, api_key: str | None = None, retry: RetryPolicy | None = None
    ) -> None:
        super().__init__(AsyncOpenAIClient(base_url=base_url, api_key=api_key, retry=retry))


def openai_connection(base_url: str | None = None, api_key: str | None = None) -> Connection:
    """Return how to connect and what that leads to; settings that are not given come from the environment.

    Raises:
        UsageError: one is missing or cannot be right; the text names it.
    """
    given = setting(base_url, ADDRESS_GIVEN, "OPENAI_BASE_URL")
    address = given.value or OPENAI_ADDRESS
    check_address(address, given.name)
    key = setting(api_key, KEY_GIVEN, "OPENAI_API_KEY")
    if not key.value and "api.openai.com" in address:
        raise UsageError(
            "no judge key: set OPENAI_API_KEY (or, for a server that needs none, give --judge_base_url or "
            "set OPENAI_BASE_URL)"
        )

    check_keys({key.name: key.value})

    import openai  # takes two seconds

    connect = partial(openai.AsyncOpenAI, base_url=address, api_key=key.value or _NO_KEY, max_retries=0)

    service = Service(
        endpoint=f"openai {public_address(address)}",
        key_name=key.name,
        address_name=given.name,
        secrets=(key.value,),
    )
    return partial(SdkPool, lambda http: connect(http_client=http)), service


class AsyncAzureOpenAIClient(AsyncProviderClient):
    """A judge on Azure.

    Args:
        base_url: the resource's address; default ``AZURE_OPENAI_ENDPOINT_URL``.
        api_key: default ``AZURE_OPENAI_API_KEY``.
        api_version: default ``AZURE_OPENAI_API_VERSION``.
        retry: how long to try.

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
        super().__init__(
            OpenAITransport(*azure_connection(base_url, api_key, api_version)), retry or RetryPolicy()
        )


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
            AsyncAzureOpenAIClient(base_url=base_url, api_key=api_key, api_version=api_version, retry=retry)
        )


def azure_connection(
    base_url: str | None = None, api_key: str | None = None, api_version: str | None = None
) -> Connection:
    """Return how to connect and what that leads to; settings that are not given come from the environment.

    Raises:
        UsageError: one is missing or cannot be right; the text names it.
    """
    key = setting(api_key, KEY_GIVEN, "AZURE_OPENAI_API_KEY")
    address = setting(base_url, ADDRESS_GIVEN, "AZURE_OPENAI_ENDPOINT_URL")
    version = api_version or variable("AZURE_OPENAI_API_VERSION")
    require_all(
        {
            "AZURE_OPENAI_API_KEY": key.value,
            "AZURE_OPENAI_ENDPOINT_URL": address.value,
            "AZURE_OPENAI_API_VERSION": version,
        }
    )
    check_keys({key.name: key.value})
    check_address(address.value, address.name)

    import openai  # takes two seconds

    connect = partial(
        openai.AsyncAzureOpenAI,
        azure_endpoint=address.value,
        api_key=key.value,
        api_version=version,
        max_retries=0,
    )

    service = Service(
        endpoint=f"azure_openai {public_address(address.value)}",
        key_name=key.name,
        address_name=address.name,
        secrets=(key.value,),
    )
    return partial(SdkPool, lambda http: connect(http_client=http)), service


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
