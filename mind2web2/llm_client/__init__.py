"""Judges: clients for OpenAI and compatible servers, Azure OpenAI, and Claude."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

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
    "AsyncAzureOpenAIClient": "base_client",
    "AsyncOpenAIClient": "base_client",
    "AzureOpenAIClient": "base_client",
    "LLMClient": "base_client",
    "OpenAIClient": "base_client",
    "calculate_api_cost": "prices",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
