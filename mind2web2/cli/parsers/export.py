"""Parser of ``mind2web2 export``."""

from __future__ import annotations

from pathlib import Path

from mind2web2.cli.options import Subcommands, add_folder_options
from mind2web2.utils.entry_points import load_parts

DESCRIPTION = """\
Write the newest results of agents as a table: a row for each leaf, or for each answer.

  mind2web2 export my_agent -o leaves.csv
  mind2web2 export my_agent other_agent --answers -o answers.parquet
  mind2web2 export my_agent --anonymous -o leaves.jsonl    without texts of tasks, answers and pages

docs/tables.md explains the columns. In Python: mind2web2.load_results("my_agent")
"""


def add_command(commands: Subcommands) -> None:
    """Add ``export`` to ``mind2web2``."""
    parser = commands.add_parser("export", help="write results as a table", description=DESCRIPTION)
    parser.add_argument("agents", metavar="AGENT", nargs="+", help="an agent that has results")
    written = parser.add_mutually_exclusive_group(required=True)
    written.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=Path,
        help="ends in .csv, .jsonl or .parquet (needs the extra 'parquet')",
    )
    for name, export in load_parts("exports").items():
        written.add_argument(f"--{name}", metavar="FILE", type=Path, help=export.help)
    parser.add_argument(
        "--answers",
        action="store_true",
        help="a row for each answer instead of each leaf",
    )
    parser.add_argument(
        "--anonymous",
        action="store_true",
        help="leave out descriptions, claims, addresses and reasons; ids and tags become digests",
    )
    add_folder_options(parser, "eval_results_root")
    parser.set_defaults(run="mind2web2.cli.results.export")
