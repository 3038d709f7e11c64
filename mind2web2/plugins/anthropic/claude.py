"""Claude at Anthropic, over the official SDK (extra ``anthropic``)."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NotRequired,
    TypedDict,
    TypeVar,
    cast,
)
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from pydantic import ValidationError

from mind2web2.errors import JudgeRequestError, UsageError
from mind2web2.llm_client.chat import (
    CheckedMessage,
    ImagePart,
    Parameters,
    TextPart,
    Usage,
)
from mind2web2.llm_client.failures import (
    RequestFailedError,
    Service,
    allowances_in,
    reply_without_secrets,
    start_of,
)
from mind2web2.llm_client.http_pool import HttpPool, PoolPerLoop, Server
from mind2web2.llm_client.openai_protocol import MODELS_TIMEOUT_S, read_models
from mind2web2.llm_client.providers import Provider
from mind2web2.llm_client.settings import (
    ADDRESS_GIVEN,
    KEY_GIVEN,
    Setting,
    checked_service,
    named_endpoint,
    public_address,
    require_all,
    setting,
    split_login,
)
from mind2web2.llm_client.structured_output import check_unambiguous
from mind2web2.llm_client.transport import (
    Completion,
    OutputMode,
    ReplyPart,
    TokenCount,
    WireRequest,
)
from mind2web2.utils.json_fields import JsonObject

if TYPE_CHECKING:
    import httpx2
    from anthropic import AsyncAnthropic, AsyncAnthropicBedrock


_ADDRESS = "https://api.anthropic.com"
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
    type: str
    text: str | None = None
    input: JsonObject | None = None


class _Usage(ReplyPart):
    input_tokens: TokenCount = 0
    output_tokens: TokenCount = 0
    cache_read_input_tokens: TokenCount | None = None
    cache_creation_input_tokens: TokenCount | None = None

    def counted(self) -> Usage:
        """Return the numbers, with cached tokens as a part of the input."""
        read, written = (
            self.cache_read_input_tokens or 0,
            self.cache_creation_input_tokens or 0,
        )
        return Usage(self.input_tokens + read + written, read, self.output_tokens, written)


class _StopDetails(ReplyPart):
    explanation: str | None = None


class _Body(ReplyPart):
    content: list[_Block]
    stop_reason: str | None = None
    stop_details: _StopDetails | None = None
    usage: _Usage = _Usage()
    model: str | None = None


def anthropic_transport(base_url: str | None, api_key: str | None) -> ClaudeTransport:
    """Return a connection to Anthropic, or to a gateway that speaks its messages protocol.

    Args:
        base_url: without ``/v1``; default ``ANTHROPIC_BASE_URL``, else Anthropic itself.
        api_key: default ``ANTHROPIC_API_KEY``.

    Raises:
        UsageError: the key or the optional package is missing, or the address is invalid.
    """
    key = setting(api_key, KEY_GIVEN, "ANTHROPIC_API_KEY")
    require_all({"ANTHROPIC_API_KEY": key.value})
    address = _address(base_url)
    service = checked_service("anthropic", address, {key.name: key.value})
    anthropic = package("anthropic", "Anthropic's API", "anthropic")
    connect = partial(
        connected,
        anthropic.AsyncAnthropic,
        address.value,
        service.secrets,
        api_key=key.value,
    )
    return ClaudeTransport(connect, service)


def _address(base_url: str | None) -> Setting:
    address = setting(base_url, ADDRESS_GIVEN, "ANTHROPIC_BASE_URL")
    return Setting(address.value or _ADDRESS, address.name)


def package(name: str, judge: str, extra: str) -> Any:
    """Return an optional package; it takes seconds to import, and may be absent."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(
            f"{judge} needs the package {name}: run pip install 'mind2web2[{extra}]'"
        ) from error


Sdk = TypeVar("Sdk", bound="AsyncAnthropic | AsyncAnthropicBedrock")


def connected(
    client: Callable[..., Sdk],
    address: str,
    secrets: tuple[str, ...],
    **settings: str | None,
) -> Sdk:
    """Return a client of the SDK, which composes requests, whose connections are those of every judge."""
    import httpx2

    bare, login = split_login(address)
    parts = urlsplit(bare)
    base_url = urlunsplit(parts._replace(query=""))
    pool = HttpPool(Server(base_url, secrets=secrets))
    http_client = httpx2.AsyncClient(
        transport=_pool_transport()(pool),
        # As sent: the headers of a request may be signed.
        headers={"Accept-Encoding": "gzip, deflate"},
        timeout=None,
        follow_redirects=False,
        trust_env=False,
    )
    return client(
        http_client=http_client,
        base_url=base_url,
        default_headers=login,
        default_query=dict(parse_qsl(parts.query)),
        max_retries=0,
        timeout=None,
        **settings,
    )


# Of one connection; aiohttp sets them.
_CONNECTION_HEADERS = frozenset({"connection", "content-length", "host"})
# The body is unpacked, and whole. No question tells the server of an earlier one by a cookie.
_TAKEN_HEADERS = frozenset(
    {"content-encoding", "content-length", "transfer-encoding", "set-cookie"}
)


