"""A client as the judge of a script that runs outside of any run."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing, nullcontext
from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol
from uuid import uuid4
from weakref import WeakKeyDictionary

from pydantic import BaseModel, ValidationError

from mind2web2.errors import (
    ContextTooLongError,
    JudgeDeclinedError,
    JudgeError,
    JudgeOutputError,
)
from mind2web2.judge.permit import AnswerLimits, CircuitBreaker, Permit
from mind2web2.judge.protocol import JudgeSession, QuestionContext, unexpected
from mind2web2.llm_client.async_calls import AsyncCalls
from mind2web2.llm_client.chat import (
    ChatProvider,
    ChatReply,
    ChatRequest,
    Limit,
    Usage,
    chat_twice,
)
from mind2web2.llm_client.structured_output import with_lists


class ScriptedClient(Protocol):
    """Any object that scripts and tests pass as a client (eval-scripts.md)."""

    async def async_response(self, **keywords: Any) -> Any:
        """Return the reply's text or the filled ``response_format``."""


class ClientProvider:
    """The chat provider of a client that has only ``async_response``; tokens are not known."""

    def __init__(self, client: ScriptedClient) -> None:
        self._client = client

    @cached_property
    def endpoint(self) -> str:
        """Return the client's class with its judge's name, or an id.

        Two objects may judge differently.
        """
        kind = type(self._client)
        # A client of a caller's may say which judge it asks.
        named = getattr(self._client, "endpoint", None)
        if isinstance(named, str):
            return f"client {kind.__module__}.{kind.__qualname__} {named}"
        return f"client {kind.__module__}.{kind.__qualname__} {_identity(self._client)}"

    async def chat(self, request: ChatRequest, limit: Limit | None = None) -> ChatReply:
        """Answer one request, as ``ChatProvider.chat`` promises."""
        template = request.template
        parameters = {} if template is None else {"response_format": template}
        try:
            async with nullcontext() if limit is None else limit:
                result = await self._client.async_response(
                    model=request.model, messages=list(request.messages), **parameters
                )
        except JudgeDeclinedError as error:
            return ChatReply(text="", declined=str(error))
        except JudgeError:
            raise
        except Exception as error:
            # No error of a foreign client may become a verdict.
            raise unexpected(error) from error
        return _as_reply(result, template)


def _identity(client: object) -> str:
    """Return an id that is unique to this client as long as it lives."""
    try:
        return _identities.setdefault(client, uuid4().hex)
    except TypeError:  # the client's class allows neither weak references nor hashing
        return uuid4().hex


_identities: WeakKeyDictionary[object, str] = WeakKeyDictionary()


def as_provider(client: Any) -> ChatProvider:
    """Return the chat provider behind a client: itself if it is one, else wrapped.

    Raises:
        TypeError: the object is not a client.
    """
    if hasattr(client, "chat") and hasattr(client, "endpoint"):
        provider: ChatProvider = client
        return provider
    if not hasattr(client, "async_response"):
        raise TypeError(
            f"client must have async_response(...), which {type(client).__name__} lacks"
        )
    return ClientProvider(client)


def _as_reply(result: Any, template: type[BaseModel] | None) -> ChatReply:
    if template is None:
        return ChatReply(text=str(result))
    unfit = JudgeOutputError(
        f"judge client returned {type(result).__name__}, which does not fill {template.__name__}"
    )
    if _is_foreign_object(result, template):
        raise unfit
    try:
        # By attributes, so that a similar class of the client's own fills the template too.
        value = with_lists(template.model_validate(result, from_attributes=True))
    except ValidationError as error:
        raise unfit from error
    text = value.model_dump_json(by_alias=True, round_trip=True, warnings=False)
    return ChatReply(text=text, value=value)


def _is_foreign_object(result: Any, template: type[BaseModel]) -> bool:
    """Tell whether an object has none of the template's fields.

    Any object fills optional fields.
    """
    if isinstance(result, template | Mapping) or type(result).__module__ == "builtins":
        return False
    return not any(hasattr(result, name) for name in template.model_fields)


class ClientJudge(JudgeSession, AsyncCalls):
    """Asks a client directly, outside of any run; nothing is stored.

    Args:
        limit: entered around each request.
    """

    def __init__(self, provider: ChatProvider, limit: Limit) -> None:
        super().__init__()
        self.ledger.usage = Usage(cost_usd=None)
        self._provider = provider
        self._limit = limit

    @property
    def endpoint(self) -> str:
        """Return the name of the client's server."""
        return self._provider.endpoint

    async def chat(self, request: ChatRequest, limit: Limit | None = None) -> ChatReply:  # noqa: ARG002 (its own is entered)
        """Answer a request of the script's own."""
        try:
            return await self.ask(request, QuestionContext("script"))
        except ContextTooLongError as error:
            raise self.fail(error) from error.__cause__

    async def ask(self, request: ChatRequest, subject: QuestionContext) -> ChatReply:
        """Answer a question, as ``Judge.ask`` promises."""
        self.check()
        permit = Permit(AnswerLimits(self._limit, self.check), CircuitBreaker())
        try:
            async with aclosing(permit):
                reply = await chat_twice(self._provider, request, permit)
        except ContextTooLongError:
            raise
        except JudgeError as error:
            raise self.fail(error) from error.__cause__
        except Exception as error:
            raise self.fail(unexpected(error)) from error
        self.ledger.usage += replace(reply.usage, judgments=1)
        self._note_rejection(reply, subject)
        return reply


def judge_of(client: Any, limit: Limit) -> ClientJudge:
    """Return the judge that asks a client."""
    return ClientJudge(as_provider(client), limit)
