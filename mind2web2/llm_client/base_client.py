"""The client that scripts and runs receive, and its published names for OpenAI and Azure."""

from __future__ import annotations

import atexit
from contextlib import ExitStack
from functools import partial
from typing import Any, Self

from anyio.from_thread import start_blocking_portal

from mind2web2.llm_client.openai_protocol import (
    OpenAITransport,
    azure_connection,
    openai_connection,
)
from mind2web2.llm_client.provider import ProviderClient
from mind2web2.llm_client.providers import provider_of_plugin
from mind2web2.llm_client.retries import RetryPolicy
from mind2web2.llm_client.transport import Transport
from mind2web2.utils.api_misuse import script_api
from mind2web2.utils.entry_points import parts_of

PROVIDERS = ("openai", "azure_openai")


@script_api
class LLMClient(ProviderClient):
    """A judge, synchronous or asynchronous.

    Args:
        provider: one of ``PROVIDERS``, or one of a plugin.
        is_async: ``True`` for ``async_response`` and ``chat``, ``False`` for ``response``.
        base_url: default from the provider's environment variable.
        api_key: default from the provider's environment variable; Bedrock's keys come only from
            there.
        api_version: of Azure, default from its environment variable.

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
        api_version: str | None = None,
        retry: RetryPolicy | None = None,
    ) -> None:
        transport = _transport(provider, base_url, api_key, api_version)
        super().__init__(transport, retry or RetryPolicy())
        self.provider = provider
        self.is_async = is_async
        self._open = ExitStack()
        if not is_async:
            # An event loop in a thread of its own.
            portal = start_blocking_portal("asyncio", name="judge-client")
            self._portal = self._open.enter_context(portal)
            # Without a call of close, the interpreter would wait at its end for the thread.
            atexit.register(self._open.close)

    def response(self, **keywords: Any) -> Any:
        """Return the reply's text or the filled ``response_format``.

        With ``count_token`` it returns the tokens too. The keywords are those of
        ``async_response``.
        """
        if self.is_async:
            raise ValueError("this client is asynchronous: use await client.async_response(...)")
        return self._portal.call(partial(super().async_response, **keywords))

    async def async_response(self, **keywords: Any) -> Any:
        """Return the same as ``response``; the keywords are those of ``AsyncCalls``."""
        if not self.is_async:
            raise ValueError(
                "async_response needs LLMClient(..., is_async=True); this client has response(...)"
            )
        return await super().async_response(**keywords)

    async def close(self) -> None:
        """End the thread of a synchronous client."""
        self._open.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncOpenAIClient(LLMClient):
    """A judge behind OpenAI's chat completions protocol."""

    def __init__(self, **keywords: Any) -> None:
        super().__init__("openai", is_async=True, **keywords)


class OpenAIClient(LLMClient):
    """``AsyncOpenAIClient`` for synchronous code."""

    def __init__(self, **keywords: Any) -> None:
        super().__init__("openai", **keywords)


class AsyncAzureOpenAIClient(LLMClient):
    """A judge on Azure."""

    def __init__(self, **keywords: Any) -> None:
        super().__init__("azure_openai", is_async=True, **keywords)


class AzureOpenAIClient(LLMClient):
    """``AsyncAzureOpenAIClient`` for synchronous code."""

    def __init__(self, **keywords: Any) -> None:
        super().__init__("azure_openai", **keywords)


def provider_names() -> tuple[str, ...]:
    """Return the names of all providers."""
    return (*PROVIDERS, *parts_of("judges"))


def _transport(
    provider: str, base_url: str | None, api_key: str | None, api_version: str | None
) -> Transport:
    if provider == "openai":
        return OpenAITransport(openai_connection(base_url, api_key))
    if provider == "azure_openai":
        return OpenAITransport(azure_connection(base_url, api_key, api_version))
    found = provider_of_plugin(provider)
    if found is None:
        expected = ", ".join(provider_names())
        raise ValueError(f"no such provider: {provider!r}, expected one of {expected}")
    return found.connect(base_url, api_key)
