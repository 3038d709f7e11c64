"""Parser of ``mind2web2 export``."""

from __future__ import annotations

from pathlib import Path

from mind2web2.cli.options import Subcommands
from mind2web2.utils.entry_points import load_parts

DESCRIPTION = """\
Write the agents' newest results as a table, with a row for each leaf or for each answer.

  mind2web2 export my_agent -o leaves.csv                          a row for each leaf
  mind2web2 export my_agent other --answers -o answers.jsonl       a row for each answer
  mind2web2 export my_agent --anonymous -o leaves.jsonl            no texts of tasks, answers and pages
  mind2web2 export my_agent --judgments my_agent.jsonl             the judge's replies, to score again offline

docs/file-layouts.md#tables explains the columns. In Python, use mind2web2.load_results("my_agent").
"""


def add_command(commands: Subcommands) -> None:
    """Add ``export`` to ``mind2web2``."""
    parser = commands.add_parser("export", help="write results as a table", description=DESCRIPTION)
    parser.add_argument(
        "agents", metavar="AGENT", nargs="+", help="the agents, folders under eval_results/"
    )
    written = parser.add_mutually_exclusive_group(required=True)
    written.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=Path,
        help="the file to write; it ends in .csv or .jsonl",
    )
    written.add_argument(
        "--judgments",
        metavar="FILE",
        type=Path,
        help="write one agent's judgments, a .jsonl file from which anybody can score the same "
        "answers again, offline",
    )
    for name, export in load_parts("exports").items():
        written.add_argument(f"--{name}", metavar="FILE", type=Path, help=export.help)
    parser.add_argument(
        "--answers",
        action="store_true",
        help="write a row for each answer instead of each leaf",
    )
    parser.add_argument(
        "--anonymous",
        action="store_true",
        help="leave out descriptions, claims, addresses and reasons, and replace ids and tags by "
        "digests",
    )
    parser.add_folder_options("eval_results_root")
    parser.set_defaults(run="mind2web2.cli.results.export")
