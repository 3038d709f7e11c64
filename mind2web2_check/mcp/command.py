"""``mind2web2 mcp``: the check of reports as tools for agents."""

from __future__ import annotations

from pathlib import Path

from mind2web2.plugin import RunSettings, Subcommands

_DESCRIPTION = """\
Serve tools to an agent over standard input and output, by the Model Context Protocol (extra 'mcp').

  check_report(report)          check a text with citations; the reply has verdicts and figures
  verify_claim(claim, url)      check one claim by one page
  show(name)                    what an earlier check has found, from checks/NAME
"""


def add_command(commands: Subcommands) -> None:
    """Add ``mcp`` to ``mind2web2``."""
    parser = commands.add_parser(
        "mcp", help="offer the check of reports to agents", description=_DESCRIPTION
    )
    parser.add_argument(
        "--checks",
        metavar="DIR",
        type=Path,
        default=Path("checks"),
        help="where earlier checks are kept (default: %(default)s)",
    )
    parser.add_judge_settings(
        "votes",
        "max_llm_requests",
        "max_cost",
        "allow_private_network",
        base=RunSettings.for_scoring(),
    )
    parser.set_defaults(run="mind2web2_check.mcp.server")
