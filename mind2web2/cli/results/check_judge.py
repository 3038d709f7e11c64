"""``mind2web2 check-judge``: how often a judge is right on claims whose true verdicts are known."""

from __future__ import annotations

import argparse
import sys
from contextlib import nullcontext, redirect_stdout

from mind2web2.cli.evaluate import add_judge_parameters
from mind2web2.cli.options import (
    JUDGE_PROVIDERS,
    JUDGE_PROVIDERS_HELP,
    Subcommands,
    add_folder_options,
    positive_int,
)
from mind2web2.cli.settings_file import apply_settings_file

DESCRIPTION = """\
Find out how often a judge is right, before a run is paid for: a labelled set of claims and extractions about
invented pages is put to it, with the prompts, pages and votes of an evaluation. Half of the claims are false
and differ from a true one in one detail.

  mind2web2 check-judge --estimate
  mind2web2 check-judge --judge_model gpt-5-mini
  mind2web2 check-judge --judge_model gpt-5-mini --judge_model o4-mini     two judges, compared
  mind2web2 check-judge --sample 60                                        cheaper, less certain

Replies are stored, so that the same check is free the next time. Exit status: 0 every case has a reply,
1 some have none because the judge failed, 2 the check could not start.
"""


def add_command(commands: Subcommands) -> None:
    """Add ``check-judge`` to ``mind2web2``."""
    parser = commands.add_parser(
        "check-judge", help="find out how often a judge is right", description=DESCRIPTION
    )
    add = parser.add_argument
    add(
        "--votes",
        metavar="N",
        type=_odd,
        default=3,
        help="votes on a claim at most, an odd number; a vote ends as soon as it is settled (default: 3)",
    )
    add("--sample", metavar="N", type=positive_int, help="N cases only, of all categories")
    add(
        "--category",
        metavar="NAME",
        action="append",
        help="the cases of this category only; may be repeated; results name no such check",
    )
    add("--estimate", action="store_true", help="print requests, tokens and dollars, and ask nothing")
    add("--overwrite", action="store_true", help="ask everything again")
    add("--json", action="store_true", help="print the figures as JSON")
    group = parser.add_argument_group("judge")
    add = group.add_argument
    add("--llm_provider", choices=JUDGE_PROVIDERS, default="openai", help=JUDGE_PROVIDERS_HELP)
    add(
        "--judge_model",
        metavar="M",
        action="append",
        dest="judge_models",
        help="the model to check (default: o4-mini); repeat it to compare several",
    )
    add_judge_parameters(group)
    add(
        "--max_llm_requests",
        metavar="N",
        type=positive_int,
        help="at most N judge requests at once (default: 30)",
    )
    add_folder_options(parser, "eval_results_root")
    parser.set_defaults(run=run, judge_model=None, batch=False)


def _odd(text: str) -> int:
    votes = positive_int(text)
    if votes % 2 == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is even: a vote could end in a tie")
    return votes


def run(options: argparse.Namespace) -> int:
    """Check the judges, print the figures and return the exit status."""
    # For a judge pool, which serves one model.
    options.judge_model = options.judge_models[0] if options.judge_models else None
    with redirect_stdout(sys.stderr) if options.json else nullcontext():
        apply_settings_file(options)
    from mind2web2.cli.results.check_judge_run import run_check

    return run_check(options)
