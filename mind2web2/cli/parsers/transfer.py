"""Parsers of ``mind2web2 merge`` and ``judgments``."""

from __future__ import annotations

from pathlib import Path

from mind2web2.cli.options import Subcommands, add_folder_options, file_or_database

JUDGMENTS = """\
Every judge reply is kept in eval_results/AGENT/judgments.sqlite3. An exported file lets anybody score the
same answers again, offline: run_eval.py --agent_name AGENT --llm_provider replay --judgments FILE

  mind2web2 judgments export my_agent my_agent.jsonl
  mind2web2 judgments import my_agent my_agent.jsonl
"""


def add_command(commands: Subcommands) -> None:
    """Add ``merge`` and ``judgments`` to ``mind2web2``."""
    _add_merge(commands)
    parser = commands.add_parser(
        "judgments", help="export or import the judge's replies", description=JUDGMENTS
    )
    actions = parser.add_subparsers(title="actions", required=True, metavar="ACTION")
    for name, summary in (
        ("export", "write the agent's judgments to a .jsonl file"),
        (
            "import",
            "add the judgments of a file or database to the agent's; those stored before stay",
        ),
    ):
        action = actions.add_parser(name, help=summary, description=summary)
        action.add_argument(
            "agent", metavar="AGENT", help="the agent, a folder under eval_results/"
        )
        if name == "export":
            action.add_argument("file", metavar="FILE", type=Path, help="a .jsonl file")
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
Bring result folders together: results, judgments and costs of all their agents. The sources are only read;
the same command again changes nothing, and continues a merge that was killed.

  mind2web2 evaluate my_agent --shard 1/2      on one machine, --shard 2/2 on another
  mind2web2 merge machine_1/eval_results machine_2/eval_results --into eval_results

Two different results of one answer, other judges and other scripts are named as conflicts, and never
resolved silently. Exit status: 0, or 1 where there are conflicts.
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
        help="the eval_results/ of a machine",
    )
    parser.add_argument(
        "--into",
        metavar="DIR",
        type=Path,
        required=True,
        help="the eval_results/ that takes them all",
    )
    parser.set_defaults(run="mind2web2.cli.results.merge")
