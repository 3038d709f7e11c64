"""The published call async_response, for every client that answers chat requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from mind2web2.errors import JudgeDeclinedError
from mind2web2.llm_client.chat import (
    REFUSED_PARAMETERS,
    ChatReply,
    ChatRequest,
    Limit,
    Message,
    Parameters,
    Usage,
)
from mind2web2.utils.api_misuse import script_api
from mind2web2.utils.shown_text import one_line


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
        """Return the reply's text or the filled ``response_format``.

        With ``count_token`` it returns the tokens too.

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
            raise JudgeDeclinedError(
                f"judge {model} at {self.endpoint} declined: {one_line(reply.declined)}"
            )
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


def _check_keywords(model: object, response_format: object, extra: Parameters) -> None:
    if not isinstance(model, str) or not model:
        raise ValueError(f"model must be a model's name, not {model!r}")
    is_template = isinstance(response_format, type) and issubclass(response_format, BaseModel)
    if response_format is not None and not is_template:
        raise ValueError(f"response_format must be a pydantic class, not {response_format!r}")
    if refused := REFUSED_PARAMETERS & extra.keys():
        raise ValueError(f"not supported: {', '.join(sorted(refused))}")
