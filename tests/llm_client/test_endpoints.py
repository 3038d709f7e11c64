"""Where a provider is reached, without its key."""

import pytest

from mind2web2.errors import UsageError
from mind2web2.llm_client import LLMClient
from mind2web2.llm_client.base_client import AsyncOpenAIClient
from mind2web2.llm_client.openai_protocol import openai_connection
from mind2web2.llm_client.settings import endpoint_of

ADDRESSES = {
    "openai": ("OPENAI_BASE_URL", "http://user:pass@localhost:9/v1/"),
    "azure_openai": ("AZURE_OPENAI_ENDPOINT_URL", "https://mine.openai.azure.com/"),
    "anthropic": ("ANTHROPIC_BASE_URL", "http://user:pass@localhost:9/"),
    "gemini": ("GEMINI_BASE_URL", "http://localhost:9/v1beta/openai/"),
    "bedrock_anthropic": ("AWS_REGION", "us-east-1"),
}
KEYS = (
    "OPENAI_API_KEY",
    "AZURE_OPENAI_API_KEY",
    "AZURE_OPENAI_API_VERSION",
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "AWS_ACCESS_KEY",
    "AWS_SECRET_KEY",
)


@pytest.mark.parametrize("provider", ADDRESSES)
def test_it_is_the_one_of_a_client_with_keys(provider, monkeypatch):
    monkeypatch.setenv(*ADDRESSES[provider])
    for base_url in (None, "https://other.example/x"):
        endpoint = endpoint_of(provider, base_url)
        with monkeypatch.context() as with_keys:
            for name in KEYS:
                with_keys.setenv(name, "k")
            assert endpoint == LLMClient(provider, is_async=True, base_url=base_url).endpoint
            assert "pass" not in endpoint


@pytest.mark.parametrize("spelling", ["", "/", "/v1", "/v1/"])
def test_one_server_is_one_judge_with_and_without_v1(spelling):
    """Judgments are found whichever way the address is written.

    Messages show it as it was given.
    """
    address = f"http://localhost:9{spelling}"
    client = AsyncOpenAIClient(base_url=address)
    assert client.endpoint == endpoint_of("openai", address) == "openai http://localhost:9/v1"
    service = openai_connection(address).service
    assert service.shown == f"openai http://localhost:9{spelling.rstrip('/')}"
    assert endpoint_of("openai", "http://localhost:9/api") == "openai http://localhost:9/api"


def test_an_unset_address_is_not_known():
    """A provider with one address is the default, the others have none."""
    assert endpoint_of("openai") == "openai https://api.openai.com/v1"
    assert endpoint_of("anthropic") == "anthropic https://api.anthropic.com"
    assert endpoint_of("gemini") == "gemini https://generativelanguage.googleapis.com/v1beta/openai"
    assert endpoint_of("azure_openai") is None
    assert endpoint_of("bedrock_anthropic") is None


def test_an_address_that_is_none_is_a_usage_error():
    with pytest.raises(UsageError, match="is not an http"):
        endpoint_of("openai", "localhost")
