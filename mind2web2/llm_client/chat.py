"""Requests to a model and its replies, independent of any provider; messages, checked and encoded."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import BaseModel

from mind2web2.errors import JudgeDeclinedError
from mind2web2.llm_client.failures import one_line
from mind2web2.prompts import HashedText
from mind2web2.utils.api_misuse import script_api

# A chat message (eval-scripts.md): {"role", "content"}, the content a text or a list of {"type": "text"} and
# {"type": "image_url"} parts.
Message = Mapping[str, Any]

# Returns the problem with a reply's JSON, to be shown to the model; ``None`` if it is valid.
ReplyCheck = Callable[[str], Awaitable[str | None]]

# Entered around each HTTP request: an ``asyncio.Semaphore``, for instance.
Limit = AbstractAsyncContextManager[Any]


@dataclass(frozen=True, slots=True)
class Usage:
    """Requests, tokens and dollars of one request, one judgment or many.

    Args:
        input_tokens: all tokens of the request, cached or not.
        cached_tokens: the part of ``input_tokens`` from the provider's prompt cache.
        output_tokens: tokens of the reply, hidden reasoning included.
        cache_write_tokens: the part of ``input_tokens`` that was written into the prompt cache.
        requests: HTTP requests, retries and repairs included.
        unreported_requests: possibly billed requests whose token usage the server did not report.
        cost_usd: ``None`` if the price of a part is not known.
    """

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    cache_write_tokens: int = 0
    judgments: int = 0
    requests: int = 0
    unreported_requests: int = 0
    cost_usd: float | None = 0.0

    def __add__(self, other: Usage) -> Usage:
        """Return the sum; its dollars are unknown if one part's are."""
        is_priced = self.cost_usd is not None and other.cost_usd is not None
        return Usage(
            self.input_tokens + other.input_tokens,
            self.cached_tokens + other.cached_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.judgments + other.judgments,
            self.requests + other.requests,
            self.unreported_requests + other.unreported_requests,
            (self.cost_usd or 0.0) + (other.cost_usd or 0.0) if is_priced else None,
        )


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One question to a model.

    Args:
        template: the pydantic class that the reply must fill; ``None`` for free text.
        temperature: ``None`` for the default: 0, and none for reasoning models.
        name: distinguishes equal questions, such as trials; not sent to the model.
        check: checks a reply where the template's class is in another process.
    """

    model: str
    messages: Sequence[Message]
    template: type[BaseModel] | None = None
    temperature: float | None = None
    reasoning_effort: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    check: ReplyCheck | None = None


@dataclass(frozen=True, slots=True)
class ChatReply:
    """The reply of a model.

    Args:
        text: JSON if the request has a template and the model complied.
        declined: the reason if the model declined the content (refusal, content filter), else ``None``.
        usage: of all attempts, repairs included.
        served_model: as the provider reported it, like ``system_fingerprint``.
        judgment: the key of the stored judgment.
    """

    text: str
    value: BaseModel | None = None
    declined: str | None = None
    usage: Usage = Usage()
    served_model: str | None = None
    system_fingerprint: str | None = None
    attempts: int = 1
    judgment: str | None = field(default=None, compare=False)


class ChatProvider(Protocol):
    """A connection pool to one provider."""

    @property
    def endpoint(self) -> str:
        """Return provider and address, such as ``openai https://api.openai.com/v1``."""

    async def chat(self, request: ChatRequest, limit: Limit | None = None) -> ChatReply:
        """Answer one request, with retries after temporary failures.

        Args:
            limit: entered around each HTTP request, but not while waiting for a retry.

        Raises:
            JudgeError: a permanent failure; ``ContextTooLongError`` if the request exceeds the model's
                context, ``ImagesRefusedError`` if the model takes fewer or smaller images.
        """

    async def close(self) -> None:
        """Close the pool."""


Piece = bytes | HashedText


