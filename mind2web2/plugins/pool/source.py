"""The servers of a pool, as a file or the command line lists them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from mind2web2.errors import UsageError
from mind2web2.llm_client.settings import (
    ADDRESS_GIVEN,
    Servers,
    check_address,
    endpoint_name,
    is_version_of,
    variable,
)

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
class ServerList(Servers):
    """The file that lists a pool's servers, or their base URLs.

    Args:
        model: the judge model; by default the one that the file names, ``None`` where it names
            none.
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

    @property
    def endpoint(self) -> str:
        """Return the name of all pools, so that judgments outlive their servers."""
        return POOL_ENDPOINT

    def serving(self, model: str) -> Self:
        """Return the same servers of this model."""
        return replace(self, model=model)

    @property
    def key_names(self) -> tuple[str, ...]:
        """Return the environment variables of the servers' keys."""
        return tuple(server.key_name for server in self.servers)

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
            UsageError: the file cannot be read, or names a server wrongly, or servers of different
                models.
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
                f"the servers of a judge pool must serve the same model, but {named} and the judge "
                f"model name {' and '.join(sorted(models))}"
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
