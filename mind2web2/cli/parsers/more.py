"""Parser of ``mind2web2 more``."""

from __future__ import annotations

from mind2web2.cli.options import Subcommands

DESCRIPTION = """\
List the commands that `mind2web2 --help` leaves out, with those of plugins.
"""


def add_command(commands: Subcommands) -> None:
    """Add ``more`` to ``mind2web2``."""
    parser = commands.add_parser("more", help="list the other commands", description=DESCRIPTION)
    parser.set_defaults(run="mind2web2.cli.more")
