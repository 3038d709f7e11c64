"""The chat completions protocol over the official SDK, for OpenAI, Azure and every compatible server."""

from __future__ import annotations

import asyncio
import errno
import json
import socket
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar
from urllib.parse import quote, urlsplit
from urllib.request import getproxies

from pydantic import ValidationError

from mind2web2.errors import UsageError
from mind2web2.llm_client.chat import Parameters, Usage
from mind2web2.llm_client.failures import (
    RequestFailedError,
    Service,
    allowances_in,
    failure_from_body,
    one_line,
)
from mind2web2.llm_client.settings import (
    ADDRESS_GIVEN,
    KEY_GIVEN,
    OPENAI_LIKE,
    Setting,
    checked_service,
    require_all,
    setting,
    variable,
)
from mind2web2.llm_client.transport import (
    Completion,
    JsonBody,
    OutputMode,
    ReplyPart,
    WireRequest,
)
from mind2web2.utils.json_fields import JsonObject
from mind2web2.utils.private_attributes import check_private_attributes
from mind2web2.utils.retry_after import retry_after_s

if TYPE_CHECKING:
    import aiohttp
    import httpx2
    from openai import AsyncOpenAI


def use_clean_connections(client: httpx2.AsyncClient) -> None:
    """Make the SDK's aiohttp client drop a connection that received data without a request.

    aiohttp reads such data as the reply to the next request, so that a server that answers one question twice
    would decide another one. There is no public way.

    Raises:
        MachineError: the installed versions lack the private attributes.
    """
    check_private_attributes("aiohttp", "httpx2", "openai")
    # Any: private attributes of the SDK.
    transports: list[Any] = [client._transport, *client._mounts.values()]
    for transport in transports:
        if transport is not None:
            transport.get_client = partial(_session, transport.get_client)


def _session(build: Any) -> aiohttp.ClientSession:
    from aiohttp.client_proto import ResponseHandler

    class CleanConnection(ResponseHandler):
        def is_connected(self) -> bool:
            return super().is_connected() and not self.should_close

    session: aiohttp.ClientSession = build()
    connector: Any = session.connector
    connector._factory = partial(CleanConnection, loop=asyncio.get_running_loop())
    return session


class _Closable(Protocol):
    async def close(self) -> None: ...


Pool = TypeVar("Pool", bound=_Closable)


class _Opened(NamedTuple, Generic[Pool]):
    pool: Pool
    # Runs from the pool's opening to its closing.
    lifetime: AsyncGenerator[None, None]


class PoolPerLoop(Generic[Pool]):
    """Holds a pool for each event loop, so that one client serves several ``asyncio.run`` in turn.

    An open pool is closed with its loop, as ``asyncio.run`` closes asynchronous generators last.

    Args:
        build: makes a pool; called at once, so that invalid settings fail early.
    """

    def __init__(self, build: Callable[[], Pool]) -> None:
        self._build = build
        self._unused: Pool | None = build()
        self._opened: dict[asyncio.AbstractEventLoop, _Opened[Pool]] = {}

    def here(self) -> Pool:
        """Return the running loop's pool."""
        loop = asyncio.get_running_loop()
        opened = self._opened.get(loop) or self._open(loop)
        return opened.pool

    async def close(self) -> None:
        """Close the running loop's pool."""
        opened = self._opened.get(asyncio.get_running_loop())
        if opened is not None:
            await opened.lifetime.aclose()
        elif self._unused is not None:
            await self._unused.close()

    def _open(self, loop: asyncio.AbstractEventLoop) -> _Opened[Pool]:
        pool = self._unused or self._build()
        self._unused = None
        lifetime = self._lifetime(loop, pool)
        with suppress(StopIteration):
            # It does not wait before its yield.
            lifetime.__anext__().send(None)
        opened = self._opened[loop] = _Opened(pool, lifetime)
        return opened

    async def _lifetime(
        self, loop: asyncio.AbstractEventLoop, pool: Pool
    ) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            del self._opened[loop]
            await pool.close()


