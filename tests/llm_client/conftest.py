"""What the judge clients' tests share: an environment without keys, quick retries."""

import pytest

from mind2web2.llm_client.retry import RetryPolicy

KEY_VARIABLES = (
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "AZURE_OPENAI_API_KEY",
    "AZURE_OPENAI_ENDPOINT_URL",
    "AZURE_OPENAI_API_VERSION",
    "AZURE_OPENAI_AD_TOKEN",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "GEMINI_API_KEY",
    "GEMINI_BASE_URL",
    "AWS_ACCESS_KEY",
    "AWS_SECRET_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_REGION",
    "AWS_BEARER_TOKEN_BEDROCK",
)


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch):
    """Keep the machine's own keys out of the tests."""
    for name in KEY_VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def quick():
    """Give the usual number of tries, without the usual waits."""
    return RetryPolicy(
        tries=4, total_s=30, outage_wait_s=2, first_wait_s=0.001, longest_wait_s=0.01, request_timeout_s=20
    )
