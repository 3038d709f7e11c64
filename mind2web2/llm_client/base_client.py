"""The client that scripts and runs receive, and its published names for OpenAI and Azure."""

from __future__ import annotations

import atexit
from contextlib import ExitStack
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

from mind2web2.llm_client.async_calls import AsyncCalls
from mind2web2.llm_client.chat import ChatReply, ChatRequest, Limit, Retries, Slowdown
from mind2web2.utils.api_misuse import script_api

if TYPE_CHECKING:
    from mind2web2.llm_client.provider import ProviderClient
    from mind2web2.llm_client.retries import RetryPolicy


@script_api
class LLMClient(AsyncCalls):
    """A judge, synchronous or asynchronous.

    Args:
        provider: ``openai``, ``azure_openai``, or one of a plugin.
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
        # Most scripts name the class alone: the run has their judge.
        connection = import_module("mind2web2.llm_client.connection")
        self._judge: ProviderClient = connection.connected(
            provider, base_url, api_key, api_version, retry
        )
        self.provider = provider
        self.is_async = is_async
        self._open = ExitStack()
        if not is_async:
            # An event loop in a thread of its own.
            from anyio.from_thread import start_blocking_portal  # most clients are asynchronous

            portal = start_blocking_portal("asyncio", name="judge-client")
            self._portal = self._open.enter_context(portal)
            # Without a call of close, the interpreter would wait at its end for the thread.
            atexit.register(self._open.close)

    @property
    def endpoint(self) -> str:
        """Return the name of the judge's server."""
        return self._judge.endpoint

    @property
    def slowdown(self) -> Slowdown:
        """Return the delays by rate limits."""
        return self._judge.slowdown

    @property
    def retries(self) -> Retries:
        """Return the number of retries and their reasons."""
        return self._judge.retries

    async def chat(self, request: ChatRequest, limit: Limit | None = None) -> ChatReply:
        """Answer one request, as ``ChatProvider.chat`` promises."""
        return await self._judge.chat(request, limit)

    async def check_reachable(self) -> None:
        """Check that the server accepts connections. Raises JudgeUnusableError: it does not."""
        await self._judge.check_reachable()

    def response(self, **keywords: Any) -> Any:
        """Return the reply's text or the filled ``response_format``.

        With ``count_token`` it returns the tokens too. The keywords are those of
        ``async_response``.
        """
        if self.is_async:
            raise ValueError("this client is asynchronous: use await client.async_response(...)")
        return self._portal.call(partial(self._judge.async_response, **keywords))

    async def async_response(self, **keywords: Any) -> Any:
        """Return the same as ``response``; the keywords are those of ``AsyncCalls``."""
        if not self.is_async:
            raise ValueError(
                "async_response needs LLMClient(..., is_async=True); this client has response(...)"
            )
        return await self._judge.async_response(**keywords)

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
