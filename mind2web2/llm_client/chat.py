"""Requests to a model and its replies, independent of any provider."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    NotRequired,  # pydantic needs it before Python 3.12
    Protocol,
    runtime_checkable,
)

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    with_config,
)
from typing_extensions import TypedDict

from mind2web2.utils.text import as_unicode_text, counted

# A chat message as scripts give it, not checked yet (eval-scripts.md): {"role", "content"}, the
# content a text or a list of {"type": "text"} and {"type": "image_url"} parts.
Message = Mapping[str, Any]
MessagePart = Mapping[str, Any]
# Parameters of a request that go to the provider as they are.
Parameters = Mapping[str, Any]

# Replies are validated as a whole, so that streaming has no use.
_STREAMING = frozenset({"stream", "stream_options"})
# Parameters that no request may have beside its own: they would replace what it asks, and whom.
REFUSED_PARAMETERS = _STREAMING | {
    "messages",
    "model",
    "reasoning_effort",
    "response_format",
    "temperature",
}

_REASONS_SHOWN = 4

# Returns the problem with a reply's JSON, to be shown to the model; ``None`` if it is valid.
ReplyCheck = Callable[[str], Awaitable[str | None]]

# Entered around each HTTP request: an ``asyncio.Semaphore``, for instance.
Limit = AbstractAsyncContextManager[Any]


def _sendable(text: object) -> object:
    return as_unicode_text(text) if isinstance(text, str) else text


# Without lone surrogates, which no request can carry.
_Text = Annotated[str, BeforeValidator(_sendable)]
# Further fields, such as a name, go to the provider as they are.
_open = with_config(ConfigDict(extra="allow"))


@_open
class TextPart(TypedDict):
    """A text in a message."""

    type: Literal["text"]
    text: _Text


@_open
class ImageUrl(TypedDict):
    """The address of an image, or its content as a ``data:`` URL."""

    url: Annotated[str, Field(pattern="^(data:image/|https?://)")]
    detail: NotRequired[str]


@_open
class ImagePart(TypedDict):
    """An image in a message."""

    type: Literal["image_url"]
    image_url: ImageUrl


Role = Literal["system", "developer", "user", "assistant"]
_Parts = list[Annotated[TextPart | ImagePart, Field(discriminator="type")]]


def _form_of_content(content: object) -> str:
    return "text" if isinstance(content, str) else "parts"


@_open
class CheckedMessage(TypedDict):
    """A chat message that can be sent."""

    role: Role
    content: Annotated[
        Annotated[_Text, Tag("text")] | Annotated[_Parts, Field(min_length=1), Tag("parts")],
        Discriminator(_form_of_content),
    ]


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

    @property
    def rounded_usd(self) -> float | None:
        """Return the dollars as files have them, ``None`` where they are unknown."""
        return None if self.cost_usd is None else round(self.cost_usd, 6)

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


@dataclass(slots=True)
class Slowdown:
    """How much rate limits have slowed a run down.

    Args:
        refusals: replies with status 429.
        waited_s: time in which the limiter held requests back.
    """

    refusals: int = 0
    waited_s: float = 0.0

    def in_words(self) -> str:
        """Return the numbers in words, empty if there was no slowdown."""
        refused = f"{self.refusals} refused (429)" if self.refusals else ""
        held = f"requests held back for {self.waited_s:.0f} s" if self.waited_s >= 1 else ""
        return f"rate limit: {', '.join(filter(None, (refused, held)))}" if refused or held else ""


@dataclass(slots=True)
class Retries:
    """The retries of a run, counted by the reason."""

    reasons: Counter[str] = field(default_factory=Counter)

    def note(self, reason: str) -> None:
        """Count one more retry."""
        self.reasons[reason] += 1

    def in_words(self) -> str:
        """Return the number and the most frequent reasons, empty without retries."""
        if not self.reasons:
            return ""
        reasons = [
            f"{reason}: {count}" for reason, count in self.reasons.most_common(_REASONS_SHOWN)
        ]
        if len(self.reasons) > _REASONS_SHOWN:
            reasons.append("...")
        total = self.reasons.total()
        return f"{counted(total, 'request')} tried again ({', '.join(reasons)})"


@dataclass(slots=True)
class SentRequests:
    """The HTTP requests of one question, counted where they are sent, also if the question fails.

    Args:
        requests: those sent over a connection.
        reported: those whose price is known: the server reported the tokens, or an error.
        first_sent_ns: when the first one was sent, after all waiting, in nanoseconds since the
            epoch.
    """

    requests: int = 0
    reported: int = 0
    replies: list[Usage] = field(default_factory=list)
    first_sent_ns: int | None = None

    @property
    def usage(self) -> Usage:
        """Return the usage of all replies together, with the number of requests."""
        sent = Usage(requests=self.requests, unreported_requests=self.unreported)
        return sum(self.replies, sent)

    @property
    def unreported(self) -> int:
        """Return how many may be billed although the server reported no tokens."""
        return max(self.requests - self.reported, 0)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One question to a model.

    Args:
        template: the pydantic class that the reply must fill; ``None`` for free text.
        temperature: ``None`` for the default: 0, and none for reasoning models.
        name: distinguishes equal questions, such as trials; not sent to the model.
        check: checks a reply where the template's class is in another process.
        sent: counts the HTTP requests; a client that does not count them leaves it as it is.
    """

    model: str
    messages: Sequence[Message]
    template: type[BaseModel] | None = None
    temperature: float | None = None
    reasoning_effort: str | None = None
    extra: Parameters = field(default_factory=dict)
    name: str = ""
    check: ReplyCheck | None = None
    sent: SentRequests = field(default_factory=SentRequests, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ChatReply:
    """The reply of a model.

    Args:
        text: JSON if the request has a template and the model complied.
        declined: the reason if the model declined the content (refusal, content filter), else
            ``None``.
        usage: of all attempts, repairs included.
        served_model: as the provider reported it, like ``system_fingerprint``.
        images: how many were shown; ``None`` where that is not known.
        judgment: the key of the stored judgment.
    """

    text: str
    value: BaseModel | None = None
    declined: str | None = None
    usage: Usage = Usage()
    served_model: str | None = None
    system_fingerprint: str | None = None
    attempts: int = 1
    images: int | None = None
    judgment: str | None = field(default=None, compare=False)


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
            JudgeError: a permanent failure; ``ContextTooLongError`` if the request exceeds the
                model's context.
        """


async def chat_twice(
    provider: ChatProvider, request: ChatRequest, limit: Limit | None = None
) -> ChatReply:
    """Answer one request, which is sent again if the model declines.

    Content filters are not deterministic. The reply has what both requests cost.
    """
    reply = await provider.chat(request, limit)
    if reply.declined is None:
        return reply
    again = await provider.chat(request, limit)
    usage, attempts = reply.usage + again.usage, reply.attempts + again.attempts
    return replace(again, usage=usage, attempts=attempts)


@runtime_checkable
class MeasuredProvider(ChatProvider, Protocol):
    """A provider of this package: it counts delays and retries, and can check its server.

    Attributes:
        slowdown: the delays by rate limits.
        retries: the number of retries and their reasons.
    """

    slowdown: Slowdown
    retries: Retries

    async def check_reachable(self) -> None:
        """Check that the server accepts connections.

        Raises:
            JudgeUnusableError: it does not.
        """


class OwnPrice(NamedTuple):
    """The user's own price of a model in dollars per million tokens.

    ``cached_usd`` defaults to input's.
    """

    input_usd: float
    output_usd: float
    cached_usd: float | None = None
