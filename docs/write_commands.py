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

This page has the `--help` of each command. [Options](options.md#evaluate) explains the options of
`evaluate`; other commands only name those that they share with it. You may write an option with
`_` or `-`.
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
    evaluate = _options(subcommands.choices["evaluate"])
    for name, parser in sorted(subcommands.choices.items()):
        parts += _of_command(name, parser, evaluate, level=2)
    return "\n".join(parts)


def _options(parser: argparse.ArgumentParser) -> dict[str, str]:
    """Return the help of each option, by the option with its value."""
    return {
        _shown(action): _meaning(parser, action) for action in parser._actions if _is_shown(action)
    }


def _is_shown(action: argparse.Action) -> bool:
    is_group = isinstance(action, argparse._SubParsersAction)
    return not is_group and action.dest != "help" and action.help != argparse.SUPPRESS


def _meaning(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    explained = parser._get_formatter()._expand_help(action) if action.help else ""
    return _in_markdown(explained)


def _of_command(
    name: str, parser: argparse.ArgumentParser, evaluate: dict[str, str], level: int
) -> Iterator[str]:
    yield f"{'#' * level} {name}\n"
    if parser.description:
        yield f"```text\n{parser.description.strip()}\n```\n"
    shared = []
    options = _options(parser)
    if name == "evaluate":
        yield "[Options](options.md#evaluate) has its options.\n"
        return
    for option, meaning in options.items():
        if option.startswith("-") and evaluate.get(option) == meaning:
            shared.append(f"`{option.split()[0]}`")
        else:
            yield f"- `{option}`" + (f": {meaning}" if meaning else "")
    if shared:
        yield f"- as for [evaluate](options.md#evaluate): {', '.join(shared)}"
    if options:
        yield ""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for action_name, of_action in action.choices.items():
                yield from _of_command(f"{name} {action_name}", of_action, evaluate, level + 1)


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
