"""The seam between asking a model and one provider's protocol: one request out, one completion back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict

from mind2web2.llm_client.allowance import NOTHING_SAID, Allowances
from mind2web2.llm_client.chat import TokenUsage
from mind2web2.llm_client.failures import Service

JsonSchema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TemplateSchema:
    """The JSON schema of a template.

    Args:
        name: the template's name as providers allow it.
        full: the schema as pydantic gives it, with every property required.
        strict: the same in the strict subset, or ``None`` where that cannot say it (free-form dicts).
        is_object: whether the template is filled by a JSON object, as modes and tools require.
    """

    name: str
    full: JsonSchema
    strict: JsonSchema | None
    is_object: bool


class OutputMode(Enum):
    """How a model is made to fill a template."""

    STRICT_SCHEMA = "json_schema"
    TOOL = "tool"
    JSON = "json_object"
    PLAIN = "text"

    @property
    def shows_schema(self) -> bool:
        """Tell whether the schema must be part of the messages, since the provider is not given it."""
        return self in (OutputMode.JSON, OutputMode.PLAIN)


@dataclass(frozen=True, slots=True)
class WireRequest:
    """One HTTP request, with everything decided.

    Args:
        model: the provider's name of the model or deployment.
        messages: checked messages.
        mode: how the reply is structured; ``PLAIN`` without a template.
        schema: what is asked for, or ``None`` for free text.
        temperature: ``None`` sends none.
        reasoning_effort: ``None`` sends none.
        marks_cache: whether to say which part of the prompt later requests share, where that must be said.
        extra: further parameters, sent as they are.
        name: tells this question from equal ones; of use where replies come back in a file.
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
    """What one HTTP request brought.

    Args:
        text: the reply, empty where there was none.
        declined: why the model declined, else ``None``.
        is_truncated: whether the reply was cut off by a token limit.
        usage: tokens of this request.
        served_model: the model's name as the provider reported it.
        system_fingerprint: the backend's version, where reported.
        allowances: what the server says is left of its rate limits.
    """

    text: str
    declined: str | None = None
    is_truncated: bool = False
    usage: TokenUsage = field(default_factory=TokenUsage)
    served_model: str | None = None
    system_fingerprint: str | None = None
    allowances: Allowances = NOTHING_SAID


class ReplyPart(BaseModel):
    """Part of a reply's body: what is read of it, whatever else a server adds."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Transport(Protocol):
    """A connection pool that speaks one provider's protocol and retries nothing."""

    @property
    def service(self) -> Service:
        """Return where this leads and what a user can correct."""

    @property
    def modes(self) -> Sequence[OutputMode]:
        """Return the ways to fill a template, the best first."""

    async def send(self, wire: WireRequest) -> Completion:
        """Make one HTTP request.

        Raises:
            RequestFailedError: it brought no completion.
        """

    async def models(self) -> list[str]:
        """Return the names of the server's models, empty if this protocol has no such list.

        Raises:
            RequestFailedError: there is no connection, or no such list.
        """

    async def close(self) -> None:
        """Close the pool."""
