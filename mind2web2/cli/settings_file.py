"""``mind2web2.toml`` in the working directory: judge settings, which options on the command line override."""

from __future__ import annotations

import argparse
import difflib
import math
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from mind2web2.cli.options import JUDGE_PROVIDERS, count, given_options, positive_int, temperature
from mind2web2.errors import UsageError

FILE_NAME = "mind2web2.toml"

_JUDGE = ("llm_provider", "judge_model", "judge_base_url")
_PRICES = {"input": "input_usd", "cached_input": "cached_usd", "output": "output_usd"}
_EXAMPLE = '[prices."MODEL"] with input and output in dollars per million tokens'


def apply_settings_file(options: argparse.Namespace) -> None:
    """Fill the options that the command line leaves open, set prices, and print the settings that are used.

    A replay takes its judge from the store of judgments: only prices apply to it. Where the command line
    names another provider than the file, the file's judge settings do not apply.

    Raises:
        UsageError: the file cannot be read, or has an unknown key or an unsuitable value.
    """
    path = Path(FILE_NAME)
    if not path.is_file():
        return
    settings = _read(path)
    used = []
    for name, value in _applicable(settings, options).items():
        setattr(options, name, value)
        used.append(f"{name} {value}")
    options.from_file = frozenset(word.partition(" ")[0] for word in used)
    used += _set_prices(settings.get("prices", {}))
    if used:
        print(f"Settings from {FILE_NAME}: {', '.join(used)}.")  # noqa: T201


def names_a_judge(options: argparse.Namespace) -> bool:
    """Return whether the command line or the file names provider, model or base URL of the judge."""
    named = given_options(options) | getattr(options, "from_file", frozenset())
    return not named.isdisjoint(_JUDGE)


def _applicable(settings: Mapping[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    given = given_options(options)
    if getattr(options, "llm_provider", None) == "replay":
        return {}
    provider = getattr(options, "llm_provider", None)
    is_other_judge = "llm_provider" in given and provider != settings.get("llm_provider", "openai")
    return {
        name: value
        for name, value in settings.items()
        if name in _OPTIONS
        and hasattr(options, name)
        and name not in given
        and not (is_other_judge and name.startswith("judge_"))
        and not (name == "max_llm_requests" and getattr(options, "batch", False))
    }


def _read(path: Path) -> dict[str, Any]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {FILE_NAME}: {error}") from error
    _check_keys(content, [*_OPTIONS, "prices"], FILE_NAME)
    return {
        name: value if name == "prices" else _option_value(name, value) for name, value in content.items()
    }


def _option_value(name: str, value: object) -> Any:
    if isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip():
        try:
            return _OPTIONS[name](str(value))
        except argparse.ArgumentTypeError as error:
            raise UsageError(f"{FILE_NAME}: {name}: {error}") from error
    raise UsageError(f"{FILE_NAME}: {name} is {value!r}: give one value, as for --{name}")


def _set_prices(prices: object) -> list[str]:
    from mind2web2.llm_client.prices import OwnPrice, set_own_prices

    if not isinstance(prices, dict) or not all(isinstance(price, dict) for price in prices.values()):
        raise UsageError(f"{FILE_NAME}: prices: write {_EXAMPLE}")
    own = {}
    for model, price in prices.items():
        _check_keys(price, _PRICES, f"{FILE_NAME}: prices of {model}")
        if not {"input", "output"} <= price.keys() or not all(map(_is_price, price.values())):
            raise UsageError(f"{FILE_NAME}: prices of {model}: write {_EXAMPLE}")
        own[model] = OwnPrice(**{_PRICES[kind]: float(amount) for kind, amount in price.items()})
    set_own_prices(own)
    return [f"prices of {model}" for model in own]


def _is_price(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


def _check_keys(found: Iterable[str], known: Iterable[str], where: str) -> None:
    names = list(known)
    for name in found:
        if name not in names:
            nearest = difflib.get_close_matches(name.replace("-", "_"), names, n=1)
            cure = f"did you mean {nearest[0]}?" if nearest else f"known are {', '.join(names)}"
            raise UsageError(f"{where}: unknown key {name}: {cure}")


def _provider(text: str) -> str:
    if text not in JUDGE_PROVIDERS:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(JUDGE_PROVIDERS)}")
    return text


# Names are those of the options.
_OPTIONS: dict[str, Callable[[str], Any]] = {
    "llm_provider": _provider,
    "judge_model": str,
    "judge_base_url": str,
    "judge_reasoning_effort": str,
    "judge_temperature": temperature,
    "max_images": count,
    "max_llm_requests": positive_int,
    "max_concurrent_tasks": positive_int,
    "max_concurrent_answers": positive_int,
    "max_webpage_retrieval": positive_int,
}
