"""What is said to a model and what comes back, independent of any provider."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol, Self

from pydantic import BaseModel, ConfigDict

from mind2web2.errors import ImagesRefusedError
from mind2web2.llm_client.failures import NOTHING_SAID, Allowances, Service

# Chat messages as providers take them (eval-scripts.md): {"role", "content"}, the content a text or a
# list of {"type": "text"} and {"type": "image_url"} parts.
Message = Mapping[str, Any]

# Says what is wrong with a reply's JSON, in words a model can act on; ``None`` if it is as it should be.
ReplyCheck = Callable[[str], Awaitable[str | None]]

# Entered once per HTTP request, many times over its life: an ``asyncio.Semaphore``, for instance.
Limit = AbstractAsyncContextManager[Any]


class ImageLimit(BaseModel):
    """How many images a judge is shown with one question, and how large; ``None`` stands for any.

    Args:
        max_images: 0 shows text alone.
        max_side_px: of an image's longer side.
    """

    model_config = ConfigDict(frozen=True)

    max_images: int | None = None
    max_side_px: int | None = None

    @classmethod
    def of(cls, refusal: ImagesRefusedError) -> Self:
        """Return the limit that a refusal names."""
        return cls(max_images=refusal.max_images, max_side_px=refusal.max_side_px)

    def refusal(self, reason: str) -> ImagesRefusedError:
        """Return the error that names this limit."""
        return ImagesRefusedError(reason, self.max_images, self.max_side_px)

    def merged(self, other: ImageLimit) -> ImageLimit:
        """Return the limit that keeps to both."""
        return ImageLimit(
            max_images=_least(self.max_images, other.max_images),
            max_side_px=_least(self.max_side_px, other.max_side_px),
        )

    def in_words(self) -> str:
        """Return what a judge with this limit takes."""
        side = "" if self.max_side_px is None else f" of at most {self.max_side_px} pixels a side"
        if self.max_images is None:
            return f"images{side}"
        if self.max_images == 0:
            return "no images"
        return f"at most {self.max_images} image{'s' * (self.max_images != 1)}{side}"


NO_LIMIT = ImageLimit()


def _least(one: int | None, other: int | None) -> int | None:
    known = [number for number in (one, other) if number is not None]
    return min(known, default=None)


@dataclass(frozen=True, slots=True)
class Usage:
    """Requests, tokens and dollars of one request, one judgment or many; two add up.

    Args:
        input_tokens: all tokens of the request, cached or not, as the provider reported them.
        cached_tokens: the part of ``input_tokens`` that the provider had in its prompt cache.
        output_tokens: tokens of the reply, hidden reasoning included.
        cache_write_tokens: the part of ``input_tokens`` that was put into the prompt cache, where
            that has a price of its own.
        judgments: questions that got an answer.
        requests: HTTP requests sent, retries and repairs included.
        unreported_requests: possibly billed requests whose token usage the server did not report.
        cost_usd: ``None`` where the price of a part is not known.
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
        """Return the sum of both; its dollars are unknown where those of one are."""
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
        model: the provider's name of the model or deployment.
        messages: the conversation.
        template: the pydantic class the reply must fill, or ``None`` for free text.
        temperature: ``None`` means the default rule: 0, and nothing at all for reasoning models.
        reasoning_effort: passed on where given.
        extra: further parameters of the provider's call, passed on as they are.
        name: tells this question from equal ones, such as another trial; it is not sent to the model.
        check: returns what is wrong with a reply, ``None`` if nothing is, where the template itself cannot
            tell, as its class is in another process.
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
    """What a model answered.

    Args:
        text: the reply as text; JSON where a template was asked for and the model complied.
        value: the filled template, or ``None`` (no template, or declined).
        declined: why the model declined the content (refusal, content filter), else ``None``.
        usage: tokens of all attempts behind this reply, repairs included.
        served_model: the model's name as the provider reported it.
        system_fingerprint: the backend's version as reported, where it is.
        attempts: HTTP requests sent, retries and repairs included.
        judgment: the key that the reply is stored under, where it is; no part of what was said.
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
        """Return what tells this provider from others, such as ``openai https://api.openai.com/v1``."""

    async def chat(self, request: ChatRequest, limit: Limit | None = None) -> ChatReply:
        """Answer one request, retrying what can pass.

        Args:
            request: what is asked.
            limit: entered around each HTTP request, and not while waiting to try again.

        Raises:
            JudgeError: the family's members say what failed for good; ``ContextTooLongError`` where
                the request does not fit the model's context, ``ImagesRefusedError`` where the model takes
                fewer or smaller images.
        """

    async def close(self) -> None:
        """Close the pool."""


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
    usage: Usage = field(default_factory=Usage)
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
