"""The chat completions protocol of OpenAI, Azure and every compatible server."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from pydantic import ConfigDict, ValidationError

from mind2web2.errors import UsageError
from mind2web2.llm_client.chat import Completion, Parameters, Usage
from mind2web2.llm_client.failures import RequestFailedError
from mind2web2.llm_client.http import Server
from mind2web2.llm_client.settings import (
    KEY_GIVEN,
    OPENAI,
    OpenAILike,
    Service,
    azure_address,
    check_keys,
    checked_service,
    require_all,
    setting,
    split_login,
    variable,
)
from mind2web2.llm_client.transport import (
    JsonBody,
    OutputMode,
    ReplyPart,
    Tokens,
    WireRequest,
    error_in_reply,
    read_body,
    text_of,
)
from mind2web2.utils.json_text import JsonObject, mapping, read_leniently


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
) -> Connection:
    """Return the connection to OpenAI or a compatible server; the environment holds the defaults.

    Raises:
        UsageError: a setting is missing or invalid; the text names it.
    """
    address = provider.address(base_url)
    key = setting(api_key, KEY_GIVEN, provider.key_name)
    service = checked_service(provider.provider, address, {key.name: key.value})
    if not key.value and str(urlsplit(provider.default).hostname) in address.value:
        raise UsageError(
            f"no judge key: set {provider.key_name}. If your server needs no key, set "
            f"{provider.address_name} to its address"
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


# How a reply ends that a filter stopped, in the words of OpenAI, Gemini and others.
_FILTERS = re.compile(
    "content_?filter|safety|prohibited_content|blocklist|recitation|spii|sensitive"
)
_TRUNCATED = ("length", "max_tokens", "model_length", "model_context_window_exceeded")
# Where servers put the text of a reply that they take for thinking or for a call of a tool.
_OTHER_PLACES = ("reasoning_content", "reasoning", "thinking", "tool_calls", "function_call")


class _Model(ReplyPart):
    id: str


class _Models(ReplyPart):
    data: list[_Model]


class _Message(ReplyPart):
    model_config = ConfigDict(extra="allow")

    content: Any = None
    refusal: str | None = None

    def has(self, name: str) -> bool:
        """Tell whether there is something in a field that the protocol does not have."""
        return bool(getattr(self, name, None))


class _Choice(ReplyPart):
    model_config = ConfigDict(extra="allow")

    message: _Message = _Message()
    finish_reason: str = ""
    error: Any = None


class _PromptDetails(ReplyPart):
    cached_tokens: Tokens = 0


class _Usage(ReplyPart):
    prompt_tokens: Tokens = 0
    completion_tokens: Tokens = 0
    prompt_tokens_details: _PromptDetails = _PromptDetails()


class _Reply(ReplyPart):
    choices: tuple[_Choice, ...] = ()
    usage: _Usage = _Usage()
    model: str = ""
    system_fingerprint: str | None = None


class OpenAITransport:
    """Speaks chat completions."""

    modes = (OutputMode.STRICT_SCHEMA, OutputMode.JSON, OutputMode.PLAIN)

    def __init__(self, connection: Connection) -> None:
        self._server = connection.server
        self._names_deployments = connection.names_deployments
        self.service = connection.service

    async def send(self, wire: WireRequest) -> Completion:
        """Make one HTTP request."""
        path = "/chat/completions"
        if self._names_deployments:
            path = f"/deployments/{quote(wire.model, safe='')}{path}"
        body = JsonBody({"model": wire.model, **_parameters(wire)}, wire.messages)
        reply = await self._server.post(path, body)
        return read_completion(reply, self.service.secrets)

    async def models(self) -> list[str]:
        """Return the names of the server's models."""
        models = read_models(await self._server.get("/models", MODELS_TIMEOUT_S))
        # Azure lists what could be deployed, while requests name deployments.
        return [] if self.service.endpoint.startswith("azure_openai") else models


def read_models(content: str) -> list[str]:
    """Return the names in a server's list of models.

    Raises:
        RequestFailedError: it is not such a list.
    """
    try:
        return [model.id for model in _Models.model_validate_json(content).data]
    except ValidationError:
        # The cause, which logs show, would quote the reply.
        raise RequestFailedError("the reply is not a list of models") from None


def read_completion(content: str, secrets: tuple[str, ...] = ()) -> Completion:
    """Return the completion in the text of a successful reply.

    Raises:
        RequestFailedError: it is not a chat completion; a retry may succeed.
    """
    body = read_body(content, "choices", secrets)
    reply = read_leniently(_Reply, body)
    if len(reply.choices) > 1:
        raise RequestFailedError(f"the reply has {len(reply.choices)} choices instead of one")
    [choice] = reply.choices or [_Choice()]
    if choice.error:
        # The text before the error may be incomplete.
        raise error_in_reply(choice.model_dump(), secrets)
    message, ended = choice.message, choice.finish_reason.lower()
    if ended == "error":
        raise RequestFailedError("the model broke off with an error", status=500)
    usage = reply.usage
    cached = usage.prompt_tokens_details.cached_tokens
    return Completion(
        text=text_of(message.content),
        declined=_decline_reason(message.refusal, ended or _block_reason(body)),
        is_truncated=ended in _TRUNCATED,
        elsewhere=" and ".join(filter(message.has, _OTHER_PLACES)),
        usage=Usage(usage.prompt_tokens, cached, usage.completion_tokens),
        served_model=reply.model or None,
        system_fingerprint=reply.system_fingerprint or None,
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
    if wire.mode is OutputMode.JSON:
        parameters["response_format"] = {"type": "json_object"}
    return parameters


def _decline_reason(refusal: str | None, ended: str) -> str | None:
    if refusal:
        return f"refusal: {refusal}"
    return f"content filter ({ended})" if _FILTERS.search(ended) else None


def _block_reason(body: JsonObject) -> str:
    """Return why Gemini gives no choice at all."""
    feedback = mapping(body.get("promptFeedback") or body.get("prompt_feedback"))
    return str(feedback.get("blockReason") or feedback.get("block_reason") or "").lower()
