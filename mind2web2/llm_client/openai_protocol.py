"""The chat completions protocol, over the official SDK: OpenAI, Azure and every compatible server."""

from __future__ import annotations

import errno
import json
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pydantic import ValidationError

from mind2web2.llm_client.chat import Completion, OutputMode, ReplyPart, Usage, WireRequest
from mind2web2.llm_client.failures import (
    RequestFailedError,
    Service,
    allowances_in,
    failure_from_body,
    one_line,
)
from mind2web2.llm_client.http_pool import PoolPerLoop, SdkPool
from mind2web2.llm_client.messages import JsonBody
from mind2web2.utils.retry_after import retry_after_s

if TYPE_CHECKING:
    from openai import AsyncOpenAI


# How to make the SDK's client and its connections, and where that leads.
Connection = tuple["Callable[[], SdkPool]", Service]


_MODELS_TIMEOUT_S = 5.0


class _CachedTokens(ReplyPart):
    cached_tokens: int | None = None


class _Usage(ReplyPart):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _CachedTokens | None = None

    def counted(self) -> Usage:
        """Return the numbers, zero where the server gives none."""
        details = self.prompt_tokens_details or _CachedTokens()
        return Usage(self.prompt_tokens or 0, details.cached_tokens or 0, self.completion_tokens or 0)


class _Part(ReplyPart):
    text: str | None = None


class _Message(ReplyPart):
    content: str | list[_Part] | None = None
    refusal: str | None = None

    def text(self) -> str:
        """Return the content, whose parts some servers list."""
        if isinstance(self.content, list):
            return "".join(part.text or "" for part in self.content)
        return self.content or ""


class _Choice(ReplyPart):
    message: _Message = _Message()
    finish_reason: str | None = None
    error: dict[str, Any] | None = None


class _Body(ReplyPart):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    model: str | None = None
    system_fingerprint: str | None = None
    error: dict[str, Any] | None = None  # routers put their errors into replies with status 200


class _Model(ReplyPart):
    id: str


class _Models(ReplyPart):
    data: list[_Model]


class OpenAITransport:
    """Speaks chat completions.

    Args:
        connect: makes the SDK's client and its connections.
        service: where it leads.
    """

    modes = (OutputMode.STRICT_SCHEMA, OutputMode.JSON, OutputMode.PLAIN)

    def __init__(self, connect: Callable[[], SdkPool], service: Service) -> None:
        self._pools = PoolPerLoop(connect)
        self.service = service

    async def send(self, wire: WireRequest) -> Completion:
        """Make one HTTP request."""
        secrets = self.service.secrets
        body = request_body(wire)
        pool = self._pools.here()
        with sdk_failures(secrets):
            # not chat.completions.create: it walks through, copies and encodes megabytes for every request
            response = await pool.post(_path(pool.sdk, wire.model), body, body.size_bytes)
        return replace(read_completion(response.content, secrets), allowances=allowances_in(response.headers))

    async def models(self) -> list[str]:
        """Return the names of the server's models."""
        import httpx2
        import openai

        with sdk_failures(self.service.secrets):
            response = await self._pools.here().sdk.get(
                "/models",
                cast_to=httpx2.Response,
                options={"timeout": openai.Timeout(_MODELS_TIMEOUT_S)},
            )
        try:
            return [model.id for model in _Models.model_validate_json(response.content).data]
        except ValidationError as error:
            raise RequestFailedError("the reply is no list of models") from error

    async def close(self) -> None:
        """Close the pool."""
        await self._pools.close()


@contextmanager
def sdk_failures(secrets: tuple[str, ...]) -> Iterator[None]:
    """Turn what the SDK and its HTTP client raise into ``RequestFailedError``."""
    import httpx2
    import openai  # takes two seconds

    try:
        yield
    except (openai.APIStatusError, httpx2.HTTPStatusError) as error:
        response = error.response
        raise failure_from_body(
            response.status_code,
            response.text,
            retry_after_s(response.headers),
            secrets,
            allowances_in(response.headers),
        ) from error
    except openai.APIConnectionError as error:
        raise _not_connected(error.__cause__ or error, secrets) from error
    except httpx2.HTTPError as error:
        raise _not_connected(error, secrets) from error


