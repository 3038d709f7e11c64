"""``mind2web2 merge``: bring the results of several machines together."""

from __future__ import annotations

import argparse
from pathlib import Path

from mind2web2.cli.options import Subcommands

DESCRIPTION = """\
Bring result folders together: results, judgments and costs of all their agents. The sources are only read;
the same command again changes nothing, and continues a merge that was killed.

  mind2web2 evaluate my_agent --shard 1/2      on one machine, --shard 2/2 on another
  mind2web2 merge machine_1/eval_results machine_2/eval_results --into eval_results

Two different results of one answer, other judges and other scripts are named as conflicts, and never
resolved silently. Exit status: 0, or 1 where there are conflicts.
"""


def add_command(commands: Subcommands) -> None:
    """Add ``merge`` to ``mind2web2``."""
    parser = commands.add_parser(
        "merge", help="bring results of several machines together", description=DESCRIPTION
    )
    parser.add_argument(
        "sources", metavar="FOLDER", nargs="+", type=Path, help="the eval_results/ of a machine"
    )
    parser.add_argument(
        "--into", metavar="DIR", type=Path, required=True, help="the eval_results/ that takes them all"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Merge and return the exit status: 1 where there are conflicts."""
    from mind2web2.cli.console import counted, line, plain_console, warnings_on
    from mind2web2.cli.results.tables import print_metrics
    from mind2web2.runs.merging import merge_results

    console = plain_console()
    with warnings_on(console):
        report = merge_results(options.sources, options.into)
    for agent, summary in report.summaries.items():
        print_metrics(console, summary)
        results = counted(report.results[agent], "new result")
        line(console, f"{agent}: {results} and {counted(report.judgments[agent], 'new judgment')}")
    for conflict in report.conflicts:
        line(console, f"Conflict: {conflict}")
    line(console, f"{counted(len(report.conflicts), 'conflict')}. Results: {options.into}")
    return 1 if report.conflicts else 0
