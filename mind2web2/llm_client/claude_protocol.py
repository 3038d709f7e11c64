"""The messages protocol of Claude, which several providers speak."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Literal, NotRequired, TypedDict

from pydantic import Field

from mind2web2.errors import JudgeRequestError
from mind2web2.llm_client.chat import (
    CheckedMessage,
    Completion,
    ImagePart,
    TextPart,
    Usage,
)
from mind2web2.llm_client.failures import RequestFailedError
from mind2web2.llm_client.http import Server
from mind2web2.llm_client.openai_protocol import MODELS_TIMEOUT_S, read_models
from mind2web2.llm_client.settings import Service
from mind2web2.llm_client.transport import (
    OutputMode,
    ReplyPart,
    Tokens,
    WireRequest,
    json_bytes,
    read_body,
    text_of,
)
from mind2web2.utils.json_text import read_leniently

# The version of the protocol.
VERSION = "2026-10-21"
_DATA_URL = re.compile(r"data:(image/[\w.+-]+);base64,")

# A common alias; Claude takes only the registered type.
_MEDIA_TYPE_ALIASES = {"image/jpg": "image/jpeg"}

# Claude requires a limit; the caller's ``max_tokens`` overrides this one.
_DEFAULT_MAX_TOKENS = 8192

_TRUNCATED = ("max_tokens", "model_context_window_exceeded")


class _CacheControl(TypedDict):
    type: Literal["ephemeral"]


class _ImageSource(TypedDict):
    type: Literal["base64"]
    media_type: str
    data: str


class _TextBlock(TypedDict):
    type: Literal["text"]
    text: str
    cache_control: NotRequired[_CacheControl]


class _ImageBlock(TypedDict):
    type: Literal["image"]
    source: _ImageSource
    cache_control: NotRequired[_CacheControl]


Block = _TextBlock | _ImageBlock


class Turn(TypedDict):
    """A turn of the conversation."""

    role: str
    content: list[Block]


class _Block(ReplyPart):
    type: str = ""
    text: Any = None
    input: dict[str, Any] = Field(default_factory=dict)


class _StopDetails(ReplyPart):
    explanation: str = ""


class _Usage(ReplyPart):
    input_tokens: Tokens = 0
    cache_read_input_tokens: Tokens = 0
    output_tokens: Tokens = 0
    cache_creation_input_tokens: Tokens = 0


class _Reply(ReplyPart):
    content: tuple[_Block, ...] = ()
    stop_reason: str = ""
    stop_details: _StopDetails = _StopDetails()
    usage: _Usage = _Usage()
    model: str = ""


class ClaudeTransport:
    """Speaks Claude's messages protocol; a template is a tool that Claude must call."""

    modes = (OutputMode.TOOL, OutputMode.PLAIN)

    def __init__(self, server: Server, service: Service) -> None:
        self._server = server
        self.service = service

    async def send(self, wire: WireRequest) -> Completion:
        """Make one HTTP request."""
        reply = await self._post(wire.model, request_body(wire))
        return read_completion(reply, self.service.secrets)

    async def _post(self, model: str, body: dict[str, Any]) -> str:
        return await self._server.post("/v1/messages", json_bytes({"model": model, **body}))

    async def models(self) -> list[str]:
        """Return the names of the server's models."""
        return read_models(await self._server.get("/v1/models", MODELS_TIMEOUT_S, {"limit": 1000}))


def read_completion(content: str, secrets: tuple[str, ...] = ()) -> Completion:
    """Return the completion in the text of a successful reply.

    Raises:
        RequestFailedError: it is not a message; a retry may succeed.
    """
    reply = read_leniently(_Reply, read_body(content, "content", secrets))
    calls = [block.input for block in reply.content if block.type == "tool_use"]
    if len(calls) > 1:
        raise RequestFailedError(f"the reply has {len(calls)} values instead of one")
    text = text_of([block.model_dump() for block in reply.content if block.type == "text"])
    reason, usage = text or reply.stop_details.explanation, reply.usage
    cached, written = usage.cache_read_input_tokens, usage.cache_creation_input_tokens
    return Completion(
        text=json.dumps(calls[0]) if calls else text,
        declined=f"refusal: {reason}".rstrip(": ") if reply.stop_reason == "refusal" else None,
        is_truncated=reply.stop_reason in _TRUNCATED,
        # Cached tokens are a part of the input.
        usage=Usage(usage.input_tokens + cached + written, cached, usage.output_tokens, written),
        served_model=reply.model or None,
    )


def claude_messages(
    messages: Sequence[CheckedMessage], *, marks_cache: bool
) -> tuple[list[Block], list[Turn]]:
    """Return the system blocks and the turns of checked messages.

    Args:
        marks_cache: mark the end of the part that later requests share: the user's first turn
            without its last part.
    """
    system: list[Block] = []
    turns: list[Turn] = []
    for message in messages:
        blocks = _blocks(message["content"])
        if message["role"] in ("system", "developer"):
            system += blocks
        else:
            turns.append({"role": message["role"], "content": blocks})
    if marks_cache and turns and len(turns[0]["content"]) > 1:
        turns[0]["content"][-2]["cache_control"] = {"type": "ephemeral"}
    return system, turns


def _blocks(content: str | Sequence[TextPart | ImagePart]) -> list[Block]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    # Claude rejects empty texts.
    return [_block(part) for part in content if part["type"] != "text" or part["text"]]


def _block(part: TextPart | ImagePart) -> Block:
    if part["type"] == "text":
        return {"type": "text", "text": part["text"]}
    url = part["image_url"]["url"]
    header = _DATA_URL.match(url)
    if header is None:
        raise JudgeRequestError(f"Claude is sent images as base64 data URLs only, not {url[:60]}")
    media_type = header.group(1).lower()
    source: _ImageSource = {
        "type": "base64",
        "media_type": _MEDIA_TYPE_ALIASES.get(media_type, media_type),
        "data": url[header.end() :],
    }
    return {"type": "image", "source": source}


def request_body(wire: WireRequest) -> dict[str, Any]:
    """Return a request in Claude's form, without its model."""
    system, turns = claude_messages(wire.messages, marks_cache=wire.marks_cache)
    body: dict[str, Any] = {"max_tokens": _DEFAULT_MAX_TOKENS, **wire.extra, "messages": turns}
    if system:
        body["system"] = system
    if wire.temperature is not None:
        body["temperature"] = wire.temperature
    if wire.reasoning_effort is not None:
        body["output_config"] = {"effort": wire.reasoning_effort}
    if wire.schema is not None and wire.mode is OutputMode.TOOL:
        tool = {
            "name": wire.schema.name,
            "description": "Give the reply in this form.",
            "input_schema": wire.schema.full,
        }
        body |= {"tools": [tool], "tool_choice": {"type": "tool", "name": wire.schema.name}}
    return body
