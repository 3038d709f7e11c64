"""Connects a judge: the transport of its provider, and the client that asks by it."""

from __future__ import annotations

from mind2web2.llm_client.openai_protocol import (
    OpenAITransport,
    azure_connection,
    openai_connection,
)
from mind2web2.llm_client.provider import ProviderClient
from mind2web2.llm_client.providers import provider_of_plugin
from mind2web2.llm_client.retries import RetryPolicy
from mind2web2.llm_client.transport import Transport
from mind2web2.utils.entry_points import parts_of

PROVIDERS = ("openai", "azure_openai")


def provider_names() -> tuple[str, ...]:
    """Return the names of all providers."""
    return (*PROVIDERS, *parts_of("judges"))


def connected(
    provider: str,
    base_url: str | None = None,
    api_key: str | None = None,
    api_version: str | None = None,
    retry: RetryPolicy | None = None,
) -> ProviderClient:
    """Return the client of a provider; the arguments are those of ``LLMClient``.

    Raises:
        ValueError: there is no such provider.
        UsageError: a key, an address or an optional package is missing; the text names it.
    """
    transport = _transport(provider, base_url, api_key, api_version)
    return ProviderClient(transport, retry or RetryPolicy())


def _transport(
    provider: str, base_url: str | None, api_key: str | None, api_version: str | None
) -> Transport:
    if provider == "openai":
        return OpenAITransport(openai_connection(base_url, api_key))
    if provider == "azure_openai":
        return OpenAITransport(azure_connection(base_url, api_key, api_version))
    plugin = provider_of_plugin(provider)
    if plugin is None:
        expected = ", ".join(provider_names())
        raise ValueError(f"no such provider: {provider!r}, expected one of {expected}")
    return plugin.connect(base_url, api_key)