class JsonBody:
    """The JSON body of a request, on one line.

    A page has megabytes and is part of hundreds of concurrent requests. So the body refers to the encoding
    that each ``HashedText`` keeps, and is assembled when it is sent.

    Raises:
        TypeError: a parameter is no JSON value.
        ValueError: a number is infinite or NaN.
    """

    def __init__(self, parameters: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> None:
        self._pieces = _joined(_body_pieces(parameters, messages))

    @property
    def size_bytes(self) -> int:
        """Return the length of the body."""
        return sum(
            piece.json_bytes if isinstance(piece, HashedText) else len(piece) for piece in self._pieces
        )

    def pieces(self) -> Iterator[bytes]:
        """Yield the body in pieces, made one at a time."""
        for piece in self._pieces:
            yield from piece.json_pieces if isinstance(piece, HashedText) else (piece,)

    def sha256(self) -> str:
        """Return the hex digest of the body, without assembling it in memory."""
        digest = hashlib.sha256()
        for piece in self.pieces():
            digest.update(piece)
        return digest.hexdigest()

    def __bytes__(self) -> bytes:
        return b"".join(self.pieces())

    async def __aiter__(self) -> AsyncIterator[bytes]:
        # In one piece, which takes the fewest writes and is freed once it is sent.
        yield bytes(self)


def _joined(pieces: Iterator[Piece]) -> list[Piece]:
    """Return the pieces with adjacent small ones joined."""
    joined: list[Piece] = []
    small: list[bytes] = []
    for piece in pieces:
        if isinstance(piece, HashedText):
            joined += (b"".join(small), piece)
            small.clear()
        else:
            small.append(piece)
    return [*joined, b"".join(small)]


def _body_pieces(parameters: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> Iterator[Piece]:
    yield _up_to_value(parameters, "messages")
    for number, message in enumerate(messages):
        yield b"," if number else b"["
        yield from _message_pieces(message)
    yield b"]}" if messages else b"[]}"


def _message_pieces(message: Mapping[str, Any]) -> Iterator[Piece]:
    content = message["content"]
    if isinstance(content, str):
        yield _compact(message)
        return
    yield _up_to_value(message, "content")
    yield b"["
    for number, part in enumerate(content):
        yield b"," if number else b""
        yield from _part_pieces(part)
    yield b"]}"


def _part_pieces(part: Mapping[str, Any]) -> Iterator[Piece]:
    text, image = part.get("text"), part.get("image_url")
    if isinstance(text, HashedText):
        yield _up_to_value(part, "text")
        yield text
        yield b"}"
    elif isinstance(image, Mapping) and isinstance(image["url"], HashedText):
        yield _up_to_value(part, "image_url")
        yield _up_to_value(image, "url")
        yield image["url"]
        yield b"}}"
    else:
        yield _compact(part)


def _up_to_value(fields: Mapping[str, Any], last: str) -> bytes:
    """Return the object with one field moved to its end, up to that field's value."""
    others = {name: value for name, value in fields.items() if name != last}
    return _compact({**others, last: 0})[: -len("0}")]


def _compact(value: object) -> bytes:
    return _ENCODER.encode(value).encode()


def _plain(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True, exclude_unset=True)
    raise TypeError(f"a {type(value).__name__} is not JSON serializable")


# json.dumps would make one for every part of every message.
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_plain)


# Replies are validated as a whole, so that streaming has no use.
_REFUSED_PARAMETERS = frozenset({"stream", "stream_options"})


@script_api
class AsyncCalls:
    """Gives ``async_response`` to a class that has ``chat`` and ``endpoint``."""

    @property
    def endpoint(self) -> str:
        """Return provider and address."""
        raise NotImplementedError

    async def chat(self, request: ChatRequest, limit: Limit | None = None) -> ChatReply:
        """Answer one request, as ``ChatProvider.chat`` promises."""
        raise NotImplementedError

    async def async_response(
        self,
        *,
        messages: Sequence[Message],
        model: str,
        response_format: type[BaseModel] | None = None,
        count_token: bool = False,
        temperature: float | None = None,
        reasoning_effort: str | None = None,
        limit: Limit | None = None,
        **extra: Any,
    ) -> Any:  # depends on response_format and count_token
        """Return the reply's text or the filled ``response_format``, with ``count_token`` the tokens too.

        Args:
            limit: entered around the request.

        Raises:
            ValueError: a keyword is invalid; ``extra`` goes to the provider as it is.
            JudgeError: as ``chat``, and ``JudgeDeclinedError`` if the model declined.
        """
        _check_keywords(model, response_format, extra)
        request = ChatRequest(
            model=model,
            messages=messages,
            template=response_format,
            temperature=temperature,
            reasoning_effort=reasoning_effort,
            extra=extra,
        )
        reply = await self.chat(request, limit)
        if reply.declined is not None:
            raise JudgeDeclinedError(f"judge {model} at {self.endpoint} declined: {one_line(reply.declined)}")
        result = reply.text if reply.value is None else reply.value
        return (result, _token_counts(reply.usage)) if count_token else result


def _token_counts(usage: Usage) -> dict[str, int]:
    """Return the usage in the published form."""
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


def _check_keywords(model: object, response_format: object, extra: Mapping[str, Any]) -> None:
    if not isinstance(model, str) or not model:
        raise ValueError(f"model must be a model's name, not {model!r}")
    is_template = isinstance(response_format, type) and issubclass(response_format, BaseModel)
    if response_format is not None and not is_template:
        raise ValueError(f"response_format must be a pydantic class, not {response_format!r}")
    if refused := _REFUSED_PARAMETERS & extra.keys():
        raise ValueError(f"not supported: {', '.join(sorted(refused))}")
