"""Parser of ``mind2web2 more``."""

from __future__ import annotations

from mind2web2.cli.options import Subcommands

DESCRIPTION = """\
List all commands that `mind2web2 --help` leaves out, those of plugins included.
"""


def add_command(commands: Subcommands) -> None:
    """Add ``more`` to ``mind2web2``."""
    parser = commands.add_parser("more", help="list all other commands", description=DESCRIPTION)
    parser.set_defaults(run="mind2web2.cli.more")
