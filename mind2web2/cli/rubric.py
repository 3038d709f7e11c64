"""``mind2web2 rubric``: rubric files shown, and turned into scripts."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mind2web2.cli.options import Subcommands
from mind2web2.errors import UsageError

DESCRIPTION = """\
Work with rubric files: tasks in YAML, as eval_scripts/VERSION/TASK.yaml (docs/rubric-files.md).

  mind2web2 rubric show FILE              print the tree and what each leaf asks
  mind2web2 rubric script FILE -o F.py    write the equal eval script, to go on in Python
"""


def add_command(commands: Subcommands) -> None:
    """Add ``rubric`` to ``mind2web2``."""
    rubric = commands.add_parser(
        "rubric", help="show and convert rubric files", description=DESCRIPTION
    )
    kinds = rubric.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, run, promise in (
        ("show", run_show, "print the tree"),
        ("script", run_script, "write the equal eval script"),
    ):
        parser = kinds.add_parser(name, help=promise)
        parser.add_argument("file", metavar="FILE", type=Path, help="a rubric file")
        if name != "show":
            parser.add_argument(
                "-o",
                "--output",
                metavar="FILE",
                type=Path,
                help="default: standard output",
            )
        parser.set_defaults(run=run)


def run_show(options: argparse.Namespace) -> int:
    """Print the tree and return the exit status."""
    from mind2web2.cli.console import line, plain_console
    from mind2web2.scripts.rubric_outline import tree_lines
    from mind2web2.scripts.rubric_reading import read_rubric

    rubric = read_rubric(_existing(options.file)).rubric
    console = plain_console()
    for text in tree_lines(rubric):
        line(console, text)
    return 0


def run_script(options: argparse.Namespace) -> int:
    """Write the script and return the exit status."""
    from mind2web2.scripts.rubric_reading import read_rubric
    from mind2web2.scripts.rubric_script import script_of

    return _write(options.output, script_of(read_rubric(_existing(options.file)).rubric))


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise UsageError(f"no rubric file {path}")
    return path


def _write(path: Path | None, text: str) -> int:
    from mind2web2.utils.files import write_whole

    if path is None:
        sys.stdout.write(text)
    elif path.exists():
        raise UsageError(f"{path} is there already: name another file")
    else:
        write_whole(path, text)
    return 0
