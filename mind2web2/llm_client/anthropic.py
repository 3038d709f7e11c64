"""Claude at Anthropic, or at a gateway that speaks its messages protocol."""

from __future__ import annotations

from mind2web2.llm_client.claude_protocol import VERSION, ClaudeTransport
from mind2web2.llm_client.http import Server
from mind2web2.llm_client.providers import Provider
from mind2web2.llm_client.settings import (
    ADDRESS_GIVEN,
    KEY_GIVEN,
    Setting,
    checked_service,
    named_endpoint,
    require_all,
    setting,
    split_login,
)

_ADDRESS = "https://api.anthropic.com"


def anthropic_transport(base_url: str | None, api_key: str | None) -> ClaudeTransport:
    """Return a connection to Anthropic, or to a gateway that speaks its messages protocol.

    Args:
        base_url: without ``/v1``; default ``ANTHROPIC_BASE_URL``, else Anthropic itself.
        api_key: default ``ANTHROPIC_API_KEY``.

    Raises:
        UsageError: the key is missing, or the address is invalid.
    """
    key = setting(api_key, KEY_GIVEN, "ANTHROPIC_API_KEY")
    require_all({"ANTHROPIC_API_KEY": key.value})
    address = _address(base_url)
    service = checked_service("anthropic", address, {key.name: key.value})
    # A user in the address takes the place of the key.
    bare, login = split_login(address.value)
    headers = {"anthropic-version": VERSION, "Authorization": f"Bearer {key.value}", **login}
    return ClaudeTransport(Server(bare, headers, secrets=service.secrets), service)


def _address(base_url: str | None) -> Setting:
    address = setting(base_url, ADDRESS_GIVEN, "ANTHROPIC_BASE_URL")
    return Setting(address.value or _ADDRESS, address.name)


PROVIDER = Provider(
    connect=anthropic_transport,
    endpoint=lambda base_url: named_endpoint("anthropic", _address(base_url)),
)
