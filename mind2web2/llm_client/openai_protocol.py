"""The chat completions protocol of OpenAI, Azure and every compatible server."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import quote, urlsplit, urlunsplit

from pydantic import ValidationError

from mind2web2.errors import UsageError
from mind2web2.llm_client.allowances import allowances_in
from mind2web2.llm_client.chat import Parameters, Usage
from mind2web2.llm_client.failures import RequestFailedError, failure_from_body
from mind2web2.llm_client.http_pool import HttpPool, PoolPerLoop, Server
from mind2web2.llm_client.judge_errors import Service
from mind2web2.llm_client.settings import (
    KEY_GIVEN,
    OPENAI,
    OpenAILike,
    azure_address,
    check_keys,
    checked_service,
    require_all,
    setting,
    split_login,
    variable,
)
from mind2web2.llm_client.structured_output import check_unambiguous
from mind2web2.llm_client.transport import (
    Completion,
    JsonBody,
    OutputMode,
    ReplyPart,
    TokenCount,
    WireRequest,
)
from mind2web2.utils.json_fields import JsonObject
from mind2web2.utils.shown_text import reply_without_secrets, start_of


@dataclass(frozen=True, slots=True)
class Connection:
    """Where requests go, and how the user names that.

    Args:
        names_deployments: the path of a request names the model's deployment, as at Azure.
    """

    server: Server
    service: Service
    names_deployments: bool = False


def openai_connection(
    base_url: str | None = None,
    api_key: str | None = None,
    provider: OpenAILike = OPENAI,
    key_name: str | None = None,
) -> Connection:
    """Return the connection to OpenAI or a compatible server; the environment holds the defaults.

    Args:
        key_name: the environment variable of the key, if not the provider's.

    Raises:
        UsageError: a setting is missing or invalid; the text names it.
    """
    key_name = key_name or provider.key_name
    address = provider.address(base_url)
    key = setting(api_key, KEY_GIVEN, key_name)
    service = checked_service(provider.provider, address, {key.name: key.value})
    if not key.value and str(urlsplit(provider.default).hostname) in address.value:
        raise UsageError(
            f"no judge key: set {key_name}. If your server needs no key, give --judge_base_url or "
            f"set {provider.address_name}"
        )
    accounts = {name: variable(name) for name in _ACCOUNT_HEADERS.values()}
    check_keys(accounts)
    headers = {name: accounts[value] for name, value in _ACCOUNT_HEADERS.items()}
    if key.value:
        headers["Authorization"] = f"Bearer {key.value}"
    # A user in the address takes the place of the key.
    base_url, login = split_login(address.value)
    sent = {name: value for name, value in (headers | login).items() if value}
    return Connection(Server(base_url, sent, secrets=service.secrets), service)


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
    address = azure_address(base_url)
    version = api_version or variable("AZURE_OPENAI_API_VERSION")
    require_all(
        {
            "AZURE_OPENAI_API_KEY": key.value,
            "AZURE_OPENAI_ENDPOINT_URL": address.value,
            "AZURE_OPENAI_API_VERSION": version,
        }
    )
    service = checked_service("azure_openai", address, {key.name: key.value})
    base_url, login = split_login(address.value)
    server = Server(
        _azure_address(base_url),
        {"api-key": key.value, **login},
        {"api-version": version},
        service.secrets,
    )
    return Connection(server, service, "/deployments" not in address.value)


def _azure_address(address: str) -> str:
    """Return where the paths of the protocol begin; the address may be copied with its query."""
    parts = urlsplit(address)
    # The version is a setting of its own.
    query = "&".join(each for each in parts.query.split("&") if not each.startswith("api-version="))
    path = f"{parts.path.rstrip('/')}/openai"
    return urlunsplit(parts._replace(path=path, query=query))


MODELS_TIMEOUT_S = 5.0
# Which organisation and project are billed: variables that OpenAI's own tools read as well.
_ACCOUNT_HEADERS = {
    "OpenAI-Organization": "OPENAI_ORG_ID",
    "OpenAI-Project": "OPENAI_PROJECT_ID",
}


class _CachedTokens(ReplyPart):
    cached_tokens: TokenCount | None = None


class _Usage(ReplyPart):
    prompt_tokens: TokenCount | None = None
    completion_tokens: TokenCount | None = None
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

    def __init__(self, connection: Connection) -> None:
        self._pools = PoolPerLoop(partial(HttpPool, connection.server))
        self._names_deployments = connection.names_deployments
        self.service = connection.service

    async def send(self, wire: WireRequest) -> Completion:
        """Make one HTTP request."""
        path = "/chat/completions"
        if self._names_deployments:
            path = f"/deployments/{quote(wire.model, safe='')}{path}"
        pool = await self._pools.here()
        reply = await pool.post_json(path, request_body(wire))
        completion = read_completion(reply.content, self.service.secrets)
        return replace(completion, allowances=allowances_in(reply.headers))

    async def models(self) -> list[str]:
        """Return the names of the server's models."""
        pool = await self._pools.here()
        reply = await pool.request("GET", "/models", timeout_s=MODELS_TIMEOUT_S)
        models = read_models(reply.content)
        # Azure lists what could be deployed, while requests name deployments.
        return [] if self.service.endpoint.startswith("azure_openai") else models

    async def close(self) -> None:
        """Close the pool."""
        await self._pools.close()


def read_models(content: bytes) -> list[str]:
    """Return the names in a server's list of models.

    Raises:
        RequestFailedError: it is not such a list.
    """
    try:
        return [model.id for model in _Models.model_validate_json(content).data]
    except ValidationError:
        # The cause, which logs show, would quote the reply.
        raise RequestFailedError("the reply is no list of models") from None


def request_body(wire: WireRequest) -> JsonBody:
    """Return the body of a request, one line of JSON."""
    return JsonBody({"model": wire.model, **_parameters(wire)}, wire.messages)


def read_completion(content: bytes, secrets: tuple[str, ...] = ()) -> Completion:
    """Return the completion in the body of a successful reply.

    Raises:
        RequestFailedError: it is not a chat completion; a retry may succeed.
    """
    content = reply_without_secrets(content, secrets)
    try:
        body = _Body.model_validate_json(content)
    except ValidationError:
        raise RequestFailedError(
            f"the reply is no chat completion but {start_of(content, secrets)!r}"
        ) from None
    check_unambiguous(content)
    choices = body.choices or [_Choice()]
    if len(choices) > 1:
        raise RequestFailedError(f"the reply has {len(choices)} choices instead of one")
    [choice] = choices
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
        declined=_decline_reason(choice),
        is_truncated=choice.finish_reason == "length",
        usage=body.usage.counted() if body.usage else Usage(),
        served_model=body.model,
        system_fingerprint=body.system_fingerprint,
    )


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


def _decline_reason(choice: _Choice) -> str | None:
    if choice.message.refusal:
        return f"refusal: {choice.message.refusal}"
    return "content filter" if choice.finish_reason == "content_filter" else None


def _status_in(code: object) -> int:
    if isinstance(code, int) and 400 <= code < 600:
        return code
    return 500
