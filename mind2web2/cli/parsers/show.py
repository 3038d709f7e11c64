"""Parser of ``mind2web2 show``."""

from __future__ import annotations

from mind2web2.cli.options import Subcommands, add_folder_options

DESCRIPTION = """\
Show results as text: which tasks an agent has scores for, the answers to one task, or one answer with its
rubric tree, claims, the judge's reasons, the pages with their stored files, and what was extracted.

  mind2web2 show my_agent                       tasks and scores
  mind2web2 show my_agent TASK                  the answers to a task
  mind2web2 show my_agent TASK answer_1         why this answer has its score
  mind2web2 show my_agent TASK answer_1 --failed
                                                only what failed, was skipped or is partial
"""


def add_command(commands: Subcommands) -> None:
    """Add ``show`` to ``mind2web2``."""
    parser = commands.add_parser(
        "show", help="show why an answer has its score", description=DESCRIPTION
    )
    parser.add_argument("agent", metavar="AGENT", help="the agent, a folder under eval_results/")
    parser.add_argument("task", metavar="TASK", nargs="?", help="one of its tasks")
    parser.add_argument(
        "answer",
        metavar="ANSWER",
        nargs="?",
        help="one of the answers: answer_1, or just 1",
    )
    parser.add_argument(
        "--failed",
        action="store_true",
        help="with ANSWER: leave out the parts of the tree that passed",
    )
    add_folder_options(parser, "eval_results_root", "cache_root")
    parser.set_defaults(run="mind2web2.cli.results.show")
