"""``mind2web2 metrics``: average the results that are there."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from mind2web2.cli.options import Subcommands, add_folder_options, paths_of

DESCRIPTION = """\
Average an agent's results into partial completion, success rate, pass@k, answer length and time; the
numbers are also written to eval_results/AGENT/summary.json.

  mind2web2 metrics my_agent                          over the tasks that have results
  mind2web2 metrics my_agent --task_list tasks.txt    over these tasks: what is missing counts as 0
"""


def add_command(commands: Subcommands) -> None:
    """Add ``metrics`` to ``mind2web2``."""
    parser = commands.add_parser("metrics", help="average an agent's results", description=DESCRIPTION)
    parser.add_argument("agent", metavar="AGENT", help="the agent, a folder under eval_results/")
    parser.add_argument(
        "--task_list", metavar="FILE", type=Path, help="ids of the tasks there should be, one a line"
    )
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    add_folder_options(parser, "eval_results_root")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the metrics and return the exit status: 1 where an answer has no result."""
    from mind2web2.cli.tables import plain_console, print_metrics, print_missing
    from mind2web2.errors import UsageError
    from mind2web2.summaries import generate_result_summary
    from mind2web2.utils.names import check_name

    agent_name = check_name("agent", options.agent)
    root = paths_of(options).eval_results_root
    task_ids = None if options.task_list is None else _task_ids(options.task_list)
    summary = generate_result_summary(root, agent_name, task_ids)
    if summary is None:
        raise UsageError(
            f"no results of agent {agent_name} under {root}: run mind2web2 evaluate {agent_name} first"
        )
    console = plain_console()
    if options.json:
        console.print_json(json.dumps(summary))
    else:
        print_metrics(console, summary)
        print_missing(console, summary)
    return 1 if summary["missing"] else 0


def _task_ids(path: Path) -> list[str]:
    from mind2web2.errors import UsageError

    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the task list {path}: {error}") from error
    task_ids = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if not task_ids:
        raise UsageError(f"the task list {path} names no task: write one task id a line")
    return task_ids
