"""``mind2web2.toml``: its name, the keys that it may have, and the prices of own models."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from mind2web2.errors import UsageError
from mind2web2.llm_client.chat import OwnPrice
from mind2web2.runs.settings import FILE_NAME
from mind2web2.utils.json_text import JsonObject
from mind2web2.utils.names import did_you_mean

_EXAMPLE = (
    '[prices."MODEL"], in quotes if it has a dot, with input and output in dollars per million '
    "tokens, and settings above the tables"
)
_Dollars = Annotated[float, Field(ge=0, le=1e9)]


class _FilePrice(BaseModel):
    """A model's price as the file has it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    input: _Dollars
    output: _Dollars
    cached_input: _Dollars | None = None


_PRICES = TypeAdapter(dict[str, _FilePrice])


def file_content(path: Path) -> JsonObject:
    """Return the file's content. Raises UsageError: it cannot be read."""
    try:
        with UsageError.unable_to(f"read {FILE_NAME}"):
            return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        hint = "; texts need quotes" if isinstance(error, tomllib.TOMLDecodeError) else ""
        raise UsageError(f"cannot read {FILE_NAME}: {error}{hint}") from error


def file_prices() -> dict[str, OwnPrice]:
    """Return the prices of the working directory's file, none without one.

    Raises:
        UsageError: it cannot be read.
    """
    path = Path(FILE_NAME)
    return prices_in(file_content(path).get("prices", {})) if path.exists() else {}


def prices_in(prices: object) -> dict[str, OwnPrice]:
    """Return the prices of the file's table by model. Raises UsageError: the table is wrong."""
    try:
        checked = _PRICES.validate_python(prices)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(["prices", *map(str, first["loc"])])
        fault = "unknown key" if first["type"] == "extra_forbidden" else first["msg"]
        raise UsageError(f"{FILE_NAME}: {where}: {fault}: write {_EXAMPLE}") from error
    return {
        model: OwnPrice(price.input, price.output, price.cached_input)
        for model, price in checked.items()
    }


def check_keys(keys: Iterable[str], known: Iterable[str], where: str) -> None:
    """Raise ``UsageError`` for a key of the file that is not known."""
    names = list(known)
    for name in keys:
        if name in names:
            continue
        if re.search("key|secret|token$", name, re.IGNORECASE):
            cure = "API keys come from environment variables, such as OPENAI_API_KEY"
        else:
            known_names = f"known are {', '.join(names)}; settings stand above the tables"
            cure = did_you_mean(name.replace("-", "_"), names, known_names)
        raise UsageError(f"{where}: unknown key {name}: {cure}")
