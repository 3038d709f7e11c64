"""One HTTP request to a model in its final form, and the body of its reply.

The body is one JSON object, with what any server may write into it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from operator import attrgetter
from typing import Annotated, Any, Protocol
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field

from mind2web2.llm_client.chat import (
    CheckedMessage,
    Completion,
    Parameters,
)
from mind2web2.llm_client.failures import RequestFailedError, failure_from_body
from mind2web2.llm_client.settings import Service
from mind2web2.llm_client.structured_output import (
    InvalidOutputError,
    TemplateSchema,
    unambiguous_json,
)
from mind2web2.prompts import HashedText
from mind2web2.utils.json_text import JsonObject, mappings
from mind2web2.utils.shown_text import SHORTEST_ECHO, start_of, without_secrets
from mind2web2.utils.text import as_unicode_text

# How the lines of an event stream begin; one with a colon is a comment.
_STREAM_LINES = ("data:", "event:", ":")
_NO_SUCH_PATH = "unexpected endpoint"


class OutputMode(Enum):
    """The ways to make a model fill a template."""

    STRICT_SCHEMA = "json_schema"
    TOOL = "tool"
    JSON = "json_object"
    PLAIN = "text"


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


class ReplyPart(BaseModel):
    """Part of a reply's body; unknown fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


# A server that reports more, or less than nothing, counts wrongly.
Tokens = Annotated[int, Field(strict=True, ge=0, le=1_000_000_000)]


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
        self._shared: list[HashedText] = []
        marked = json_bytes({**parameters, "messages": self._marked(messages)})
        self._between = marked.split(b'"%s"' % _MARK.encode())

    def _marked(self, value: Any) -> Any:
        """Return a value with a mark in place of each shared text."""
        if isinstance(value, HashedText):
            self._shared.append(value)
            return _MARK
        if isinstance(value, dict):
            return {name: self._marked(field) for name, field in value.items()}
        return list(map(self._marked, value)) if isinstance(value, list) else value

    @property
    def size_bytes(self) -> int:
        """Return the length of the body."""
        shared: Iterable[int] = map(attrgetter("json_bytes"), self._shared)
        return sum(map(len, self._between)) + sum(shared)

    def __bytes__(self) -> bytes:
        first, *others = self._between
        pieces = [first]
        for text, after in zip(self._shared, others, strict=True):
            pieces += (*text.json_pieces, after)
        return b"".join(pieces)


# Nothing that is sent holds it.
_MARK = uuid4().hex


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


def read_body(content: str, wanted: str, secrets: tuple[str, ...] = ()) -> JsonObject:
    """Return the object in the text of a reply with a good status.

    Args:
        wanted: the list that a completion has.

    Raises:
        RequestFailedError: it is another object, or none; the text quotes it.
    """
    # Replies are stored and shown; some servers echo keys.
    content = without_secrets(content.removeprefix("\ufeff"), secrets, SHORTEST_ECHO)
    if content.startswith(_STREAM_LINES):
        raise RequestFailedError(
            "the server sends its reply as an event stream, which was not asked for and cannot be "
            "read",
            is_final=True,
        )
    try:
        body = unambiguous_json(content)
    except InvalidOutputError as error:
        raise RequestFailedError(f"the reply is ambiguous: {error}") from None
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise RequestFailedError(f"the reply is not a completion but {start_of(content)!r}")
    if body.get("error") or wanted not in body:
        raise error_in_reply(body, secrets)
    return body


def error_in_reply(body: JsonObject, secrets: tuple[str, ...]) -> RequestFailedError:
    """Return the failure that a reply describes although its status is good."""
    failure = failure_from_body(_status_in(body), json.dumps(body), secrets=secrets)
    if failure.text.lower().startswith(_NO_SUCH_PATH):
        failure.status = 404
    return failure


def _status_in(body: JsonObject) -> int | None:
    error = body.get("error")
    code = (error if isinstance(error, Mapping) else body).get("code")
    return code if isinstance(code, int) and 400 <= code < 600 else None


# Parts of a reply's content with the answer. Those of other types have text as well, such as a
# draft of the verdict in the reasoning.
_ANSWER_PARTS = (None, "text", "output_text")


def text_of(content: object) -> str:
    """Return the text of a content, which some servers split into parts."""
    if not isinstance(content, str):
        parts = mappings(content)
        texts = (part.get("text") for part in parts if part.get("type") in _ANSWER_PARTS)
        content = "".join(text for text in texts if isinstance(text, str))
    return as_unicode_text(content)
