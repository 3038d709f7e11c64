"""Parser of ``mind2web2 import``."""

from __future__ import annotations

from pathlib import Path

from mind2web2.cli.options import CommandParser, Subcommands
from mind2web2.cli.task_options import add_task_list, add_tasks_root

DESCRIPTION = """\
Take in what was made elsewhere: answers, the pages that an agent saw, judgments, or results.

  mind2web2 import answers my_agent answers.jsonl
  mind2web2 import pages my_agent pages.jsonl
  mind2web2 import judgments my_agent judgments.jsonl
  mind2web2 import results machine_1/eval_results machine_2/eval_results --into eval_results
"""
ANSWERS = """\
Store answers from a file of JSON lines or CSV. Each row has task_id (or question) and answer, and optionally
run, seconds and model. A run in which the agent failed has an empty answer. If any row has an error, nothing
is stored.

  mind2web2 import answers my_agent answers.jsonl
"""
PAGES = """\
Store the pages that an agent saw, instead of capturing them. The command fetches nothing from the network. It
stores a page for each task whose answers cite it.

  mind2web2 import pages my_agent pages.jsonl        one page a line: url, text or pdf, screenshot, ...

Exit status: 0 something was stored, 1 nothing was stored, 2 the file has errors, which are listed, and
nothing was stored.
"""
JUDGMENTS = """\
Add judgments from a file to the agent's own, which stay. The file comes from
mind2web2 export AGENT --judgments FILE.

  mind2web2 import judgments my_agent my_agent.jsonl
"""
RESULTS = """\
Bring the results of several machines together, with the judgments and costs of all their agents. The sources
stay as they are. If the command was stopped, the same command continues it.

  mind2web2 evaluate my_agent --shard 1/2      on one machine, and --shard 2/2 on another
  mind2web2 import results machine_1/eval_results machine_2/eval_results --into eval_results

If an answer has two different results, or judges or scripts differ, the command names the conflict and
resolves nothing. Exit status: 0, or 1 if there are conflicts.
"""


def add_command(commands: Subcommands) -> None:
    """Add ``import`` to ``mind2web2``."""
    parser = commands.add_parser(
        "import",
        help="take in answers, pages, judgments or results from elsewhere",
        description=DESCRIPTION,
    )
    kinds = parser.add_subparsers(title="kinds", required=True, metavar="KIND")
    _add_answers(kinds)
    _add_pages(kinds)
    _add_judgments(kinds)
    _add_results(kinds)


def _add_answers(kinds: Subcommands) -> None:
    parser = kinds.add_parser("answers", help="store answers from a file", description=ANSWERS)
    _add_agent(parser, "answers/")
    parser.add_argument("file", metavar="FILE", type=Path, help="a .jsonl or .csv file")
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="replace answers that the same tasks and runs already have",
    )
    add_task_list(parser)
    add_tasks_root(parser)
    parser.add_folder_options("answer_folder", "eval_scripts_root")
    parser.set_defaults(run="mind2web2.cli.benchmark:run_import")


def _add_pages(kinds: Subcommands) -> None:
    parser = kinds.add_parser("pages", help="store the pages of a file", description=PAGES)
    _add_agent(parser, "answers/")
    parser.add_argument(
        "file",
        metavar="FILE",
        type=Path,
        help="a .jsonl file, or one that a plugin reads",
    )
    parser.add_task_option(default="those whose answers cite the page")
    parser.add_folder_options("answer_folder", "cache_root")
    parser.set_defaults(run="mind2web2.cli.import_pages")


def _add_judgments(kinds: Subcommands) -> None:
    parser = kinds.add_parser("judgments", help="add the judge's replies", description=JUDGMENTS)
    _add_agent(parser, "eval_results/")
    parser.add_argument("file", metavar="FILE", type=Path, help="the .jsonl file to read")
    parser.add_folder_options("eval_results_root")
    parser.set_defaults(run="mind2web2.cli.results.judgments:run_import")


def _add_results(kinds: Subcommands) -> None:
    parser = kinds.add_parser(
        "results", help="bring results of several machines together", description=RESULTS
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


def _add_agent(parser: CommandParser, root: str) -> None:
    parser.add_argument("agent", metavar="AGENT", help=f"the agent, a folder under {root}")