# The retry policy limits only the request as a whole.
CONNECT_TIMEOUT_S = 30.0


class SdkPool:
    """The SDK's client with an HTTP client on aiohttp, which takes half the time of httpcore."""

    def __init__(self, connect: Callable[[httpx2.AsyncClient], AsyncOpenAI]) -> None:
        self._http = _http_client()
        self.sdk = connect(self._http)
        self._answered: dict[str, httpx2.Request] = {}

    async def post(
        self, path: str, body: AsyncIterable[bytes], size_bytes: int
    ) -> httpx2.Response:
        """Send a JSON body and return the successful response.

        The SDK takes longer to prepare a request than to send it. So later requests reuse address and headers
        of the first successful one.

        Raises:
            openai.OpenAIError: from the SDK, for the first request.
            httpx2.HTTPError: the request could not be sent, or the status is an error.
        """
        import httpx2

        prepared = self._answered.get(path)
        if prepared is None:
            response = await self.sdk.post(
                path,
                cast_to=httpx2.Response,
                content=body,
                options={"headers": {"Content-Length": str(size_bytes)}},
            )
            # A redirect may change.
            if not response.history:
                self._answered[path] = response.request
            return response
        headers = prepared.headers.copy()
        headers["Content-Length"] = str(size_bytes)
        request = httpx2.Request(
            prepared.method,
            prepared.url,
            headers=headers,
            content=body,
            extensions=prepared.extensions,
        )
        response = await self._http.send(request)
        return response.raise_for_status()

    async def close(self) -> None:
        """Close the connections."""
        await self.sdk.close()


def _http_client() -> httpx2.AsyncClient:
    """Return the SDK's HTTP client, its limits (1,000 connections) and the environment's proxies set."""
    import openai  # takes two seconds

    timeout = openai.Timeout(None, connect=CONNECT_TIMEOUT_S)
    # aiohttp speaks to HTTP proxies only.
    if any(address.startswith("socks") for address in getproxies().values()):
        return openai.DefaultAsyncHttpxClient(timeout=timeout)
    client = openai.DefaultAioHttpClient(timeout=timeout)
    use_clean_connections(client)
    return client


# Makes the SDK's client and its connections; the server that they lead to.
Connection = tuple["Callable[[], SdkPool]", Service]


# Local servers need no key, but the SDK insists on one.
_NO_KEY = "none"


def openai_connection(
    base_url: str | None = None,
    api_key: str | None = None,
    provider: str = "openai",
    key_name: str | None = None,
) -> Connection:
    """Return the connection to OpenAI or a compatible server; the environment holds the defaults.

    Args:
        provider: one of ``OPENAI_LIKE``.
        key_name: the environment variable of the key, if not the provider's.

    Raises:
        UsageError: a setting is missing or invalid; the text names it.
    """
    usual_key_name, address_name, default = OPENAI_LIKE[provider]
    key_name = key_name or usual_key_name
    given = setting(base_url, ADDRESS_GIVEN, address_name)
    address = Setting(given.value or default, given.name)
    key = setting(api_key, KEY_GIVEN, key_name)
    service = checked_service(provider, address, {key.name: key.value})
    if not key.value and str(urlsplit(default).hostname) in address.value:
        raise UsageError(
            f"no judge key: set {key_name} (or, for a server that needs none, give --judge_base_url or "
            f"set {address_name})"
        )

    def client(**parameters: Any) -> AsyncOpenAI:
        import openai  # takes two seconds

        return openai.AsyncOpenAI(
            base_url=address.value, api_key=key.value or _NO_KEY, **parameters
        )

    return _connector(client), service


