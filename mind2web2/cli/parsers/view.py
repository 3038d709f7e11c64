"""Parsers of ``mind2web2 view`` and ``report``."""

from __future__ import annotations

from pathlib import Path

from mind2web2.cli.options import (
    Subcommands,
    add_correction_roots,
    add_folder_options,
    add_settings,
    add_task_option,
    port_number,
)

VIEW = """\
Look at results in the browser: scores by task and run, rubric trees, and each claim beside the page that
the judge saw. A local web server shows them, to this machine alone, until Ctrl-C.

  mind2web2 view                      all agents that have results
  mind2web2 view my_agent other       these agents, side by side
  mind2web2 view my_agent --audit NAME
                                      check the judge: label claims without seeing its verdicts
  mind2web2 view my_agent --audit NAME --second
                                      then look again at those where you and the judge differ
"""
REPORT = """\
Write the same views into one HTML file, which opens from disk without a server or a network.

  mind2web2 report my_agent -o report.html
  mind2web2 report my_agent -o report.html --no_pages      without texts and pictures of cited pages
"""


def add_command(commands: Subcommands) -> None:
    """Add ``view`` and ``report`` to ``mind2web2``."""
    view = commands.add_parser("view", help="look at results in the browser", description=VIEW)
    view.add_argument("agents", metavar="AGENT", nargs="*", help="default: all that have results")
    view.add_argument("--port", type=port_number, default=0, help="default: a free one")
    view.add_argument(
        "--host",
        default="127.0.0.1",
        help="the address to listen at (default: %(default)s, reachable from this machine only)",
    )
    view.add_argument(
        "--no_browser", action="store_true", help="print the address, and open nothing"
    )
    report = commands.add_parser(
        "report", help="write results into one HTML file", description=REPORT
    )
    report.add_argument("agents", metavar="AGENT", nargs="+")
    report.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=Path,
        required=True,
        help="the file to write",
    )
    report.add_argument(
        "--title",
        metavar="TEXT",
        help="the report's title (default: Mind2Web-2 results)",
    )
    report.add_argument(
        "--no_pages",
        action="store_true",
        help="leave out texts and pictures of cited pages",
    )
    report.add_argument(
        "--redact_tasks",
        action="store_true",
        help="leave out the texts of tasks (gated benchmarks)",
    )
    view.add_argument(
        "--audit",
        metavar="NAME",
        help="label the claims of whole answers, drawn at random, without the judge's verdicts, as NAME",
    )
    view.add_argument(
        "--second",
        action="store_true",
        help="label again, beside the judge's reasons, only the leaves at which NAME's blind label and the "
        "judge differ; kept apart from the blind labels",
    )
    view.add_argument(
        "--label_differences",
        metavar="NAME",
        help="in Compare, label the leaves on which two agents or judges differ, as NAME; these labels count "
        "for agreement alone",
    )
    for parser in (view, report):
        add_correction_roots(parser)
    pages = view.add_argument_group("pages that are captured again")
    pages.add_argument("--reviewer", metavar="NAME", help="who decides (default: your user name)")
    add_settings(view, ["cdp_url", "allow_private_network"], group=pages)
    report.add_argument(
        "--tasks",
        metavar="ID",
        nargs="+",
        default=[],
        help="only these tasks (as --task_id, repeated)",
    )
    for parser in (view, report):
        add_task_option(parser, default="all that have results")
        add_folder_options(parser, "eval_results_root", "answer_folder", "cache_root")
    view.set_defaults(run="mind2web2.cli.results.view:run_view")
    report.set_defaults(run="mind2web2.cli.results.view:run_report")
