"""``mind2web2 check``: do the cited pages say what a report says?"""

from __future__ import annotations

from mind2web2.cli.options import Subcommands

_DESCRIPTION = """\
Find out whether a report is true: find its statements and the sources that each cites.

  mind2web2 check REPORT --list     print statements, sources and marks as JSON; nothing is opened or asked

REPORT is markdown, HTML, DOCX, PDF, or - for standard input.
"""


def add_command(commands: Subcommands) -> None:
    """Add ``check`` to ``mind2web2``."""
    parser = commands.add_parser(
        "check",
        help="check whether the cited pages say what a report says",
        description=_DESCRIPTION,
    )
    parser.add_argument(
        "reports", metavar="REPORT", nargs="+", help="a file, or - for standard input"
    )
    parser.add_argument(
        "--list",
        action="store_true",
        required=True,
        help="print the statements with their sources as JSON, and stop",
    )
    parser.set_defaults(run="mind2web2.plugins.check.checking")