def azure_connection(
    base_url: str | None = None,
    api_key: str | None = None,
    api_version: str | None = None,
) -> Connection:
    """Return the connection to Azure; the environment holds the defaults.

    Raises:
        UsageError: a setting is missing or invalid; the text names it.
    """
    key = setting(api_key, KEY_GIVEN, "AZURE_OPENAI_API_KEY")
    address = setting(base_url, ADDRESS_GIVEN, "AZURE_OPENAI_ENDPOINT_URL")
    version = api_version or variable("AZURE_OPENAI_API_VERSION")
    require_all(
        {
            "AZURE_OPENAI_API_KEY": key.value,
            "AZURE_OPENAI_ENDPOINT_URL": address.value,
            "AZURE_OPENAI_API_VERSION": version,
        }
    )
    service = checked_service("azure_openai", address, {key.name: key.value})

    def client(**parameters: Any) -> AsyncOpenAI:
        import openai  # takes two seconds

        return openai.AsyncAzureOpenAI(
            azure_endpoint=address.value,
            api_key=key.value,
            api_version=version,
            **parameters,
        )

    return _connector(client), service


def _connector(client: Callable[..., AsyncOpenAI]) -> Callable[[], SdkPool]:
    return partial(SdkPool, lambda http: client(http_client=http, max_retries=0))


MODELS_TIMEOUT_S = 5.0


class _CachedTokens(ReplyPart):
    cached_tokens: int | None = None


class _Usage(ReplyPart):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _CachedTokens | None = None

    def counted(self) -> Usage:
        """Return the numbers, zero where the server reports none."""
        details = self.prompt_tokens_details or _CachedTokens()
        return Usage(
            self.prompt_tokens or 0,
            details.cached_tokens or 0,
            self.completion_tokens or 0,
        )


class _Part(ReplyPart):
    text: str | None = None


class _Message(ReplyPart):
    content: str | list[_Part] | None = None
    refusal: str | None = None

    def text(self) -> str:
        """Return the content, which some servers split into parts."""
        if isinstance(self.content, list):
            return "".join(part.text or "" for part in self.content)
        return self.content or ""


class _Choice(ReplyPart):
    message: _Message = _Message()
    finish_reason: str | None = None
    error: JsonObject | None = None


class _Body(ReplyPart):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    model: str | None = None
    system_fingerprint: str | None = None
    error: JsonObject | None = None  # routers send errors with status 200


class _Model(ReplyPart):
    id: str


class _Models(ReplyPart):
    data: list[_Model]


class OpenAITransport:
    """Speaks chat completions."""

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
            # Not chat.completions.create, which copies and encodes megabytes for every request.
            response = await pool.post(
                _path(pool.sdk, wire.model), body, body.size_bytes
            )
        return replace(
            read_completion(response.content, secrets),
            allowances=allowances_in(response.headers),
        )

    async def models(self) -> list[str]:
        """Return the names of the server's models."""
        import httpx2
        import openai

        with sdk_failures(self.service.secrets):
            response = await self._pools.here().sdk.get(
                "/models",
                cast_to=httpx2.Response,
                options={"timeout": openai.Timeout(MODELS_TIMEOUT_S)},
            )
        models = read_models(response.content)
        # Azure lists what could be deployed, while requests name deployments.
        return [] if self.service.endpoint.startswith("azure_openai") else models

    async def close(self) -> None:
        """Close the pool."""
        await self._pools.close()


def read_models(content: bytes) -> list[str]:
    """Return the names in a server's list of models.

    Raises:
        RequestFailedError: it is no such list.
    """
    try:
        return [model.id for model in _Models.model_validate_json(content).data]
    except ValidationError as error:
        raise RequestFailedError("the reply is no list of models") from error


@contextmanager
def sdk_failures(secrets: tuple[str, ...]) -> Iterator[None]:
    """Turn errors of the SDK and its HTTP client into ``RequestFailedError``."""
    import httpx2
    import openai  # takes two seconds

    try:
        yield
    except (openai.APIStatusError, httpx2.HTTPStatusError) as error:
        raise failed_response(error.response, secrets) from error
    except openai.APIConnectionError as error:
        raise not_connected(error.__cause__ or error, secrets) from error
    except httpx2.HTTPError as error:
        raise not_connected(error, secrets) from error


