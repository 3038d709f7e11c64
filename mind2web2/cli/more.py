"""``mind2web2 more``: list the commands that ``--help`` leaves out."""

from __future__ import annotations

import argparse

from mind2web2.cli import FIRST_COMMANDS, command_modules
from mind2web2.cli.options import CommandParser


def run(_: argparse.Namespace) -> int:
    """Print a line for each command and return the exit status."""
    together = CommandParser(prog="mind2web2")
    commands = together.add_subparsers()
    for module in command_modules():
        module.add_command(commands)
    helps = {each.dest: each.help for each in commands._choices_actions}
    others = {name: helps[name] for name in sorted(helps) if name not in FIRST_COMMANDS}
    width = max(map(len, others))
    for name, text in others.items():
        print(f"  mind2web2 {name:{width}}  {text}")  # noqa: T201
    return 0
