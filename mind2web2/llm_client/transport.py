"""One HTTP request to a model in its final form, and its reply."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict

from mind2web2.llm_client.chat import (
    CheckedMessage,
    ImagePart,
    ImageUrl,
    Parameters,
    TextPart,
    Usage,
)
from mind2web2.llm_client.judge_errors import Service
from mind2web2.prompts import HashedText

JsonSchema = dict[str, Any]
Piece = bytes | HashedText


@dataclass(frozen=True, slots=True)
class TemplateSchema:
    """The JSON schema of a template.

    Args:
        name: the template's name in the characters that providers allow.
        full: pydantic's schema with every property required.
        strict: the same in the strict subset, ``None`` if it cannot be expressed there (free-form
            dicts).
        is_object: whether a JSON object fills the template, as modes and tools require.
    """

    name: str
    full: JsonSchema
    strict: JsonSchema | None
    is_object: bool


class OutputMode(Enum):
    """The ways to make a model fill a template."""

    STRICT_SCHEMA = "json_schema"
    TOOL = "tool"
    JSON = "json_object"
    PLAIN = "text"

    @property
    def shows_schema(self) -> bool:
        """Tell whether the schema must be part of the messages, as no parameter holds it."""
        return self in (OutputMode.JSON, OutputMode.PLAIN)


@dataclass(frozen=True, slots=True)
class WireRequest:
    """One HTTP request in its final form; ``ChatRequest`` describes the common fields.

    Args:
        schema: ``None`` for free text.
        temperature: ``None`` sends none, like ``reasoning_effort``.
        marks_cache: whether to mark the part of the prompt that later requests share, for Claude.
    """

    model: str
    messages: Sequence[CheckedMessage]
    mode: OutputMode
    schema: TemplateSchema | None
    temperature: float | None
    reasoning_effort: str | None
    marks_cache: bool
    extra: Parameters
    name: str = ""


@dataclass(frozen=True, slots=True)
class Completion:
    """The reply to one HTTP request; ``ChatReply`` describes the common fields.

    Args:
        is_truncated: whether a token limit cut the reply off.
        elsewhere: the fields of the reply that have words beside its text.
    """

    text: str
    declined: str | None = None
    is_truncated: bool = False
    elsewhere: str = ""
    usage: Usage = field(default_factory=Usage)
    served_model: str | None = None
    system_fingerprint: str | None = None


class ReplyPart(BaseModel):
    """Part of a reply's body; unknown fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Transport(Protocol):
    """Speaks one provider's protocol, and retries nothing."""

    @property
    def service(self) -> Service:
        """Return the server and the settings that a user can correct."""

    @property
    def modes(self) -> Sequence[OutputMode]:
        """Return the ways to fill a template, the best first."""

    async def send(self, wire: WireRequest) -> Completion:
        """Make one HTTP request.

        Raises:
            RequestFailedError: there is no completion.
        """

    async def models(self) -> list[str]:
        """Return the names of the server's models, empty if the protocol has no such list.

        Raises:
            RequestFailedError: there is no connection, or no such list.
        """


class JsonBody:
    """The JSON body of a request, on one line.

    A page has megabytes and is part of hundreds of concurrent requests. So the body refers to the
    encoding that each ``HashedText`` keeps, and is assembled when it is sent.

    Raises:
        TypeError: a parameter is not a JSON value.
        ValueError: a number is infinite or NaN.
    """

    def __init__(self, parameters: Parameters, messages: Sequence[CheckedMessage]) -> None:
        self._pieces = _join_small(_body_pieces(parameters, messages))

    @property
    def size_bytes(self) -> int:
        """Return the length of the body."""
        return sum(
            piece.json_bytes if isinstance(piece, HashedText) else len(piece)
            for piece in self._pieces
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


def _join_small(pieces: Iterator[Piece]) -> list[Piece]:
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


def _body_pieces(parameters: Parameters, messages: Sequence[CheckedMessage]) -> Iterator[Piece]:
    yield _up_to_value(parameters, "messages")
    for number, message in enumerate(messages):
        yield b"," if number else b"["
        yield from _message_pieces(message)
    yield b"]}" if messages else b"[]}"


def _message_pieces(message: CheckedMessage) -> Iterator[Piece]:
    content = message["content"]
    if isinstance(content, str):
        yield json_bytes(message)
        return
    yield _up_to_value(message, "content")
    yield b"["
    for number, part in enumerate(content):
        yield b"," if number else b""
        yield from _part_pieces(part)
    yield b"]}"


def _part_pieces(part: TextPart | ImagePart) -> Iterator[Piece]:
    if part["type"] == "text":
        last, image, value = "text", None, part["text"]
    else:
        last, image = "image_url", part["image_url"]
        value = image["url"]
    if not isinstance(value, HashedText):
        yield json_bytes(part)
        return
    yield _up_to_value(part, last)
    if image is not None:
        yield _up_to_value(image, "url")
    yield value
    yield b"}" if image is None else b"}}"


def _up_to_value(
    fields: Parameters | CheckedMessage | TextPart | ImagePart | ImageUrl, last: str
) -> bytes:
    """Return the object with one field moved to its end, up to that field's value."""
    others = {name: value for name, value in fields.items() if name != last}
    return json_bytes({**others, last: 0})[: -len("0}")]


def json_bytes(value: object) -> bytes:
    """Return a JSON value on one line, as requests have it."""
    return _ENCODER.encode(value).encode()


def _plain(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True, exclude_unset=True)
    raise TypeError(f"a {type(value).__name__} is not JSON serializable")


# json.dumps would make one for every part of every message.
_ENCODER = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_plain
)
