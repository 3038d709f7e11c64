"""Write commands.md, which holds what each command prints for ``--help``: ``make options``."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

from mind2web2.cli import command_modules
from mind2web2.cli.options import CommandParser

COMMANDS_PAGE = Path(__file__).with_name("commands.md")
_START = """\
# Commands

What each command prints for `--help`: what it does, examples, arguments and options.
[Options](options.md) has those of `evaluate` by subject, the keys of `mind2web2.toml`, and links to the
pages that explain them. An option may be written with `_` or `-`.
"""
# Marks of markdown that texts of the program may hold.
_MARKED = re.compile(r"([*_<>|\[\]])")
_OPTION = re.compile(r"(?<![\w`-])(--[a-z_]+)")


def page() -> str:
    """Return the whole page."""
    together = CommandParser(prog="mind2web2")
    subcommands = together.add_subparsers()
    for module in command_modules():
        module.add_command(subcommands)
    parts = [_START]
    for name, parser in sorted(subcommands.choices.items()):
        parts += _of_command(name, parser, level=2)
    return "\n".join(parts)


def _of_command(name: str, parser: argparse.ArgumentParser, level: int) -> Iterator[str]:
    yield f"{'#' * level} {name}\n"
    if parser.description:
        yield f"```text\n{parser.description.strip()}\n```\n"
    formatter = parser._get_formatter()
    below: list[argparse._SubParsersAction[argparse.ArgumentParser]] = []
    lines = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            below.append(action)
        elif action.dest != "help" and action.help != argparse.SUPPRESS:
            explained = formatter._expand_help(action) if action.help else ""
            meaning = f": {_in_markdown(explained)}" if explained else ""
            lines.append(f"- `{_shown(action)}`{meaning}")
    if lines:
        yield "\n".join(lines) + "\n"
    for actions in below:
        for action_name, of_action in actions.choices.items():
            yield from _of_command(f"{name} {action_name}", of_action, level + 1)


def _shown(action: argparse.Action) -> str:
    """Return an argument or option with its value, as a reader types it."""
    values = action.metavar or (
        "{" + ",".join(map(str, action.choices)) + "}" if action.choices else action.dest.upper()
    )
    value = " ".join(values) if isinstance(values, tuple) else values
    if action.nargs in ("*", "+"):
        value += " ..."
    if not action.option_strings:
        return value
    names = ", ".join(dict.fromkeys(action.option_strings))
    return names if action.nargs == 0 else f"{names} {value}"


def _in_markdown(text: str) -> str:
    one_line = " ".join(text.split())
    marked = _MARKED.sub(r"\\\1", one_line)
    return _OPTION.sub(r"`\1`", marked.replace("\\_", "_"))


if __name__ == "__main__":
    COMMANDS_PAGE.write_text(page(), encoding="utf-8")
