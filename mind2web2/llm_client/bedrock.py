"""Claude on Amazon Bedrock; ``botocore`` (extra ``bedrock``) signs the requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from mind2web2.errors import UsageError
from mind2web2.llm_client.claude_protocol import VERSION, ClaudeTransport
from mind2web2.llm_client.http import Server
from mind2web2.llm_client.providers import Provider
from mind2web2.llm_client.settings import (
    ADDRESS_GIVEN,
    Service,
    Setting,
    check_keys,
    checked_service,
    named_endpoint,
    require_all,
    split_login,
    variable,
)
from mind2web2.llm_client.transport import json_bytes


def bedrock_transport(base_url: str | None, _api_key: str | None) -> BedrockTransport:
    """Return a connection to Bedrock; keys and region come from ``AWS_...`` variables.

    Args:
        base_url: default the region's own address.

    Raises:
        UsageError: a key, the region or the optional package is missing.
    """
    keys = {name: variable(name) for name in ("AWS_ACCESS_KEY", "AWS_SECRET_KEY")}
    region = variable("AWS_REGION")
    require_all({**keys, "AWS_REGION": region})
    check_keys({"AWS_REGION": region})
    address = _address(base_url)
    session_token = variable("AWS_SESSION_TOKEN")
    check_keys({"AWS_SESSION_TOKEN": session_token})
    service = checked_service("bedrock_anthropic", address, keys)
    service = replace(service, secrets=(*service.secrets, session_token))
    bare, _ = split_login(address.value)
    server = Server(bare, secrets=service.secrets)
    return BedrockTransport(server, service, _signer([*keys.values(), session_token], region))


def _signer(keys: list[str], region: str) -> Any:
    """Return what signs requests; botocore has no types.

    Raises:
        UsageError: botocore is not installed.
    """
    with UsageError.naming_extra("Bedrock", "bedrock"):
        # Takes half a second, and may be absent.
        from botocore.auth import SigV4Auth
        from botocore.credentials import Credentials

    access_key, secret_key, session_token = keys
    credentials = Credentials(access_key, secret_key, session_token or None)
    return SigV4Auth(credentials, "bedrock", region)


class BedrockTransport(ClaudeTransport):
    """Speaks Claude's messages protocol as Bedrock has it: the path names the model."""

    def __init__(self, server: Server, service: Service, signer: Any) -> None:
        super().__init__(server, service)
        self._signer = signer

    async def _post(self, model: str, body: dict[str, Any]) -> str:
        content = json_bytes({"anthropic_version": VERSION, **body})
        path = f"/model/{quote(model, safe=':;')}/invoke"
        return await self._server.post(path, content, self._sign(path, content))

    def _sign(self, path: str, content: bytes) -> Mapping[str, str]:
        """Return the headers of a request, its signature among them."""
        from botocore.awsrequest import AWSRequest
        from yarl import URL

        # As it is sent: the signature covers the address.
        address = str(URL(self._server.url(path)))
        headers = {"Content-Type": "application/json"}
        request = AWSRequest("POST", address, headers, content)
        self._signer.add_auth(request)
        return dict(request.headers)

    async def models(self) -> list[str]:
        """Return no names: Bedrock lists its models at another address."""
        return []


def _address(base_url: str | None) -> Setting:
    if base_url:
        return Setting(base_url, ADDRESS_GIVEN)
    region = variable("AWS_REGION")
    address = f"https://bedrock-runtime.{region}.amazonaws.com" if region else ""
    return Setting(address, "AWS_REGION")


PROVIDER = Provider(
    connect=bedrock_transport,
    endpoint=lambda base_url: named_endpoint("bedrock_anthropic", _address(base_url)),
)
