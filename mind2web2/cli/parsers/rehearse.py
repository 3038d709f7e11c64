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
Try a task before agents answer it: no key, no pages, seconds (docs/rehearsals.md).

  mind2web2 rehearse TASK                  what its structure is worth, and its author's cases
  mind2web2 rehearse TASK --write_cases    write variants of rehearsals/TASK/perfect.md first
  mind2web2 rehearse --strict              all tasks; exit status 1 where there is a finding
  mind2web2 rehearse TASK --judge_model M --pages cache/my_agent    the same cases by a real judge

Findings are points for worthless answers, leaves that never matter, are never reached or always fall
together, missing items that cost nothing, and cases whose score is not the expected one.
"""
_WORLD_TIMEOUT_S = 10.0
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
        help="task ids (default: all with a script or rubric file)",
    )
    add(
        "--cases",
        metavar="DIR",
        type=Path,
        help="the cases, a folder a task (default: rehearsals/)",
    )
    add(
        "--write_cases",
        action="store_true",
        help="write the variants of perfect.md that are not there",
    )
    add(
        "--write_golden",
        action="store_true",
        help="keep the trees of the cases, to be compared from now on",
    )
    add(
        "--world_timeout",
        metavar="S",
        type=positive_seconds,
        default=_WORLD_TIMEOUT_S,
        help="seconds that a script has for one made-up answer (default: %(default)g)",
    )
    add(
        "--strict",
        # Not the setting of this name, by which a script's mistakes leave no score.
        dest="fails_on_findings",
        action="store_true",
        help="exit status 1 where there is a finding; without it, only where a task or case fails to run",
    )
    add(
        "--junit",
        metavar="FILE",
        type=Path,
        help="write the findings and cases as JUnit XML",
    )
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
