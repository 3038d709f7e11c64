"""Judges that answer at once, so that what is measured is the toolkit itself."""

from __future__ import annotations

from typing import Any

from mind2web2.llm_client.chat import ChatReply, ChatRequest, Limit, Usage
from mind2web2.verification.extractor import BinaryEvalResult

REASONING = "The page says so in its second paragraph, in the very words of the claim."
# A typical request's tokens, so that its price is worked out.
USAGE = Usage(input_tokens=9000, cached_tokens=6000, output_tokens=120)


class InstantClient:
    """A client as scripts may pass one: it has ``async_response`` and nothing else."""

    async def async_response(self, **_: Any) -> BinaryEvalResult:
        """Return a verdict."""
        return BinaryEvalResult(reasoning=REASONING, result=True)


class InstantProvider:
    """A provider as a run has one: it reports tokens, and its replies are kept as judgments."""

    endpoint = "instant"

    async def chat(self, request: ChatRequest, limit: Limit) -> ChatReply:  # noqa: ARG002 (never slow)
        """Return a verdict."""
        async with limit:
            verdict = BinaryEvalResult(reasoning=REASONING, result=True)
        return ChatReply(
            text=verdict.model_dump_json(),
            value=verdict,
            usage=USAGE,
            served_model="o4-mini-2025-04-16",
        )

    async def close(self) -> None:
        """Close nothing."""
