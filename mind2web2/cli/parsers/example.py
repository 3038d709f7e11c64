"""Parser of ``mind2web2 example``."""

from __future__ import annotations

from pathlib import Path

from mind2web2.cli.options import Subcommands

DESCRIPTION = """\
Write an example project and evaluate it: three answers to each of three tasks about an invented town, with
their cited pages and the judge's replies. It needs no key, no browser and no network.

  mind2web2 example               into the folder example/
  mind2web2 example FOLDER
"""


def add_command(commands: Subcommands) -> None:
    """Add ``example`` to ``mind2web2``."""
    parser = commands.add_parser(
        "example",
        help="write an example project and evaluate it",
        description=DESCRIPTION,
    )
    parser.add_argument("folder", nargs="?", metavar="FOLDER", type=Path, default=Path("example"))
    parser.set_defaults(run="mind2web2.cli.example")
