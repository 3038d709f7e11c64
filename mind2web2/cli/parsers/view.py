"""Parsers of ``mind2web2 view`` and ``report``."""

from __future__ import annotations

from pathlib import Path

from mind2web2.cli.options import (
    Subcommands,
    add_correction_roots,
)

VIEW = """\
Look at results in the browser: scores by task and run, rubric trees, and each claim beside the page that
the judge saw. A local web server shows them to this machine only, until you press Ctrl-C.

  mind2web2 view                      show all agents that have results
  mind2web2 view my_agent other       show these agents side by side
  mind2web2 view my_agent --audit NAME
                                      check the judge: label claims without seeing its verdicts
"""
REPORT = """\
Write the results into one HTML file, with the views of mind2web2 view. It opens from disk, without a server
or a network.

  mind2web2 report my_agent -o report.html                 one agent
  mind2web2 report my_agent other -o report.html           several agents, side by side
  mind2web2 report my_agent -o report.html --no_pages      without texts and pictures of cited pages
"""


def add_command(commands: Subcommands) -> None:
    """Add ``view`` and ``report`` to ``mind2web2``."""
    view = commands.add_parser("view", help="look at results in the browser", description=VIEW)
    view.add_argument(
        "agents",
        metavar="AGENT",
        nargs="*",
        help="the agents, folders under eval_results/ (default: all that have results), or a file "
        "that report or check has written",
    )
    view.add_argument(
        "--port", type="port_number", default=0, help="the port to listen at (default: a free one)"
    )
    view.add_argument(
        "--host",
        default="127.0.0.1",
        help="the address to listen at (default: %(default)s, which only this machine reaches)",
    )
    view.add_argument(
        "--no_browser", action="store_true", help="print the address, and do not open a browser"
    )
    report = commands.add_parser(
        "report", help="write results into one HTML file", description=REPORT
    )
    report.add_argument(
        "agents", metavar="AGENT", nargs="+", help="the agents, folders under eval_results/"
    )
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
        help="leave out the questions of tasks, as for gated benchmarks",
    )
    view.add_argument(
        "--audit",
        metavar="NAME",
        help="label the claims of whole random answers as NAME, without seeing the judge's "
        "verdicts",
    )
    for parser in (view, report):
        add_correction_roots(parser)
    report.add_argument(
        "--tasks",
        metavar="ID",
        nargs="+",
        default=[],
        help="only these tasks; the same as --task_id, repeated",
    )
    for parser in (view, report):
        parser.add_task_option(default="all that have results")
        parser.add_folder_options("eval_results_root", "answer_folder", "cache_root")
    view.set_defaults(run="mind2web2.cli.results.view:run_view")
    report.set_defaults(run="mind2web2.cli.results.view:run_report")
