"""Parser of ``mind2web2 example``."""

from __future__ import annotations

from pathlib import Path

from mind2web2.cli.options import Subcommands

DESCRIPTION = """\
Write an example project and evaluate it, without a key, a browser or a network. It has three tasks about an
invented town, three answers to each, the cited pages, and the judge's stored replies.

  mind2web2 example               write it into the folder example/
  mind2web2 example FOLDER        write it into another folder
"""


def add_command(commands: Subcommands) -> None:
    """Add ``example`` to ``mind2web2``."""
    parser = commands.add_parser(
        "example",
        help="write an example project and evaluate it",
        description=DESCRIPTION,
    )
    parser.add_argument(
        "folder",
        nargs="?",
        metavar="FOLDER",
        type=Path,
        default=Path("example"),
        help="where to write it (default: example/)",
    )
    parser.set_defaults(run="mind2web2.cli.example")
