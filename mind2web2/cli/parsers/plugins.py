"""Parser of ``mind2web2 plugins``."""

from __future__ import annotations

from mind2web2.cli.options import Subcommands

DESCRIPTION = """\
List the installed plugins, with what each adds and where it is. docs/plugins.md explains how to write one.
"""


def add_command(commands: Subcommands) -> None:
    """Add ``plugins`` to ``mind2web2``."""
    parser = commands.add_parser(
        "plugins", help="list the installed plugins", description=DESCRIPTION
    )
    parser.set_defaults(run="mind2web2.cli.plugins")