def failed_response(
    response: httpx2.Response, secrets: tuple[str, ...]
) -> RequestFailedError:
    """Return the failure that a response with an error status describes."""
    headers = response.headers
    return failure_from_body(
        response.status_code,
        response.text,
        retry_after_s(headers),
        secrets,
        allowances_in(headers),
    )


def not_connected(error: BaseException, secrets: tuple[str, ...]) -> RequestFailedError:
    """Return the failure for an error of the HTTP client."""
    reason = connection_reason(error) or one_line(
        f"{error or type(error).__name__}", secrets
    )
    text = f"connection error: {reason}"
    return RequestFailedError(
        text, is_sent=not _is_unconnected(error), is_connection_lost=True
    )


def connection_reason(error: BaseException) -> str | None:
    """Return the usual words for a failed connection, ``None`` for other failures."""
    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in causes:
        causes.append(cause)
        cause = getattr(cause, "os_error", None) or cause.__cause__ or cause.__context__
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return "host name not found"
    is_refused = any(
        getattr(cause, "errno", None) == errno.ECONNREFUSED for cause in causes
    )
    if is_refused or "Connect call failed" in str(error):
        return "connection refused"
    return None


def _is_unconnected(error: BaseException) -> bool:
    import aiohttp
    import httpcore2
    import httpx2

    # The cause is exact; httpx on aiohttp reports a timeout even for a lost connection.
    exact = (
        aiohttp.ClientConnectorError
        | aiohttp.ConnectionTimeoutError
        | httpcore2.ConnectTimeout
    )
    return isinstance(error, httpx2.ConnectError) or isinstance(error.__cause__, exact)


def request_body(wire: WireRequest) -> JsonBody:
    """Return the body of a request, one line of JSON."""
    return JsonBody({"model": wire.model, **_parameters(wire)}, wire.messages)


def read_completion(content: bytes, secrets: tuple[str, ...] = ()) -> Completion:
    """Return the completion in the body of a successful reply.

    Raises:
        RequestFailedError: it is no chat completion; a retry may succeed.
    """
    try:
        body = _Body.model_validate_json(content)
    except ValidationError as error:
        start = one_line(content[:200].decode(errors="replace"), secrets)
        raise RequestFailedError(
            f"the reply is no chat completion but {start!r}"
        ) from error
    choice = body.choices[0] if body.choices else _Choice()
    if problem := body.error or choice.error:
        # The text before the error may be incomplete.
        raise failure_from_body(
            _status_in(problem.get("code")),
            json.dumps({"error": problem}),
            secrets=secrets,
        )
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
    """Return the path of chat completions, which at Azure names the deployment."""
    from openai import AsyncAzureOpenAI

    if isinstance(sdk, AsyncAzureOpenAI) and "/deployments" not in sdk.base_url.path:
        return f"/deployments/{quote(model, safe='')}/chat/completions"
    return "/chat/completions"


def _parameters(wire: WireRequest) -> Parameters:
    """Return the parameters beside model and messages."""
    parameters = dict(wire.extra)
    if wire.temperature is not None:
        parameters["temperature"] = wire.temperature
    if wire.reasoning_effort is not None:
        parameters["reasoning_effort"] = wire.reasoning_effort
    if wire.schema is not None and wire.mode is OutputMode.STRICT_SCHEMA:
        json_schema = {
            "name": wire.schema.name,
            "schema": wire.schema.strict,
            "strict": True,
        }
        parameters["response_format"] = {
            "type": "json_schema",
            "json_schema": json_schema,
        }
    if wire.schema is not None and wire.mode is OutputMode.JSON:
        parameters["response_format"] = {"type": "json_object"}
    return parameters


def _declined(choice: _Choice) -> str | None:
    if choice.message.refusal:
        return f"refusal: {choice.message.refusal}"
    return "content filter" if choice.finish_reason == "content_filter" else None


def _status_in(code: object) -> int:
    return code if isinstance(code, int) and 400 <= code < 600 else 500
