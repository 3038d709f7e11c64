"""Parsers of ``mind2web2 merge`` and ``judgments``."""

from __future__ import annotations

from pathlib import Path

from mind2web2.cli.options import Subcommands, add_folder_options, file_or_database

JUDGMENTS = """\
Export or import an agent's judgments. All replies of the judge are in eval_results/AGENT/judgments.sqlite3.
With an exported file, anybody can score the same answers again, offline.

  mind2web2 judgments export my_agent my_agent.jsonl      write the file
  mind2web2 judgments import my_agent my_agent.jsonl      add the file's judgments to the agent's own
  mind2web2 evaluate my_agent --llm_provider replay --judgments my_agent.jsonl
                                                          score again from the file
"""


def add_command(commands: Subcommands) -> None:
    """Add ``merge`` and ``judgments`` to ``mind2web2``."""
    _add_merge(commands)
    parser = commands.add_parser(
        "judgments", help="export or import the judge's replies", description=JUDGMENTS
    )
    actions = parser.add_subparsers(title="actions", required=True, metavar="ACTION")
    for name, summary in (
        ("export", "write the agent's judgments into a .jsonl file"),
        (
            "import",
            "add judgments from a file or database to the agent's own, which stay",
        ),
    ):
        action = actions.add_parser(
            name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."
        )
        action.add_argument(
            "agent", metavar="AGENT", help="the agent, a folder under eval_results/"
        )
        if name == "export":
            action.add_argument("file", metavar="FILE", type=Path, help="the .jsonl file to write")
        else:
            action.add_argument(
                "file",
                metavar="FILE_OR_URL",
                type=file_or_database,
                help="a .jsonl file, or postgresql://USER@HOST:PORT/DATABASE",
            )
        add_folder_options(action, "eval_results_root")
        action.set_defaults(run=f"mind2web2.cli.results.judgments:run_{name}")


MERGE = """\
Bring the results of several machines together, with the judgments and costs of all their agents. The sources
stay as they are. If a merge was stopped, the same command continues it.

  mind2web2 evaluate my_agent --shard 1/2      on one machine, and --shard 2/2 on another
  mind2web2 merge machine_1/eval_results machine_2/eval_results --into eval_results

If an answer has two different results, or judges or scripts differ, the command names the conflict and
resolves nothing. Exit status: 0, or 1 if there are conflicts.
"""


def _add_merge(commands: Subcommands) -> None:
    parser = commands.add_parser(
        "merge", help="bring results of several machines together", description=MERGE
    )
    parser.add_argument(
        "sources",
        metavar="FOLDER",
        nargs="+",
        type=Path,
        help="the eval_results/ of one machine",
    )
    parser.add_argument(
        "--into",
        metavar="DIR",
        type=Path,
        required=True,
        help="the eval_results/ to bring them into",
    )
    parser.set_defaults(run="mind2web2.cli.results.merge")
