"""Keys and addresses from the environment, checked when a client is built."""

from __future__ import annotations

import base64
import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from mind2web2.errors import UsageError
from mind2web2.llm_client.failures import Service
from mind2web2.utils.entry_points import load_part

# An option may name another.
DEFAULT_JUDGE_MODEL = "o4-mini"
_MAX_SHOWN_CHARS = 200

# An address may be given in code or on the command line, a key in code alone.
ADDRESS_GIVEN = "the base URL given (--judge_base_url)"
KEY_GIVEN = "the key given"

# Request parameters that the toolkit sets itself.
OWN_PARAMETERS = frozenset(
    {
        *(
            "messages",
            "model",
            "n",
            "reasoning_effort",
            "response_format",
            "stream",
            "stream_options",
        ),
        *("temperature", "tool_choice", "tools"),
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
        found = setting(base_url, ADDRESS_GIVEN, self.address_name)
        return Setting(found.value or self.default, found.name)


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
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if is_address:
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


# Its version of Azure is no secret, and errors are about it.
_PUBLIC_PARAMETERS = frozenset({"api-version"})


def secrets_in(url: str) -> tuple[str, ...]:
    """Return the passwords and keys in an address, as they are written there and as they are meant."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
    except ValueError:
        return ()
    found: set[str] = set()
    login = parts.netloc.rpartition("@")[0]
    if login:
        user, _, password = login.partition(":")
        found = {password or user, _basic(login).removeprefix("Basic ")}
    for parameter in parts.query.split("&"):
        name, _, value = parameter.partition("=")
        if name not in _PUBLIC_PARAMETERS:
            found.add(value or name)
    plain = {unquote(secret) for secret in found}
    return tuple(sorted(filter(None, found | plain)))


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


_DATE = re.compile(r"20\d\d-?\d\d-?\d\d")


def is_version_of(served: str, model: str) -> bool:
    """Tell whether a name in a server's reply is the model's, or that of a dated version of it."""
    version = served.removeprefix(f"{model}-")
    return served == model or (version != served and _DATE.fullmatch(version) is not None)


# Where the judgments of every pool are stored, so that they outlive its servers. Their key has the
# model.
POOL_ENDPOINT = "openai pool"


@dataclass(frozen=True, slots=True)
class PoolServer:
    """One server of a pool.

    Args:
        key_name: the environment variable of its key.
        weight: how much it takes, compared with a server of weight 1.
    """

    base_url: str
    model: str | None = None
    key_name: str = "OPENAI_API_KEY"
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class PoolSource:
    """The file that lists a pool's servers, or their base URLs.

    Args:
        model: the judge model; by default the one that the file names, ``None`` where it names none.
        aliases: pairs of names that mean the same model.
        servers: as they are listed now.

    Raises:
        UsageError: as ``read``.
    """

    file: str | Path | None = None
    base_urls: tuple[str, ...] = ()
    model: str | None = None
    aliases: tuple[tuple[str, str], ...] = ()
    servers: tuple[PoolServer, ...] = field(init=False)

    def __post_init__(self) -> None:
        servers = self.read()
        model = self.model or next((server.model for server in servers if server.model), None)
        object.__setattr__(self, "model", model)
        object.__setattr__(self, "servers", tuple(servers))

    def serves(self, served: str) -> bool:
        """Tell whether a server that names this model in its replies serves the pool's model.

        A dated version of the model is the model: providers resolve its name to the newest.
        """
        if self.model is None or is_version_of(served, self.model):
            return True
        return any({self.model, served} == set(pair) for pair in self.aliases)

    def read(self) -> list[PoolServer]:
        """Return the servers as they are listed now.

        Raises:
            UsageError: the file cannot be read, or names a server wrongly, or servers of different models.
        """
        for url in self.base_urls:
            check_address(url, ADDRESS_GIVEN)
        servers = [PoolServer(url) for url in self.base_urls]
        if self.file is not None:
            servers += _listed_servers(Path(self.file))
        named = ADDRESS_GIVEN if self.file is None else f"the judge pool {self.file}"
        if not servers:
            raise UsageError(f"{named} has no server: write one base URL a line")
        addresses = [endpoint_name("openai", server.base_url) for server in servers]
        if twice := next((address for address in addresses if addresses.count(address) > 1), None):
            raise UsageError(f"{named} names a server twice: {twice.partition(' ')[2]}")
        models = {server.model for server in servers if server.model} | (
            {self.model} if self.model else set()
        )
        if len(models) > 1:
            raise UsageError(
                f"the servers of a judge pool must serve the same model, but {named} and the judge model "
                f"name {' and '.join(sorted(models))}"
            )
        return servers


def _listed_servers(file: Path) -> Iterator[PoolServer]:
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(f"cannot read the judge pool {file}: {reason}") from error
    for number, line in enumerate(lines, start=1):
        if words := re.sub(r"(^|\s)#.*", "", line).split():
            yield _pool_server(words, f"{file}:{number}")


def _pool_server(words: list[str], where: str) -> PoolServer:
    address, *fields = words
    check_address(address, f"{where}: the base URL")
    values = dict(field.partition("=")[::2] for field in fields)
    # The messages quote no word that may be a key.
    if any(name not in ("model", "key", "weight") or not value for name, value in values.items()):
        raise UsageError(
            f"{where}: after the base URL, write model=NAME, key=VARIABLE or weight=NUMBER alone"
        )
    key_name, weight = (
        values.get("key", "OPENAI_API_KEY"),
        _weight(values.get("weight", "1")),
    )
    if not key_name.isidentifier():
        raise UsageError(
            f"{where}: key= takes the name of an environment variable, not the key itself"
        )
    if "key" in values and not variable(key_name):
        raise UsageError(f"{where}: the environment variable {key_name} is not set")
    if weight is None:
        raise UsageError(f"{where}: weight={values['weight']} is not a positive number")
    return PoolServer(address, values.get("model"), key_name, weight)


def _weight(text: str) -> float | None:
    try:
        weight = float(text)
    except ValueError:
        return None
    return weight if 0 < weight < math.inf else None


def endpoint_of(provider: str, base_url: str | PoolSource | None = None) -> str | None:
    """Return the endpoint that a client of the provider would have, ``None`` where its address is not set.

    Raises:
        UsageError: the address is invalid.
    """
    if isinstance(base_url, PoolSource):
        return POOL_ENDPOINT
    if provider == OPENAI.provider:
        return named_endpoint(provider, OPENAI.address(base_url))
    if provider == "azure_openai":
        return named_endpoint(provider, azure_address(base_url))
    found: Any = load_part("judges", provider)
    return None if found is None else found.endpoint(base_url)


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
