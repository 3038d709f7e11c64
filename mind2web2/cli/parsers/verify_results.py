"""Parser of ``mind2web2 verify-results``."""

from __future__ import annotations

from dataclasses import replace

from mind2web2.cli.options import (
    Subcommands,
    add_folder_options,
    add_json_option,
    add_settings,
    add_task_option,
)
from mind2web2.runs.settings import SETTINGS
from mind2web2.utils.values import local_path

DESCRIPTION = """\
Check an agent's results: run every script again in a temporary folder, from the stored judgments, and print
the leaves that differ. Answer, script, helper files, pages and questions are compared as well, and so are the
metrics. No judge is asked, and none of your files changes.

  mind2web2 verify-results my_agent                   all results
  mind2web2 verify-results my_agent another           those of several agents
  mind2web2 verify-results my_agent --task_id TASK    those of one task; may be repeated

  wrong      a result that was changed or damaged, or that its script and judgments do not give
  stale      what the result was made from has changed since, or may have changed
  missing    an answer without a score, or a file that is needed to run its script again

Checksums show accidents; they do not show a record that was forged as a whole, judgments included.
Exit status: 0 everything is correct and up to date, 1 something is wrong, 2 nothing could be checked,
3 nothing is wrong, but something is stale or missing.
"""


def add_command(commands: Subcommands) -> None:
    """Add ``verify-results`` to ``mind2web2``."""
    parser = commands.add_parser(
        "verify-results",
        help="check that every score is correct and up to date",
        description=DESCRIPTION,
    )
    parser.add_argument(
        "agents",
        metavar="AGENT",
        nargs="+",
        help="the agents, folders under eval_results/",
    )
    add_task_option(parser, "all, with the agent's own summary")
    judgments = replace(
        SETTINGS["judgments"],
        help="a judgments.sqlite3 or exported .jsonl file with the votes",
        parse=local_path,
        metavar="FILE",
        group="",
    )
    add_settings(parser, ["judgments", "eval_version"], changed=[judgments])
    add_json_option(parser, "the findings")
    add_folder_options(parser)
    parser.set_defaults(run="mind2web2.cli.results.verify_results")
