"""A client of one provider.

It has request forms that its models accept, retries, and repairs of invalid replies.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from mind2web2.errors import (
    JudgeAccessError,
    JudgeError,
    JudgeOutputError,
    JudgeRequestError,
    JudgeUnusableError,
    Mind2Web2Error,
)
from mind2web2.llm_client.async_calls import AsyncCalls
from mind2web2.llm_client.capabilities import Capabilities
from mind2web2.llm_client.chat import (
    ChatReply,
    ChatRequest,
    CheckedMessage,
    Completion,
    Limit,
    Message,
    Retries,
    Slowdown,
    Usage,
)
from mind2web2.llm_client.failures import RequestFailedError
from mind2web2.llm_client.judge_errors import judge_error
from mind2web2.llm_client.messages import (
    checked_messages,
    image_urls,
    text_of,
)
from mind2web2.llm_client.retries import (
    SECOND_CONNECTION_S,
    Attempts,
    RetryPolicy,
    Window,
)
from mind2web2.llm_client.structured_output import (
    InvalidOutputError,
    TemplateSchema,
    read_reply,
    repair_messages,
    schema_of,
)
from mind2web2.llm_client.transport import (
    Transport,
    WireRequest,
)
from mind2web2.utils.names import did_you_mean
from mind2web2.utils.shown_text import one_line

log = logging.getLogger(__name__)

_MAX_MODELS = 5
# Most requests for a valid reply: question, repair, question again. ``RetryPolicy`` covers errors
# of the server.
_REPLY_TRIES = 3
# No token spans two words, and hardly any has so many characters. Only requests that are long, and
# have more characters a token than usual texts, are looked at. No context is smaller than the least
# count: a server that reports less does not count.
_LEAST_COUNT = 500
_SHORT_CHARS = 8_000
_FEW_CHARS_A_TOKEN = 4
_MOST_CHARS_A_TOKEN = 12


# Providers add these parts to a model's name in their lists, or accept names with and without them:
# Gemini's folder, Ollama's tag, OpenRouter's variant, Anthropic's date and its word for the newest.
_FOLDER = "models/"
_ADDITION = re.compile(r":[a-z]+$|-latest$|-20\d\d-?\d\d-?\d\d$")


def _is_listed(model: str, models: Sequence[str]) -> bool:
    """Tell whether a server lists a model, under this name or another form of it."""
    return _plain_name(model) in map(_plain_name, models)


def _plain_name(model: str) -> str:
    return _ADDITION.sub("", model.removeprefix(_FOLDER))


class ProviderClient(AsyncCalls):
    """A judge behind one transport.

    Attributes:
        slowdown: the delays by rate limits.
        retries: the number of retries and their reasons.
    """

    def __init__(self, transport: Transport, retry: RetryPolicy) -> None:
        self._transport = transport
        self._retry = retry
        self._capabilities = Capabilities(transport.modes)
        self._windows: dict[str, Window] = {}
        # The names that the server lists.
        self._models: list[str] = []
        # Names that were looked up in the list.
        self._compared: set[str] = set()
        self.slowdown = Slowdown()
        self.retries = Retries()

    @property
    def endpoint(self) -> str:
        """Return provider and address."""
        return self._transport.service.endpoint

    async def chat(self, request: ChatRequest, limit: Limit | None = None) -> ChatReply:
        """Answer one request, as ``ChatProvider.chat`` promises."""
        if request.model not in self._windows:
            # Servers count the requests to each model separately.
            self._windows[request.model] = Window(self._retry, self.slowdown)
        window = self._windows[request.model]
        attempts = Attempts(window, limit or nullcontext(), self.retries, request.sent)
        schema = None if request.template is None else schema_of(request.template)
        exchange = _Exchange(
            self._transport, self._capabilities, request, schema, attempts, self.retries
        )
        try:
            reply = await exchange.reply()
        except JudgeAccessError as error:
            failure = error.__cause__
            if not isinstance(failure, RequestFailedError) or failure.status != 404:
                raise
            raise self._name_models(error, request.model) from failure
        if self._models and request.model not in self._compared:
            self._warn_if_unlisted(request.model)
        return reply

    async def async_response(self, *, messages: Sequence[Message], **keywords: Any) -> Any:
        """Return the same as ``AsyncCalls``; the messages are a caller's own."""
        return await super().async_response(messages=checked_messages(messages), **keywords)

    async def check_reachable(self) -> None:
        """Check that the server accepts connections.

        Raises:
            JudgeUnusableError: it does not; the text names address and reason.
        """
        failure = await self._connection_failure()
        if failure is not None:
            await asyncio.sleep(SECOND_CONNECTION_S)
            failure = await self._connection_failure()
        if failure is not None:
            address = self._transport.service.shown.partition(" ")[2]
            reason = str(failure).removeprefix("connection error: ")
            raise JudgeUnusableError(
                f"cannot connect to the judge at {address}: {reason}. Is the server running?"
            ) from failure

    async def _connection_failure(self) -> RequestFailedError | None:
        """Return a failure if the server cannot be reached."""
        try:
            self._models = await self._transport.models()
        except RequestFailedError as failure:
            return None if failure.is_sent else failure
        return None

    def _name_models(self, error: JudgeAccessError, model: str) -> JudgeAccessError:
        """Return an error that names the server's models, if it lists others than this one."""
        models = self._models
        if not models or model in models:
            return error
        return JudgeAccessError(
            f"{self._transport.service.shown} has no model {model}; {self._near(model)}",
            is_for_all=True,
        )

    def _warn_if_unlisted(self, model: str) -> None:
        """Warn once that the server answers as a model that it does not list."""
        self._compared.add(model)
        if not _is_listed(model, self._models):
            log.warning(
                "%s does not list the model %s, so another model may have answered; %s",
                self._transport.service.shown,
                model,
                self._near(model),
            )

    def _near(self, model: str) -> str:
        listed = f"it has {', '.join(self._models[:_MAX_MODELS])}"
        return did_you_mean(model, self._models, listed)


