"""``mind2web2.toml``: settings and prices for all commands that are started beside it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mind2web2.errors import UsageError
from mind2web2.llm_client.chat import OwnPrice
from mind2web2.llm_client.prices import set_own_prices
from mind2web2.runs.file_prices import check_keys, file_content, prices_in
from mind2web2.runs.setting import Setting
from mind2web2.runs.settings import FILE_NAME, SETTINGS, RunSettings
from mind2web2.utils.json_text import JsonObject
from mind2web2.utils.values import parsed

# User and password, and the query, of a base URL.
_LOOPBACK = re.compile(r"https?://(?:[^/@]*@)?(?:localhost|127\.[\d.]+|\[::1\])(?::\d+)?(?:[/?]|$)")
_SECRET_PARTS = re.compile(r"(?<=//)[^/]*@|(?<=[\w/])\?[^,]*")


def file_settings() -> dict[str, Setting]:
    """Return the settings that the file may have, by their names."""
    return {name: each for name, each in SETTINGS.items() if each.in_file is not None}


def settings_with_file(
    settings: RunSettings, takes: frozenset[str], *, is_announced: bool
) -> RunSettings:
    """Return the settings with those of the file that the command line leaves open.

    A replay takes its judge from the store of judgments, not from the file. Where the command line
    names another provider than the file, the file's judge does not apply.

    Args:
        takes: the settings that the command has.
        is_announced: print what the file gives, and use its prices.

    Raises:
        UsageError: the file cannot be read, or has an unknown key or an unsuitable value.
    """
    content, prices = _read(Path(FILE_NAME))
    applied = _applicable(content, settings, takes)
    settings = replace(settings, **applied, prices=prices, from_file=frozenset(applied))
    if "judge_base_url" in applied:
        _keep_key_from_strangers(settings)
    if is_announced:
        _announce(applied, prices)
    return settings


def _keep_key_from_strangers(settings: RunSettings) -> None:
    """Refuse to send the environment's key to a server that only the file names.

    The file may be part of a folder from others.
    """
    server = settings.judge_base_url or ""
    provider = settings.llm_provider.upper()
    key, address = f"{provider}_API_KEY", f"{provider}_BASE_URL"
    is_named = os.environ.get(address) == server
    if os.environ.get(key) and not is_named and not _LOOPBACK.match(server):
        raise UsageError(
            f"{FILE_NAME} would send your {key} to {_text_without_secrets(server)}: if you trust "
            f"this server, name it yourself, by --judge_base_url or {address}"
        )


def _announce(applied: JsonObject, prices: Mapping[str, OwnPrice]) -> None:
    set_own_prices(prices)
    used = [f"{name} {_text_without_secrets(value)}" for name, value in applied.items()]
    used += [f"prices of {model}" for model in prices]
    if used:
        print(f"Settings from {FILE_NAME}: {', '.join(used)}.")  # noqa: T201


def _text_without_secrets(value: object) -> str:
    return _SECRET_PARTS.sub("", str(value))


def _applicable(content: JsonObject, settings: RunSettings, takes: frozenset[str]) -> JsonObject:
    """Return the settings that the file gives and that nothing else decides."""
    closed = set(settings.given)
    is_other_judge = "llm_provider" in closed and settings.llm_provider != content.get(
        "llm_provider", "openai"
    )
    if settings.is_replay or is_other_judge:
        closed |= {name for name, setting in file_settings().items() if setting.group == "judge"}
    if settings.is_replay:
        closed.add("max_llm_requests")
    return {name: value for name, value in content.items() if name in takes and name not in closed}


def _read(path: Path) -> tuple[JsonObject, dict[str, OwnPrice]]:
    content = dict(file_content(path))
    known = file_settings()
    check_keys(content, [*known, "prices"], FILE_NAME)
    prices = prices_in(content.pop("prices", {}))
    settings = {name: _check_value(known[name], value) for name, value in content.items()}
    return settings, prices


def _check_value(setting: Setting, value: object) -> Any:
    name, in_file = setting.name, setting.in_file
    assert in_file is not None
    # To Python, True is an int.
    is_kind = isinstance(value, in_file.kinds) and isinstance(value, bool) == (
        bool in in_file.kinds
    )
    if not is_kind or not str(value).strip():
        raise UsageError(
            f"{FILE_NAME}: {name} is {value!r}: write for example {name} = {in_file.example}"
        )
    if isinstance(value, bool):
        return value
    parse: Callable[[Any], Any] | None = in_file.parse or setting.parse
    assert parse is not None
    written = value if isinstance(value, dict | list) else str(value)
    return parsed(f"{FILE_NAME}: {name}", parse, written)
