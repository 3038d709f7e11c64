"""Claude on Amazon Bedrock, over the official SDK (the optional extra ``bedrock``)."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError

from mind2web2.errors import JudgeRequestError, UsageError
from mind2web2.llm_client.chat import Completion, OutputMode, ReplyPart, Usage, WireRequest
from mind2web2.llm_client.failures import (
    RequestFailedError,
    Service,
    allowances_in,
    failure_from_body,
    one_line,
)
from mind2web2.llm_client.openai_protocol import CONNECT_TIMEOUT_S, PoolPerLoop
from mind2web2.llm_client.provider import AsyncProviderClient
from mind2web2.llm_client.retry import RetryPolicy
from mind2web2.llm_client.settings import (
    ADDRESS_GIVEN,
    check_address,
    check_keys,
    endpoint_name,
    require_all,
    variable,
)
from mind2web2.utils.text import retry_after_s

if TYPE_CHECKING:
    from anthropic import AsyncAnthropicBedrock

Block = dict[str, Any]

_DATA_URL = re.compile(r"data:(image/[\w.+-]+);base64,")

# A common alias; Claude takes only the registered type.
_MEDIA_TYPE_ALIASES = {"image/jpg": "image/jpeg"}

# Claude requires a limit; the caller's ``max_tokens`` overrides this one.
_DEFAULT_MAX_TOKENS = 8192

_TRUNCATED = ("max_tokens", "model_context_window_exceeded")


class _Block(ReplyPart):
    type: str
    text: str | None = None
    input: dict[str, Any] | None = None


class _Usage(ReplyPart):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None

    def counted(self) -> Usage:
        """Return the numbers, with cached tokens as a part of the input."""
        read, written = self.cache_read_input_tokens or 0, self.cache_creation_input_tokens or 0
        return Usage(self.input_tokens + read + written, read, self.output_tokens, written)


class _Body(ReplyPart):
    content: list[_Block]
    stop_reason: str | None = None
    usage: _Usage = _Usage()
    model: str | None = None


class AsyncBedrockClient(AsyncProviderClient):
    """A judge on Bedrock.

    Args:
        base_url: default the region's own address.
        access_key: default ``AWS_ACCESS_KEY``.
        secret_key: default ``AWS_SECRET_KEY``.
        region: default ``AWS_REGION``.

    Raises:
        UsageError: a key, the region or the optional package is missing.
    """

    def __init__(
        self,
        *,
        base_url: str | None = None,
        access_key: str | None = None,
        secret_key: str | None = None,
        region: str | None = None,
        retry: RetryPolicy | None = None,
    ) -> None:
        settings = {
            "AWS_ACCESS_KEY": access_key or variable("AWS_ACCESS_KEY"),
            "AWS_SECRET_KEY": secret_key or variable("AWS_SECRET_KEY"),
            "AWS_REGION": region or variable("AWS_REGION"),
        }
        require_all(settings)
        check_keys(settings)
        super().__init__(_transport(settings, base_url), retry or RetryPolicy())


class BedrockTransport:
    """Speaks Claude's messages protocol; a template is a tool that Claude must call.

    Args:
        connect: makes the SDK's client, without retries.
        service: the server.
    """

    modes = (OutputMode.TOOL, OutputMode.PLAIN)

    def __init__(self, connect: Callable[[], AsyncAnthropicBedrock], service: Service) -> None:
        self._sdk = PoolPerLoop(connect)
        self.service = service

    async def send(self, wire: WireRequest) -> Completion:
        """Make one HTTP request."""
        import anthropic  # takes three seconds, and may be absent
        import httpx2

        secrets = self.service.secrets
        system, turns = claude_messages(wire.messages, marks_cache=wire.marks_cache)
        parameters = _parameters(wire) | ({"system": system} if system else {})
        try:
            raw = await self._sdk.here().messages.with_raw_response.create(
                model=wire.model,
                max_tokens=parameters.pop("max_tokens"),
                messages=cast(Any, turns),
                extra_body=parameters,
            )
        except anthropic.APIStatusError as error:
            headers = error.response.headers
            raise failure_from_body(
                error.status_code,
                error.response.text,
                retry_after_s(headers),
                secrets,
                allowances_in(headers),
            ) from error
        except anthropic.APIConnectionError as error:
            is_sent = not isinstance(error.__cause__, httpx2.ConnectError | httpx2.ConnectTimeout)
            text = one_line(f"{error.message} {error.__cause__ or ''}", secrets)
            raise RequestFailedError(text, is_sent=is_sent, is_connection_lost=True) from error
        completion = read_completion(await raw.http_response.aread(), secrets)
        return replace(completion, allowances=allowances_in(raw.http_response.headers))

    async def models(self) -> list[str]:
        """Return nothing: this protocol has no such list."""
        return []

    async def close(self) -> None:
        """Close the pool."""
        await self._sdk.close()


def read_completion(content: bytes, secrets: tuple[str, ...] = ()) -> Completion:
    """Return the completion in the body of a successful reply.

    Raises:
        RequestFailedError: it is no message; a retry may succeed.
    """
    try:
        body = _Body.model_validate_json(content)
    except ValidationError as error:
        start = one_line(content[:200].decode(errors="replace"), secrets)
        raise RequestFailedError(f"the reply is no message but {start!r}") from error
    calls = [block.input for block in body.content if block.type == "tool_use" and block.input is not None]
    text = "".join(block.text or "" for block in body.content if block.type == "text")
    return Completion(
        text=json.dumps(calls[0], ensure_ascii=False) if calls else text,
        declined=f"refusal: {text}".rstrip(": ") if body.stop_reason == "refusal" else None,
        is_truncated=body.stop_reason in _TRUNCATED,
        usage=body.usage.counted(),
        served_model=body.model,
    )


def claude_messages(
    messages: Sequence[Mapping[str, Any]], *, marks_cache: bool
) -> tuple[list[Block], list[Block]]:
    """Return the system blocks and the turns.

    Args:
        messages: checked messages.
        marks_cache: mark the end of the part that later requests share: the user's first turn without its
            last part.
    """
    system: list[Block] = []
    turns: list[Block] = []
    for message in messages:
        blocks = _blocks(message["content"])
        if message["role"] in ("system", "developer"):
            system += blocks
        else:
            turns.append({"role": message["role"], "content": blocks})
    if marks_cache and turns and len(turns[0]["content"]) > 1:
        turns[0]["content"][-2]["cache_control"] = {"type": "ephemeral"}
    return system, turns


def _blocks(content: str | Sequence[Mapping[str, Any]]) -> list[Block]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    # Claude rejects empty texts.
    return [_block(part) for part in content if part.get("text") != ""]


def _block(part: Mapping[str, Any]) -> Block:
    if part["type"] == "text":
        return {"type": "text", "text": part["text"]}
    url = part["image_url"]["url"]
    found = _DATA_URL.match(url)
    if found is None:
        raise JudgeRequestError(f"bedrock takes images as base64 data URLs only, not {url[:60]}")
    media_type = found.group(1).lower()
    source = {
        "type": "base64",
        "media_type": _MEDIA_TYPE_ALIASES.get(media_type, media_type),
        "data": url[found.end() :],
    }
    return {"type": "image", "source": source}


def _parameters(wire: WireRequest) -> dict[str, Any]:
    parameters = {"max_tokens": _DEFAULT_MAX_TOKENS, **wire.extra}
    if wire.temperature is not None:
        parameters["temperature"] = wire.temperature
    if wire.reasoning_effort is not None:
        parameters["output_config"] = {"effort": wire.reasoning_effort}
    if wire.schema is not None and wire.mode is OutputMode.TOOL:
        tool = {
            "name": wire.schema.name,
            "description": "Give the reply in this form.",
            "input_schema": wire.schema.full,
        }
        parameters |= {"tools": [tool], "tool_choice": {"type": "tool", "name": wire.schema.name}}
    return parameters


def _transport(settings: dict[str, str], base_url: str | None) -> BedrockTransport:
    region = settings["AWS_REGION"]
    address = base_url or f"https://bedrock-runtime.{region}.amazonaws.com"
    address_name = ADDRESS_GIVEN if base_url else "AWS_REGION"
    check_address(address, address_name)
    _require_packages()

    import anthropic  # takes three seconds, and may be absent

    connect = partial(
        anthropic.AsyncAnthropicBedrock,
        aws_access_key=settings["AWS_ACCESS_KEY"],
        aws_secret_key=settings["AWS_SECRET_KEY"],
        aws_session_token=variable("AWS_SESSION_TOKEN") or None,
        aws_region=region,
        base_url=address,
        max_retries=0,
        timeout=anthropic.Timeout(None, connect=CONNECT_TIMEOUT_S),
    )
    service = Service(
        endpoint=endpoint_name("bedrock_anthropic", address),
        key_name="AWS_ACCESS_KEY and AWS_SECRET_KEY",
        address_name=address_name,
        secrets=(settings["AWS_ACCESS_KEY"], settings["AWS_SECRET_KEY"]),
    )
    try:
        return BedrockTransport(connect, service)
    except ValueError as error:  # the SDK reads a bearer token, too, and takes one of the two
        raise UsageError(f"unset AWS_BEARER_TOKEN_BEDROCK to use AWS_ACCESS_KEY: {error}") from error


def _require_packages() -> None:
    # boto3 signs the requests; the SDK imports it only with the first one
    for package in ("anthropic", "boto3"):
        try:
            importlib.import_module(package)
        except ImportError as error:
            raise UsageError(
                f"Bedrock needs the package {package}: run pip install 'mind2web2[bedrock]'"
            ) from error
