"""One HTTP request to a model in its final form, its reply, and the connection pool that sends it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict

from mind2web2.llm_client.chat import Usage
from mind2web2.llm_client.failures import NOTHING_SAID, Allowances, Service

JsonSchema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TemplateSchema:
    """The JSON schema of a template.

    Args:
        name: the template's name in the characters that providers allow.
        full: pydantic's schema with every property required.
        strict: the same in the strict subset, ``None`` if it cannot be expressed there (free-form dicts).
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
    messages: Sequence[Mapping[str, Any]]
    mode: OutputMode
    schema: TemplateSchema | None
    temperature: float | None
    reasoning_effort: str | None
    marks_cache: bool
    extra: Mapping[str, Any]
    name: str = ""


@dataclass(frozen=True, slots=True)
class Completion:
    """The reply to one HTTP request; ``ChatReply`` describes the common fields.

    Args:
        is_truncated: whether a token limit cut the reply off.
    """

    text: str
    declined: str | None = None
    is_truncated: bool = False
    usage: Usage = field(default_factory=Usage)
    served_model: str | None = None
    system_fingerprint: str | None = None
    allowances: Allowances = NOTHING_SAID


class ReplyPart(BaseModel):
    """Part of a reply's body; unknown fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Transport(Protocol):
    """A connection pool that speaks one provider's protocol and retries nothing."""

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

    async def close(self) -> None:
        """Close the pool."""
