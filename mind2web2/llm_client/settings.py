"""Keys and addresses from the environment, checked when a client is built."""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from mind2web2.errors import UsageError
from mind2web2.utils.entry_points import load_part
from mind2web2.utils.values import is_address

# An option may name another.
DEFAULT_JUDGE_MODEL = "o4-mini"
_MAX_SHOWN_CHARS = 200

# An address may be given in code or on the command line, a key in code alone.
ADDRESS_GIVEN = "the base URL given (--judge_base_url)"
KEY_GIVEN = "the key given"

# Request parameters that the toolkit sets itself.
OWN_PARAMETERS = frozenset(
    {
        "messages",
        "model",
        "n",
        "reasoning_effort",
        "response_format",
        "stream",
        "stream_options",
        "temperature",
        "tool_choice",
        "tools",
    }
)


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


@dataclass(frozen=True, slots=True)
class OpenAILike:
    """A provider that speaks OpenAI's protocol at an address of its own.

    Args:
        key_name: the environment variable of the key; ``address_name`` that of another address.
        default: the provider's address.
    """

    provider: str
    key_name: str
    address_name: str
    default: str

    def address(self, base_url: str | None) -> Setting:
        """Return the address that was given, that of the environment, or the provider's."""
        address = setting(base_url, ADDRESS_GIVEN, self.address_name)
        return Setting(address.value or self.default, address.name)


OPENAI = OpenAILike("openai", "OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com/v1")


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
    if is_address(url, ("http", "https")):
        return
    text = f"{name} is not an http(s) address"
    # In a form that cannot be read, any part may be a password or a key.
    if "@" not in url and "?" not in url:
        text += f": {' '.join(url.split())[:_MAX_SHOWN_CHARS]}"
        if "://" not in url:
            text += " (it begins with http:// or https://)"
    raise UsageError(text)


def check_keys(keys: dict[str, str]) -> None:
    """Check that each named key can be sent in a header.

    Raises:
        UsageError: a key contains an impossible character, such as a typographic quote or a line
            break.
    """
    for name, key in keys.items():
        if not (key.isascii() and key.isprintable()):
            raise UsageError(f"{name} contains characters that no key has: copy it again")


def public_address(url: str) -> str:
    """Return the address without user, password, query and final slash, for logs and results."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}".rstrip("/")


def split_login(url: str) -> tuple[str, dict[str, str]]:
    """Return an address without user and password, and the header that sends them."""
    parts = urlsplit(url)
    login, _, host = parts.netloc.rpartition("@")
    if not login:
        return url, {}
    address = urlunsplit(parts._replace(netloc=host))
    return address, {"Authorization": _basic(login)}


def _basic(login: str) -> str:
    user, _, password = login.partition(":")
    plain = f"{unquote(user)}:{unquote(password)}"
    return f"Basic {base64.b64encode(plain.encode()).decode()}"


# Azure's version is not a secret, and errors mention it.
_PUBLIC_PARAMETERS = frozenset({"api-version"})


def secrets_in(url: str) -> tuple[str, ...]:
    """Return the passwords and keys in an address.

    They are returned as they are written there and as they are meant.
    """
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
    except ValueError:
        return ()
    secrets: set[str] = set()
    login = parts.netloc.rpartition("@")[0]
    if login:
        user, _, password = login.partition(":")
        secrets = {password or user, _basic(login).removeprefix("Basic ")}
    for parameter in parts.query.split("&"):
        name, _, value = parameter.partition("=")
        if name not in _PUBLIC_PARAMETERS:
            secrets.add(value or name)
    plain = {unquote(secret) for secret in secrets}
    return tuple(sorted(filter(None, secrets | plain)))


def _proxy_secrets() -> tuple[str, ...]:
    from urllib.request import getproxies  # slow to load

    proxies = getproxies()
    return tuple(
        secret
        for scheme, proxy in proxies.items()
        if scheme != "no"
        for secret in secrets_in(proxy)
    )


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
        secrets=(*keys.values(), *secrets_in(address.value), *_proxy_secrets()),
        address=public_address(address.value),
    )


def endpoint_of(provider: str, base_url: str | None = None) -> str | None:
    """Return the endpoint that a client of the provider would have.

    The endpoint is ``None`` where its address is not set.

    Raises:
        UsageError: the address is invalid.
    """
    addresses = {OPENAI.provider: OPENAI.address, "azure_openai": azure_address}
    if provider in addresses:
        return named_endpoint(provider, addresses[provider](base_url))
    plugin: Any = load_part("judges", provider)
    return None if plugin is None else plugin.endpoint(base_url)


def azure_address(base_url: str | None) -> Setting:
    """Return the address of an Azure resource."""
    return setting(base_url, ADDRESS_GIVEN, "AZURE_OPENAI_ENDPOINT_URL")


def named_endpoint(provider: str, address: Setting) -> str | None:
    """Return the name of a server for records, ``None`` where its address is not set.

    Raises:
        UsageError: the address is invalid.
    """
    if not address.value:
        return None
    check_address(address.value, address.name)
    return endpoint_name(provider, address.value)


@dataclass(frozen=True, slots=True)
class Service:
    """A judge's server, and the settings that a user can correct.

    Args:
        endpoint: provider and address; without secrets.
        key_name: the environment variables of the key, or another name that the user knows.
        address_name: the same for the address.
        secrets: removed from error texts, whatever a server sends back.
        address: as the user gave it, for messages; the endpoint may differ by a final ``/v1``.
    """

    endpoint: str
    key_name: str
    address_name: str
    secrets: tuple[str, ...] = field(default=(), repr=False)
    address: str = ""

    @property
    def shown(self) -> str:
        """Return provider and address for messages."""
        provider, _, address = self.endpoint.partition(" ")
        return f"{provider} {self.address or address}"
