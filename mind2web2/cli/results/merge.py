"""``mind2web2 import results``: bring results of several machines together."""

from __future__ import annotations

import argparse

from mind2web2.analysis.merging import merge_results
from mind2web2.cli.console import PlainConsole
from mind2web2.cli.results.tables import print_metrics
from mind2web2.utils.text import counted


def run(options: argparse.Namespace) -> int:
    """Merge and return the exit status: 1 where there are conflicts."""
    console = PlainConsole()
    with console.show_warnings():
        report = merge_results(options.sources, options.into)
    for agent, summary in report.summaries.items():
        print_metrics(console, summary)
        results = counted(report.results[agent], "new result")
        console.print_line(
            f"{agent}: {results} and {counted(report.judgments[agent], 'new judgment')}",
        )
    console.print_lines(report.conflicts, "Conflict: ")
    console.print_line(
        f"{counted(len(report.conflicts), 'conflict')}. Results: {options.into}",
    )
    return 1 if report.conflicts else 0
