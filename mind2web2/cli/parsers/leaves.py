"""Parser of ``mind2web2 leaves``."""

from __future__ import annotations

from mind2web2.cli.options import Subcommands, add_folder_options, add_json_option, add_task_option

DESCRIPTION = """\
Show what each leaf of the rubrics did in all stored results: how often it passed, failed and was skipped, and
which leaves tell nothing about the answers.

  mind2web2 leaves                              all agents that have results
  mind2web2 leaves my_agent other_agent --task_id lake

  always true, always false   the same verdict wherever it was judged
  never reached               always skipped: what stands before it never passes
  dead                        another verdict would have changed no score
  twins                       the same verdict in every result: two leaves for one fact?
  r                           correlation with the share of the other leaves that passed; low or negative: it
                              measures something else than the rest
"""


def add_command(commands: Subcommands) -> None:
    """Add ``leaves`` to ``mind2web2``."""
    parser = commands.add_parser(
        "leaves",
        help="show which leaves of a rubric tell something",
        description=DESCRIPTION,
    )
    parser.add_argument(
        "agents",
        metavar="AGENT",
        nargs="*",
        help="the agents (default: all that have results)",
    )
    add_task_option(parser, "all that have results")
    parser.add_argument("--judge", metavar="MODEL", help="the results of this judge only")
    add_json_option(parser, "the numbers")
    add_folder_options(parser, "eval_results_root")
    parser.set_defaults(run="mind2web2.cli.results.leaves")