@dataclass
class _Exchange:
    """One question with all its HTTP requests: retries, other forms, repairs.

    Attributes:
        usage: of all requests together.
        images: how many the latest one showed.
    """

    transport: Transport
    capabilities: Capabilities
    request: ChatRequest
    schema: TemplateSchema | None
    attempts: Attempts
    retries: Retries
    usage: Usage = field(default_factory=Usage)
    images: int = 0

    async def reply(self) -> ChatReply:
        """Return a valid reply.

        The client asks, shows the model its error, then asks without that conversation.
        """
        messages = cast("list[CheckedMessage]", self.request.messages)
        turns = messages
        for number in range(1, _REPLY_TRIES + 1):
            completion = await self._ask(turns)
            try:
                return await self._read(completion)
            except InvalidOutputError as problem:
                if number == _REPLY_TRIES:
                    raise self._output_error(problem, completion) from problem
                is_repair = number % 2 == 1
                log.warning(
                    "judge output invalid, asking %s model=%s try=%d of=%d problem=%s",
                    "for a repair" if is_repair else "again",
                    self.request.model,
                    number,
                    _REPLY_TRIES,
                    problem,
                    extra={"alike": "judge output invalid"},
                )
                self.retries.note("unusable output")
                # Some servers ignore ``response_format``, so that the model has not seen it.
                self.capabilities.show_schema(self.request.model)
                turns = (
                    [*messages, *repair_messages(completion, problem)] if is_repair else messages
                )
        raise AssertionError("unreachable")

    async def _read(self, completion: Completion) -> ChatReply:
        text, value = completion.text, None
        if completion.declined is None:
            text, value = read_reply(completion, self.request.template)
            problem = None if self.request.check is None else await self.request.check(text)
            if problem is not None:
                raise InvalidOutputError(problem)
        return ChatReply(
            text=text,
            value=value,
            declined=completion.declined,
            usage=self.usage,
            served_model=completion.served_model,
            system_fingerprint=completion.system_fingerprint,
            attempts=self.attempts.made,
            images=self.images,
        )

    async def _ask(self, messages: list[CheckedMessage]) -> Completion:
        """Send the messages in the best form that the server accepts."""
        while True:
            wire = self.capabilities.wire(self.request, messages, self.schema)
            try:
                completion = await self.attempts.send(partial(self.transport.send, wire))
            except RequestFailedError as failure:
                if failure.is_declined:
                    return Completion(text="", declined=str(failure))
                if failure.is_invalid_output:
                    return Completion(text="")
                if not self.capabilities.learn(wire, failure):
                    raise self._final(failure, wire) from failure
            except Mind2Web2Error:
                raise
            except Exception as error:
                # An unforeseen error of a library must not become a verdict.
                service = self.transport.service
                reason = one_line(f"{type(error).__name__}: {error}", service.secrets)
                raise JudgeRequestError(
                    f"judge {wire.model} at {service.shown}: the request could not be made: {reason}"
                ) from error
            else:
                self.usage += completion.usage
                self.images = len(image_urls(wire.messages))
                self._check_was_read(wire, completion.usage)
                return completion

    def _check_was_read(self, wire: WireRequest, usage: Usage) -> None:
        """Check that the model was shown the whole request.

        Raises:
            JudgeRequestError: the server counted fewer tokens than its texts can have.
        """
        counted = usage.input_tokens + usage.cached_tokens
        if counted < _LEAST_COUNT:
            return
        texts = list(text_of(wire.messages))
        length = sum(map(len, texts))
        if length < max(_SHORT_CHARS, _FEW_CHARS_A_TOKEN * counted):
            return
        words = [len(word) for text in texts for word in text.split()]
        if max(len(words), sum(words) / _MOST_CHARS_A_TOKEN) > counted:
            raise JudgeRequestError(
                f"judge {wire.model} at {self.transport.service.shown} counted "
                f"{usage.input_tokens:,} tokens for {length:,} characters, so it did not read all "
                "of the request: raise the context that its server gives it (Ollama: "
                "OLLAMA_CONTEXT_LENGTH; llama.cpp: --ctx-size)"
            )

    def _final(self, failure: RequestFailedError, wire: WireRequest) -> JudgeError:
        error = judge_error(failure, self.transport.service, self.request.model)
        if type(error) is JudgeRequestError and image_urls(wire.messages):
            error.args = (f"{error} (if this model reads no images, add --no_screenshots)",)
        return error

    def _output_error(
        self, problem: InvalidOutputError, completion: Completion
    ) -> JudgeOutputError:
        wanted = "no text"
        if self.schema is not None:
            wanted = f"not the requested JSON (form {self.schema.name!r})"
        service = self.transport.service
        reason = one_line(str(problem), service.secrets)
        last = one_line(completion.text, service.secrets)
        where = f"{self.request.model} at {service.shown}"
        cure = ""
        if completion.is_truncated:
            cure = (
                "; allow more tokens, such as --judge_extra_body '{\"max_tokens\": 8192}', or less "
                "reasoning"
            )
        elif completion.elsewhere:
            cure = (
                "; the server takes it for thinking or for a tool call: start it without a parser of "
                "reasoning and of tool calls"
            )
        return JudgeOutputError(
            f"the reply of judge {where} was {wanted}, {_REPLY_TRIES} times: {reason} (last "
            f"reply: {last!r}){cure}"
        )