@cache
def _pool_transport() -> Callable[[HttpPool], httpx2.AsyncBaseTransport]:
    """Return what sends the requests of httpx2 over an ``HttpPool``."""
    import httpx2

    class PoolTransport(httpx2.AsyncBaseTransport):
        def __init__(self, pool: HttpPool) -> None:
            self._pool = pool

        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            reply = await self._pool.forward(
                request.method,
                str(request.url),
                _without(request.headers, _CONNECTION_HEADERS),
                await request.aread(),
                request.extensions["timeout"]["read"],
            )
            # httpx2 logs the address, and it may hold a key.
            request.url = httpx2.URL(public_address(str(request.url)))
            headers = _without(reply.headers, _TAKEN_HEADERS)
            return httpx2.Response(200, headers=headers, content=reply.content)

        async def aclose(self) -> None:
            await self._pool.close()

    return PoolTransport


def _without(headers: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in names}


class ClaudeTransport:
    """Speaks Claude's messages protocol; a template is a tool that Claude must call."""

    modes = (OutputMode.TOOL, OutputMode.PLAIN)

    def __init__(
        self,
        connect: Callable[[], AsyncAnthropic | AsyncAnthropicBedrock],
        service: Service,
        *,
        lists_models: bool = True,
    ) -> None:
        self._sdk = PoolPerLoop(connect)
        self.service = service
        self._lists_models = lists_models

    async def send(self, wire: WireRequest) -> Completion:
        """Make one HTTP request."""
        system, turns = claude_messages(wire.messages, marks_cache=wire.marks_cache)
        parameters = dict(_parameters(wire))
        if system:
            parameters["system"] = system
        with _sdk_failures():
            raw = await self._sdk.here().messages.with_raw_response.create(
                model=wire.model,
                max_tokens=parameters.pop("max_tokens"),
                messages=cast(Any, turns),
                extra_body=parameters,
            )
            content = await raw.http_response.aread()
        completion = read_completion(content, self.service.secrets)
        return replace(completion, allowances=allowances_in(raw.http_response.headers))

    async def models(self) -> list[str]:
        """Return the names of the server's models."""
        import httpx2

        if not self._lists_models:
            return []
        with _sdk_failures():
            response = await self._sdk.here().get(
                "/v1/models?limit=1000",
                cast_to=httpx2.Response,
                options={"timeout": MODELS_TIMEOUT_S},
            )
        return read_models(response.content)

    async def close(self) -> None:
        """Close the pool."""
        await self._sdk.close()


@contextmanager
def _sdk_failures() -> Iterator[None]:
    """Raise what the SDK wraps: a failure of the pool, or an error that was not foreseen."""
    import anthropic  # takes three seconds, and may be absent

    try:
        yield
    except anthropic.APIConnectionError as error:
        if error.__cause__ is None:
            raise
        raise error.__cause__ from None


def read_completion(content: bytes, secrets: tuple[str, ...] = ()) -> Completion:
    """Return the completion in the body of a successful reply.

    Raises:
        RequestFailedError: it is no message; a retry may succeed.
    """
    content = reply_without_secrets(content, secrets)
    try:
        body = _Body.model_validate_json(content)
    except ValidationError:
        start = start_of(content, secrets)
        raise RequestFailedError(f"the reply is no message but {start!r}") from None
    check_unambiguous(content)
    calls = [
        block.input
        for block in body.content
        if block.type == "tool_use" and block.input is not None
    ]
    if len(calls) > 1:
        raise RequestFailedError(f"the reply has {len(calls)} values instead of one")
    text = "".join(block.text or "" for block in body.content if block.type == "text")
    reason = text or (body.stop_details.explanation if body.stop_details else None) or ""
    return Completion(
        text=json.dumps(calls[0], ensure_ascii=False) if calls else text,
        declined=f"refusal: {reason}".rstrip(": ") if body.stop_reason == "refusal" else None,
        is_truncated=body.stop_reason in _TRUNCATED,
        usage=body.usage.counted(),
        served_model=body.model,
    )


def claude_messages(
    messages: Sequence[CheckedMessage], *, marks_cache: bool
) -> tuple[list[Block], list[Turn]]:
    """Return the system blocks and the turns of checked messages.

    Args:
        marks_cache: mark the end of the part that later requests share: the user's first turn without its
            last part.
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
    found = _DATA_URL.match(url)
    if found is None:
        raise JudgeRequestError(f"Claude is sent images as base64 data URLs only, not {url[:60]}")
    media_type = found.group(1).lower()
    source: _ImageSource = {
        "type": "base64",
        "media_type": _MEDIA_TYPE_ALIASES.get(media_type, media_type),
        "data": url[found.end() :],
    }
    return {"type": "image", "source": source}


def _parameters(wire: WireRequest) -> Parameters:
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
        parameters |= {
            "tools": [tool],
            "tool_choice": {"type": "tool", "name": wire.schema.name},
        }
    return parameters


PROVIDER = Provider(
    connect=anthropic_transport,
    endpoint=lambda base_url: named_endpoint("anthropic", _address(base_url)),
)
