"""Where a provider is reached, told without its key and without its SDK."""

from __future__ import annotations

from mind2web2.llm_client.environment import (
    ADDRESS_GIVEN,
    OPENAI_ADDRESS,
    check_address,
    public_address,
    variable,
)

_VARIABLES = {
    "openai": "OPENAI_BASE_URL",
    "azure_openai": "AZURE_OPENAI_ENDPOINT_URL",
    "bedrock_anthropic": "AWS_REGION",
}


def endpoint_of(provider: str, base_url: str | None = None) -> str | None:
    """Return the endpoint that a client of the provider would have, ``None`` where its address is not set.

    Raises:
        UsageError: the address is none.
    """
    region = variable("AWS_REGION")
    addresses = {
        "openai": variable("OPENAI_BASE_URL") or OPENAI_ADDRESS,
        "azure_openai": variable("AZURE_OPENAI_ENDPOINT_URL"),
        "bedrock_anthropic": f"https://bedrock-runtime.{region}.amazonaws.com" if region else "",
    }
    address = base_url or addresses[provider]
    if not address:
        return None
    check_address(address, ADDRESS_GIVEN if base_url else _VARIABLES[provider])
    return f"{provider} {public_address(address)}"
