"""Parser of ``mind2web2 rubric``."""

from __future__ import annotations

from pathlib import Path

from mind2web2.cli.options import Subcommands

DESCRIPTION = """\
Work with rubric files, the tasks in YAML at eval_scripts/VERSION/TASK.yaml (docs/rubric-files.md).

  mind2web2 rubric show FILE              print the tree and what each leaf asks
  mind2web2 rubric script FILE -o F.py    write an equal eval script, to go on in Python
"""


def add_command(commands: Subcommands) -> None:
    """Add ``rubric`` to ``mind2web2``."""
    rubric = commands.add_parser(
        "rubric", help="show and convert rubric files", description=DESCRIPTION
    )
    kinds = rubric.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, promise in (
        ("show", "print the tree and what each leaf asks"),
        ("script", "write an equal eval script"),
    ):
        parser = kinds.add_parser(
            name, help=promise, description=f"{promise[0].upper()}{promise[1:]}."
        )
        parser.add_argument("file", metavar="FILE", type=Path, help="a rubric file")
        if name != "show":
            parser.add_argument(
                "-o",
                "--output",
                metavar="FILE",
                type=Path,
                help="the script to write (default: standard output)",
            )
        parser.set_defaults(run=f"mind2web2.cli.rubric:run_{name}")