def _not_connected(error: BaseException, secrets: tuple[str, ...]) -> RequestFailedError:
    reason = connection_reason(error) or one_line(f"{error or type(error).__name__}", secrets)
    text = f"connection error: {reason}"
    return RequestFailedError(text, is_sent=not _is_unconnected(error), is_connection_lost=True)


def connection_reason(error: BaseException) -> str | None:
    """Return why no connection was made in the usual words, ``None`` for other reasons."""
    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in causes:
        causes.append(cause)
        cause = getattr(cause, "os_error", None) or cause.__cause__ or cause.__context__
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return "host name not found"
    is_refused = any(getattr(cause, "errno", None) == errno.ECONNREFUSED for cause in causes)
    if is_refused or "Connect call failed" in str(error):
        return "connection refused"
    return None


def _is_unconnected(error: BaseException) -> bool:
    import aiohttp
    import httpx2

    # Where aiohttp is underneath, its own error tells: the other's name is a timeout's even where a
    # connection broke off halfway.
    cause = error.__cause__
    return isinstance(error, httpx2.ConnectError) or isinstance(
        cause, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError
    )


def request_body(wire: WireRequest) -> JsonBody:
    """Return the body of a request, one line of JSON."""
    return JsonBody({"model": wire.model, **_parameters(wire)}, wire.messages)


def read_completion(content: bytes, secrets: tuple[str, ...] = ()) -> Completion:
    """Return what the body of a successful reply says.

    Raises:
        RequestFailedError: it is no chat completion; the same request may bring one.
    """
    try:
        body = _Body.model_validate_json(content)
    except ValidationError as error:
        start = one_line(content[:200].decode(errors="replace"), secrets)
        raise RequestFailedError(f"the reply is no chat completion but {start!r}") from error
    choice = body.choices[0] if body.choices else _Choice()
    if trouble := body.error or choice.error:
        # Whatever was said before it went wrong may be half of what would have been said.
        raise failure_from_body(_status_in(trouble), json.dumps({"error": trouble}), secrets=secrets)
    if choice.finish_reason == "error":
        raise RequestFailedError("the model broke off with an error", status=500)
    return Completion(
        text=choice.message.text(),
        declined=_declined(choice),
        is_truncated=choice.finish_reason == "length",
        usage=body.usage.counted() if body.usage else Usage(),
        served_model=body.model,
        system_fingerprint=body.system_fingerprint,
    )


def _path(sdk: AsyncOpenAI, model: str) -> str:
    """Return where chat completions are asked for; Azure names the deployment there."""
    from openai import AsyncAzureOpenAI

    if isinstance(sdk, AsyncAzureOpenAI) and "/deployments" not in sdk.base_url.path:
        return f"/deployments/{quote(model, safe='')}/chat/completions"
    return "/chat/completions"


def _parameters(wire: WireRequest) -> dict[str, Any]:
    """Return what goes beside model and messages; the SDK would refuse parameters it does not know."""
    parameters: dict[str, Any] = dict(wire.extra)
    if wire.temperature is not None:
        parameters["temperature"] = wire.temperature
    if wire.reasoning_effort is not None:
        parameters["reasoning_effort"] = wire.reasoning_effort
    if wire.schema is not None and wire.mode is OutputMode.STRICT_SCHEMA:
        json_schema = {"name": wire.schema.name, "schema": wire.schema.strict, "strict": True}
        parameters["response_format"] = {"type": "json_schema", "json_schema": json_schema}
    if wire.schema is not None and wire.mode is OutputMode.JSON:
        parameters["response_format"] = {"type": "json_object"}
    return parameters


def _declined(choice: _Choice) -> str | None:
    if choice.message.refusal:
        return f"refusal: {choice.message.refusal}"
    return "content filter" if choice.finish_reason == "content_filter" else None


def _status_in(error: Mapping[str, Any]) -> int:
    code = error.get("code")
    return code if isinstance(code, int) and 400 <= code < 600 else 500
