"""``mind2web2.toml``: settings and prices for all commands that are started beside it."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mind2web2.cli.options import given_settings
from mind2web2.errors import UsageError
from mind2web2.llm_client.own_price import OwnPrice
from mind2web2.llm_client.prices import set_own_prices
from mind2web2.runs.file_prices import FILE_NAME, check_keys, file_content, prices_in
from mind2web2.runs.paths import paths_of as folders_of
from mind2web2.runs.setting import Setting
from mind2web2.runs.settings import SERVER_NAMES, RunSettings, all_settings, names_of_judge
from mind2web2.scripts.aliases import set_script_aliases
from mind2web2.utils.json_fields import JsonObject
from mind2web2.utils.path_config import PathConfig

# User and password, and the query, of a base URL.
_SECRET_PARTS = re.compile(r"(?<=//)[^/]*@|(?<=[\w/])\?[^,]*")


def file_settings() -> dict[str, Setting]:
    """Return the settings that the file may have, by their names."""
    declared = all_settings()
    return {name: each for name, each in declared.items() if each.in_file is not None}


def settings_of(options: argparse.Namespace, *, is_announced: bool = False) -> RunSettings:
    """Return the settings of a command, as command line and file give them.

    Raises:
        UsageError: as ``with_file``.
    """
    return with_file(given_settings(options), options.takes, is_announced=is_announced)


def paths_of(settings: RunSettings, *agents: str) -> PathConfig:
    """Return the folders of a command, of roots in object stores those of the named agents."""
    # This import is late because it loads what such a root needs.

    return folders_of(settings, agents)


def with_file(settings: RunSettings, takes: frozenset[str], *, is_announced: bool) -> RunSettings:
    """Return the settings with those of the file that the command line leaves open.

    A replay takes its judge from the store of judgments, not from the file. Where the command line
    names another provider than the file, the file's judge does not apply.

    Args:
        takes: the settings that the command has.
        is_announced: print what the file gives, and use its prices.

    Raises:
        UsageError: the file cannot be read, or has an unknown key or an unsuitable value.
    """
    if os.path.lexists(FILE_NAME):
        content, prices, aliases = _read(Path(FILE_NAME))
        _set_aliases(aliases)
        applied = _applicable(content, settings, takes)
        settings = replace(
            settings.with_values(applied), prices=prices, from_file=frozenset(applied)
        )
        if is_announced:
            _announce(applied, prices)
    return settings.with_pool_model() if "judge_pool" in takes else settings


def _announce(applied: JsonObject, prices: Mapping[str, OwnPrice]) -> None:

    set_own_prices(prices)
    used = [f"{name} {_text_without_secrets(value)}" for name, value in applied.items()]
    used += [f"prices of {model}" for model in prices]
    if used:
        print(f"Settings from {FILE_NAME}: {', '.join(used)}.")  # noqa: T201


def _text_without_secrets(value: object) -> str:
    values = value if isinstance(value, tuple) else (value,)
    return " and ".join(_SECRET_PARTS.sub("", str(each)) for each in values)


def _applicable(given: JsonObject, settings: RunSettings, takes: frozenset[str]) -> JsonObject:
    """Return the settings that the file gives and that nothing else decides."""
    closed = set(settings.given)
    if not closed.isdisjoint(SERVER_NAMES):
        closed |= set(SERVER_NAMES)
    # Each of them names the judge.
    of_judge = {"judge_model", *names_of_judge()}
    if not closed.isdisjoint(of_judge):
        closed |= of_judge - settings.given
    is_other_judge = "llm_provider" in closed and settings.llm_provider != given.get(
        "llm_provider", "openai"
    )
    if settings.is_replay or is_other_judge:
        closed |= {name for name, setting in file_settings().items() if setting.group == "judge"}
    if settings.is_replay or settings.delivery is not None:
        closed.add("max_llm_requests")
    for name in names_of_judge():
        if name in given and name not in takes:
            # A command that asks one judge asks the one that decides.
            model = RunSettings().with_values({name: given[name]}).model
            given = {"judge_model": model, **given}
    return {name: value for name, value in given.items() if name in takes and name not in closed}


def _set_aliases(aliases: Mapping[str, str]) -> None:

    set_script_aliases(aliases)


def _read(path: Path) -> tuple[JsonObject, dict[str, OwnPrice], dict[str, str]]:
    content = dict(file_content(path))
    known = file_settings()
    check_keys(content, [*known, "prices", "scripts"], FILE_NAME)
    prices = prices_in(content.pop("prices", {}))
    aliases = _aliases_in(content.pop("scripts", {}))
    settings = {name: _check_value(known[name], value) for name, value in content.items()}
    return settings, prices, aliases


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
    try:
        return parse(value if isinstance(value, dict | list) else str(value))
    except ValueError as error:
        raise UsageError(f"{FILE_NAME}: {name}: {error}") from error


def _aliases_in(given: object) -> dict[str, str]:
    example = 'write [scripts] with aliases = {their_name = "mind2web2"}'
    if not isinstance(given, dict):
        raise UsageError(f"{FILE_NAME}: scripts: {example}")
    check_keys(given, ["aliases"], f"{FILE_NAME}: scripts")
    aliases: dict[str, str] = given.get("aliases", {})
    is_sound = isinstance(aliases, dict) and all(
        name.isidentifier() and isinstance(target, str) and target.isidentifier()
        for name, target in aliases.items()
    )
    if not is_sound:
        raise UsageError(f"{FILE_NAME}: scripts: {example}")
    return aliases
