"""``mind2web2.toml``: its name, the keys that it may have, and the prices of own models."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

from mind2web2.errors import UsageError
from mind2web2.llm_client.own_price import OwnPrice
from mind2web2.runs.settings import FILE_NAME
from mind2web2.utils.json_text import JsonObject
from mind2web2.utils.names import did_you_mean

_PRICES = {"input": "input_usd", "cached_input": "cached_usd", "output": "output_usd"}
_MAX_PRICE_USD = 1e9
_EXAMPLE = '[prices."MODEL"] with input and output in dollars per million tokens'


def file_content(path: Path) -> JsonObject:
    """Return the file's content. Raises UsageError: it cannot be read."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        hint = "; texts need quotes" if isinstance(error, tomllib.TOMLDecodeError) else ""
        raise UsageError(f"cannot read {FILE_NAME}: {reason}{hint}") from error


def file_prices() -> dict[str, OwnPrice]:
    """Return the prices of the working directory's file, none without one.

    Raises:
        UsageError: it cannot be read.
    """
    path = Path(FILE_NAME)
    return prices_in(file_content(path).get("prices", {})) if path.exists() else {}


def prices_in(prices: object) -> dict[str, OwnPrice]:
    """Return the prices of the file's table by model. Raises UsageError: the table is wrong."""
    if not isinstance(prices, dict) or not all(
        isinstance(price, dict) for price in prices.values()
    ):
        raise UsageError(f"{FILE_NAME}: prices: write {_EXAMPLE}")
    own = {}
    for model, price in prices.items():
        where = f"{FILE_NAME}: prices of {model}"
        if any(isinstance(amount, dict) for amount in price.values()):
            raise UsageError(
                f"{where}: write a name with a dot in quotes: "
                f'[prices."{_dotted_name(model, price)}"]'
            )
        check_keys(price, _PRICES, where)
        if not {"input", "output"} <= price.keys() or not all(map(_is_price, price.values())):
            raise UsageError(f"{where}: write {_EXAMPLE}")
        own[model] = OwnPrice(**{_PRICES[kind]: float(amount) for kind, amount in price.items()})
    return own


def _dotted_name(name: str, table: JsonObject) -> str:
    """Return the model's name, which TOML has split at its dots."""
    part = next((part for part, inner in table.items() if isinstance(inner, dict)), None)
    if part is None:
        return name
    return _dotted_name(f"{name}.{part}", table[part])


def _is_price(value: object) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and 0 <= value <= _MAX_PRICE_USD
    )


def check_keys(found: Iterable[str], known: Iterable[str], where: str) -> None:
    """Raise ``UsageError`` for a key of the file that is not known."""
    names = list(known)
    for name in found:
        if name in names:
            continue
        if re.search("key|secret|token$", name, re.IGNORECASE):
            cure = "API keys come from environment variables, such as OPENAI_API_KEY"
        else:
            known_names = f"known are {', '.join(names)}; settings stand above the tables"
            cure = did_you_mean(name.replace("-", "_"), names, known_names)
        raise UsageError(f"{where}: unknown key {name}: {cure}")
