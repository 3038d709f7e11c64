"""``mind2web2 check``: do the cited pages say what a report says?"""

from __future__ import annotations

from pathlib import Path

from mind2web2.plugin import Subcommands

_DESCRIPTION = """\
Find out whether a report is true: find its statements and the sources that each cites, open the pages, and
judge each claim by each page. You need no project. Results go to checks/NAME/; run the
command again to continue. If a report has changed, check asks only about what changed.

  mind2web2 check REPORT                      judge with OpenAI's o4-mini (OPENAI_API_KEY)
  mind2web2 check REPORT -o report.html       show the report with each statement marked
  mind2web2 check REPORT --estimate           print what that will cost, and ask nothing
  mind2web2 check REPORT --fail_under precision=.9
                                              exit with status 1 if fewer claims are supported
  mind2web2 check REPORT --no_judge           open the pages and print hints; no key is needed
  mind2web2 check REPORT --list               print statements, sources and marks as JSON, and stop

REPORT is markdown, HTML, DOCX, PDF, or - for standard input.
"""
# These belong to agents and tasks, which a check has not.
_NOT_OF_CHECKS = frozenset(
    (
        "agent_name",
        "task_ids",
        "task_list",
        "self_debug",
        "answer_folder",
        "eval_scripts_root",
        "eval_version",
        "eval_results_root",
        "cache_root",
        "shard",
        "dump_cache",
        "max_concurrent_tasks",
        "max_concurrent_answers",
        "engine",
    )
)


def add_command(commands: Subcommands) -> None:
    """Add ``check`` to ``mind2web2``."""
    parser = commands.add_parser(
        "check",
        help="check whether the cited pages say what a report says",
        description=_DESCRIPTION,
    )
    parser.add_argument(
        "reports", metavar="REPORT", nargs="+", help="a file, or - for standard input"
    )
    written = parser.add_mutually_exclusive_group()
    written.add_argument(
        "--list",
        action="store_true",
        help="print the statements with their sources as JSON, and stop",
    )
    parser.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="with --list: also print the evidence for and against each form of marks",
    )
    parser.add_argument(
        "--no_judge",
        action="store_true",
        help="ask no judge: open the pages and print hints, never verdicts; the default without a "
        "key",
    )
    parser.add_argument(
        "--archive",
        action="store_true",
        help="read the Internet Archive's copy of each page that is unavailable or walled",
    )
    parser.add_argument(
        "--archive_url",
        metavar="URL",
        default="https://archive.org",
        help="where --archive and --as_of look for copies: an archive with the Internet Archive's "
        "availability API (default: %(default)s)",
    )
    parser.add_argument(
        "--open_copies",
        metavar="EMAIL",
        default="",
        help="ask Unpaywall for an open copy of each paper that is unavailable or walled; its "
        "terms ask for "
        "your e-mail address",
    )
    parser.add_argument(
        "--checks",
        metavar="DIR",
        type=Path,
        default=Path("checks"),
        help="where results are kept (default: %(default)s)",
    )
    written.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=Path,
        action="append",
        default=[],
        help="also write what was found: .html, .json or .xml (JUnit); may be repeated",
    )
    parser.add_argument(
        "--fail_under",
        metavar="FIGURE=SHARE",
        action="append",
        default=[],
        help="exit with status 1 if a figure is lower, such as precision=.9; may be repeated",
    )
    parser.add_run_settings(leave_out=_NOT_OF_CHECKS)
    parser.set_defaults(run="mind2web2_check.checking")
