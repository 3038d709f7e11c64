"""Requests to a model and its replies, independent of any provider; messages, checked and encoded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import BaseModel

from mind2web2.errors import JudgeDeclinedError
from mind2web2.llm_client.failures import one_line
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
