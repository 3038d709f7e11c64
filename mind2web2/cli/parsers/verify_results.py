"""Parser of ``mind2web2 verify-results``."""

from __future__ import annotations

from mind2web2.cli.options import Subcommands
from mind2web2.utils.values import local_path

DESCRIPTION = """\
Check that an agent's results are correct and up to date. The command runs every script again from the stored
judgments, in a temporary folder, and prints the leaves that differ. It asks no judge and changes none of your
files.

  mind2web2 verify-results my_agent                   check all results
  mind2web2 verify-results my_agent another           check several agents
  mind2web2 verify-results my_agent --task_id TASK    check one task; may be repeated

  wrong      the result was changed or damaged, or its script and judgments give another one
  stale      the answer, script or pages behind the result, or this toolkit, have changed since
  missing    an answer has no score, or a file that its script needs is gone

The command notices accidents. It cannot notice a record that somebody forged as a whole, with its judgments.
Exit status: 0 everything is correct and up to date, 1 something is wrong, 2 nothing could be checked,
3 nothing is wrong, but something is stale or missing.
"""


def add_command(commands: Subcommands) -> None:
    """Add ``verify-results`` to ``mind2web2``."""
    parser = commands.add_parser(
        "verify-results",
        help="check that all scores are correct and up to date",
        description=DESCRIPTION,
    )
    parser.add_argument(
        "agents",
        metavar="AGENT",
        nargs="+",
        help="the agents, folders under eval_results/",
    )
    parser.add_task_option("all")
    judgments = {
        "help": "the file of judgments, a judgments.sqlite3 or an exported .jsonl file",
        "parse": local_path,
        "metavar": "FILE",
        "group": "",
    }
    parser.add_settings(["judgments", "eval_version"], changed={"judgments": judgments})
    parser.add_json_option("the findings")
    parser.add_folder_options()
    parser.set_defaults(run="mind2web2.cli.results.verify_results")
