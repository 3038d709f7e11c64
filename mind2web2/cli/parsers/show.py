"""Parser of ``mind2web2 show``."""

from __future__ import annotations

from mind2web2.cli.options import Subcommands

DESCRIPTION = """\
Show results as text. For one answer, that is its rubric tree with claims, the judge's reasons, the pages with
their stored files, and the extracted values.

  mind2web2 show my_agent                       list the agent's tasks and scores
  mind2web2 show my_agent TASK                  list the answers to a task
  mind2web2 show my_agent TASK answer_1         show why this answer has its score
  mind2web2 show my_agent TASK answer_1 --failed
                                                leave out what passed
"""


def add_command(commands: Subcommands) -> None:
    """Add ``show`` to ``mind2web2``."""
    parser = commands.add_parser(
        "show", help="show why an answer has its score", description=DESCRIPTION
    )
    parser.add_argument("agent", metavar="AGENT", help="the agent, a folder under eval_results/")
    parser.add_argument("task", metavar="TASK", nargs="?", help="one of the agent's tasks")
    parser.add_argument(
        "answer",
        metavar="ANSWER",
        nargs="?",
        help="one of the task's answers: answer_1, or just 1",
    )
    parser.add_argument(
        "--failed",
        action="store_true",
        help="with ANSWER, show only the parts of the tree that failed, were skipped or are "
        "partial",
    )
    parser.add_folder_options("eval_results_root", "cache_root")
    parser.set_defaults(run="mind2web2.cli.results.show")
