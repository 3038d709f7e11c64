"""Parser of ``mind2web2 audit``."""

from __future__ import annotations

from pathlib import Path

from mind2web2.cli.options import Subcommands, add_audits_root, add_folder_options, add_json_option

DESCRIPTION = """\
Compare the judge with people's labels: how often they agree, which errors the judge makes, and the score that
the labels correct. You make labels with: mind2web2 view AGENT --audit NAME

  mind2web2 audit my_agent                            print the figures
  mind2web2 audit my_agent --export labels.jsonl      write labels for: mind2web2 check-judge --labels FILE
"""


def add_command(commands: Subcommands) -> None:
    """Add ``audit`` to ``mind2web2``."""
    parser = commands.add_parser(
        "audit", help="compare the judge with people's labels", description=DESCRIPTION
    )
    parser.add_argument("agent", metavar="AGENT", help="the agent, a folder under eval_results/")
    add_json_option(parser)
    add_audits_root(parser)
    parser.add_argument(
        "--export",
        metavar="FILE",
        type=Path,
        help="write the labels of whole answers, with claims, answers and pages, as JSON lines "
        "to check other judges with",
    )
    add_folder_options(parser, "eval_results_root", "answer_folder", "cache_root")
    parser.set_defaults(run="mind2web2.cli.results.audit")
