"""``mind2web2 example``: the example project, written and evaluated.

The command needs neither a key nor a network.
"""

from __future__ import annotations

import argparse
import shlex
from contextlib import chdir
from pathlib import Path

from mind2web2.benchmark.example import AGENT, JUDGMENTS, write_example
from mind2web2.cli import evaluate
from mind2web2.cli.console import PlainConsole
from mind2web2.cli.options import CommandParser
from mind2web2.cli.parsers.evaluate import add_options
from mind2web2.errors import UsageError
from mind2web2.utils.program import command_line
from mind2web2.utils.text import counted


def run(options: argparse.Namespace) -> int:
    """Write, evaluate, and return the exit status of the evaluation."""
    folder: Path = options.folder
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is not a folder: name another one")
    console = PlainConsole()
    console.print_line(f"{counted(write_example(folder), 'file')} written into {folder}")
    console.print_line(
        "Each task has one dead link on purpose, to show what becomes of claims on it."
    )
    words = [AGENT, "--llm_provider", "replay", "--judgments", str(JUDGMENTS)]
    parser = CommandParser(prog="mind2web2 example")
    add_options(parser)
    with chdir(folder):
        status = evaluate.run(parser.parse_args(words))
    view = command_line("view", AGENT)
    console.print_line(f"To look at it: cd {shlex.quote(str(folder))}; {view}")
    return status
