"""OpenAI, and any server that speaks its protocol."""

from __future__ import annotations

from functools import partial

from mind2web2.errors import UsageError
from mind2web2.llm_client.failures import Service
from mind2web2.llm_client.http_pool import SdkPool
from mind2web2.llm_client.openai_protocol import Connection, OpenAITransport
from mind2web2.llm_client.provider import AsyncProviderClient, SyncProviderClient
from mind2web2.llm_client.retry import RetryPolicy
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
        super().__init__(OpenAITransport(*connection(base_url, api_key)), retry or RetryPolicy())


class OpenAIClient(SyncProviderClient):
    """``AsyncOpenAIClient`` for synchronous code; the parameters are the same."""

    def __init__(
        self, *, base_url: str | None = None, api_key: str | None = None, retry: RetryPolicy | None = None
    ) -> None:
        super().__init__(AsyncOpenAIClient(base_url=base_url, api_key=api_key, retry=retry))


def connection(base_url: str | None = None, api_key: str | None = None) -> Connection:
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
