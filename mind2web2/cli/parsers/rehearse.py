"""Parser of ``mind2web2 rehearse``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mind2web2.cli.options import (
    SCORING_DEFAULTS,
    Subcommands,
    add_settings,
    asking_providers,
    positive_seconds,
)
from mind2web2.runs.settings import JUDGE_SETTINGS, SETTINGS

DESCRIPTION = """\
Find out whether a rubric gives a right answer 1 and a wrong one 0: no key, no pages, seconds
(docs/rehearsals.md). The verdict is sound, faulty, or cannot tell.

  mind2web2 rehearse                       a table of all tasks, with what an answer costs
  mind2web2 rehearse TASK                  the verdict, and up to five causes; -v for all
  mind2web2 rehearse TASK --write_cases    write variants of rehearsals/TASK/perfect.md
  mind2web2 rehearse --strict              exit status 1 unless all tasks are sound
  mind2web2 rehearse --no_run FILE         read the text only, for editors and CI
  mind2web2 rehearse TASK --judge_model M --pages cache/my_agent    the cases by a real judge
"""
_CHANGED = (
    asking_providers(),
    replace(
        SETTINGS["judge_model"],
        help="judge the cases by this model",
        default_text="by policy",
    ),
    replace(SETTINGS["max_cost"], help="stop asking at this cost, for good"),
)


def add_command(commands: Subcommands) -> None:
    """Add ``rehearse`` to ``mind2web2``."""
    parser = commands.add_parser(
        "rehearse", help="try tasks without a judge", description=DESCRIPTION
    )
    add = parser.add_argument
    add(
        "tasks",
        metavar="TASK",
        nargs="*",
        help="task ids, or files of tasks (default: all, as a table)",
    )
    add(
        "--cases",
        metavar="DIR",
        type=Path,
        help="the cases, a folder a task (default: rehearsals/)",
    )
    add("-v", "--verbose", action="store_true", help="show all findings and cases")
    add("--no_run", action="store_true", help="read scripts and rubric files, and run none")
    add(
        "--write_cases",
        action="store_true",
        help="write the variants of perfect.md that are not there, once it scores 1",
    )
    add(
        "--timeout",
        metavar="S",
        type=positive_seconds,
        default=10.0,
        help="seconds that a script has for one made-up answer (default: %(default)g)",
    )
    add(
        "--strict",
        # The setting named ``strict`` is another one: it withholds scores for a script's mistakes.
        dest="fails_unless_sound",
        action="store_true",
        help="exit status 1 unless each task is sound; without it, only where one fails to run",
    )
    add("--junit", metavar="FILE", type=Path, help="write the findings as JUnit XML")
    add("--json", action="store_true", help="print everything as JSON")
    judge = parser.add_argument_group("a real judge, for the cases")
    judge.add_argument(
        "--pages",
        metavar="DIR",
        type=Path,
        help="the cached pages, a folder a task: cache/AGENT",
    )
    judge.add_argument(
        "--missing_pages",
        choices=("no_score", "unavailable", "capture"),
        default="no_score",
        help="a page that is not there: no score (default), unavailable (claims on it fail), or capture it",
    )
    add_settings(parser, ["allow_private_network"], group=judge)
    settings = ("eval_scripts_root", "eval_version", *JUDGE_SETTINGS, "max_cost")
    add_settings(parser, settings, base=SCORING_DEFAULTS, changed=_CHANGED)
    parser.set_defaults(run="mind2web2.cli.rehearse")
