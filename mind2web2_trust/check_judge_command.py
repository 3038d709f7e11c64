"""Parser of ``mind2web2 check-judge``."""

from __future__ import annotations

import argparse
from pathlib import Path

from mind2web2.plugin import Subcommands

DESCRIPTION = """\
Find out how often a judge is right, before you pay for a run. The command asks it about a labelled set of
claims and extractions on invented pages, with the prompts and votes of an evaluation. Half of the claims are
false and differ from a true one in one detail.

  mind2web2 check-judge --judge_model gpt-5-mini       check one judge
  mind2web2 check-judge --judge_model gpt-5-mini --judge_model o4-mini
                                                       compare two judges
  mind2web2 check-judge --sample 60                    ask less: cheaper, and less certain

The whole set takes some 900 requests and 13 million tokens in, about $16 with o4-mini. Replies are stored,
so the same check is free the next time. Exit status: 0 every case has a reply, 1 some
have none because the judge failed, 2 the check could not start, 5 --fail_under applies.
"""


def add_command(commands: Subcommands) -> None:
    """Add ``check-judge`` to ``mind2web2``."""
    parser = commands.add_parser(
        "check-judge",
        help="find out how often a judge is right",
        description=DESCRIPTION,
    )
    add = parser.add_argument
    add(
        "--votes",
        metavar="N",
        type=_odd,
        default=3,
        help="at most N votes on a claim, an odd number; voting stops once the outcome is "
        "certain (default: 3)",
    )
    add(
        "--sample",
        metavar="N",
        type="positive_int",
        help="ask only N cases, from all categories",
    )
    add(
        "--category",
        metavar="NAME",
        action="append",
        help="ask only the cases of this category; may be repeated. This check is not recorded in "
        "results",
    )
    add(
        "--labels",
        metavar="FILE",
        type=Path,
        help="use these labels instead of the set: JSON lines with claim, label and text or image. "
        "This check is not recorded in results",
    )
    parser.add_settings(["overwrite"])
    add("--json", action="store_true", help="print the figures as JSON")
    add(
        "--fail_under",
        metavar="SHARE",
        type="share",
        help="exit with status 5 if a judge is right on less than this share of the cases, such "
        "as 0.9",
    )
    group = parser.add_argument_group("judge")
    judges = (
        "the model to check (default: o4-mini), or MODEL@http://SERVER/v1; repeat it to compare "
        "several"
    )
    parser.add_judge_settings("max_llm_requests", judges=judges, group=group)
    parser.add_settings(["eval_results_root"])
    parser.set_defaults(run="mind2web2_trust.check_judge")


def _odd(text: str) -> int:
    if not text.isdecimal() or int(text) % 2 == 0:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not an odd number, so a vote could end in a tie"
        )
    return int(text)
