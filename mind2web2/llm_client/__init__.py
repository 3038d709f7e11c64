"""Judges: clients for OpenAI and compatible servers, Azure OpenAI, and Claude."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind2web2.utils import late_names

if TYPE_CHECKING:
    from mind2web2.llm_client.base_client import (
        AsyncAzureOpenAIClient,
        AsyncOpenAIClient,
        AzureOpenAIClient,
        LLMClient,
        OpenAIClient,
    )
    from mind2web2.llm_client.prices import calculate_api_cost

__all__ = [
    "AsyncAzureOpenAIClient",
    "AsyncOpenAIClient",
    "AzureOpenAIClient",
    "LLMClient",
    "OpenAIClient",
    "calculate_api_cost",
]

# These modules are loaded at first use, because a command's --help must not wait for clients.
_HOMES = {
    "AsyncAzureOpenAIClient": "mind2web2.llm_client.base_client",
    "AsyncOpenAIClient": "mind2web2.llm_client.base_client",
    "AzureOpenAIClient": "mind2web2.llm_client.base_client",
    "LLMClient": "mind2web2.llm_client.base_client",
    "OpenAIClient": "mind2web2.llm_client.base_client",
    "calculate_api_cost": "mind2web2.llm_client.prices",
}

__getattr__ = late_names(__name__, _HOMES)
