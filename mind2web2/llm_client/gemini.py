"""Gemini, at Google's address that speaks OpenAI's protocol."""

from __future__ import annotations

from mind2web2.llm_client.openai_protocol import OpenAITransport, openai_connection
from mind2web2.llm_client.providers import Provider
from mind2web2.llm_client.settings import OpenAILike, named_endpoint

GEMINI = OpenAILike(
    "gemini",
    "GEMINI_API_KEY",
    "GEMINI_BASE_URL",
    "https://generativelanguage.googleapis.com/v1beta/openai",
)

PROVIDER = Provider(
    connect=lambda base_url, api_key: OpenAITransport(openai_connection(base_url, api_key, GEMINI)),
    endpoint=lambda base_url: named_endpoint("gemini", GEMINI.address(base_url)),
)
