"""Keys and addresses from the environment, checked when a client is built."""

from __future__ import annotations

import os
from dataclasses import dataclass
from urllib.parse import urlsplit

from mind2web2.errors import UsageError
from mind2web2.llm_client.failures import Service

_MAX_SHOWN_CHARS = 200

# By provider: the environment variables of key and address, and the default address, for those that speak
# chat completions at one address.
OPENAI_LIKE = {
    "openai": ("OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com/v1"),
    "gemini": (
        "GEMINI_API_KEY",
        "GEMINI_BASE_URL",
        "https://generativelanguage.googleapis.com/v1beta/openai",
    ),
}
ANTHROPIC_ADDRESS = "https://api.anthropic.com"

# An address may be given in code or on the command line, a key in code alone.
ADDRESS_GIVEN = "the base URL given (--judge_base_url)"
KEY_GIVEN = "the key given"


@dataclass(frozen=True, slots=True)
class Setting:
    """A key or an address, with its name for the user."""

    value: str
    name: str


def setting(given: str | None, given_name: str, variable_name: str) -> Setting:
    """Return the given value, else that of the environment variable."""
    if given:
        return Setting(given, given_name)
    value = variable(variable_name)
    return Setting(value, variable_name if value else f"{variable_name} (not set)")


def variable(name: str) -> str:
    """Return the environment variable, empty if it is not set."""
    return os.environ.get(name, "").strip()


def require_all(settings: dict[str, str]) -> None:
    """Check that each named setting has a value.

    Raises:
        UsageError: names the environment variables to set.
    """
    missing = [name for name, value in settings.items() if not value]
    if missing:
        raise UsageError(f"no judge key: set {' and '.join(missing)}")


def check_address(url: str, name: str) -> None:
    """Check a server's address.

    Raises:
        UsageError: it has no scheme or no host.
    """
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address:
        raise UsageError(f"{name} is not an http(s) address: {' '.join(url.split())[:_MAX_SHOWN_CHARS]}")


def check_keys(keys: dict[str, str]) -> None:
    """Check that each named key can be sent in a header.

    Raises:
        UsageError: a key contains an impossible character, such as a typographic quote or a line break.
    """
    for name, key in keys.items():
        if not (key.isascii() and key.isprintable()):
            raise UsageError(f"{name} contains characters that no key has: copy it again")


def public_address(url: str) -> str:
    """Return the address without user, password, query and final slash, for logs and results."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}".rstrip("/")


def endpoint_name(provider: str, url: str) -> str:
    """Return the name of a server for records: the same with and without a final ``/v1``."""
    address = public_address(url)
    if provider == "openai" and not urlsplit(address).path:
        address += "/v1"
    return f"{provider} {address}"


def checked_service(provider: str, address: Setting, keys: dict[str, str]) -> Service:
    """Return the server of a judge.

    Args:
        keys: by their names for the user.

    Raises:
        UsageError: the address or a key is invalid.
    """
    check_address(address.value, address.name)
    check_keys(keys)
    return Service(
        endpoint=endpoint_name(provider, address.value),
        key_name=" and ".join(keys),
        address_name=address.name,
        secrets=tuple(keys.values()),
        address=public_address(address.value),
    )


def endpoint_of(provider: str, base_url: str | None = None) -> str | None:
    """Return the endpoint that a client of the provider would have, ``None`` where its address is not set.

    Raises:
        UsageError: the address is invalid.
    """
    region = variable("AWS_REGION")
    addresses = {
        "anthropic": ("ANTHROPIC_BASE_URL", variable("ANTHROPIC_BASE_URL") or ANTHROPIC_ADDRESS),
        "azure_openai": ("AZURE_OPENAI_ENDPOINT_URL", variable("AZURE_OPENAI_ENDPOINT_URL")),
        "bedrock_anthropic": (
            "AWS_REGION",
            f"https://bedrock-runtime.{region}.amazonaws.com" if region else "",
        ),
    }
    for name, (_, address_name, default) in OPENAI_LIKE.items():
        addresses[name] = (address_name, variable(address_name) or default)
    name, address = (ADDRESS_GIVEN, base_url) if base_url else addresses[provider]
    if not address:
        return None
    check_address(address, name)
    return endpoint_name(provider, address)
