"""Parser of ``mind2web2 rejudge``."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from mind2web2.cli.options import (
    Subcommands,
    add_json_option,
    add_settings,
    positive_int,
    share,
)
from mind2web2.runs.settings import (
    FOLDER_NAMES,
    SETTINGS,
    RunSettings,
    judging_settings,
)

DESCRIPTION = """\
Judge the answers of agents again, as often as --times says, each time with fresh judgments, and show how far
scores and leaves vary. The results that count stay as they are: judgments and results go to
rejudged/JUDGE/1/, /2/ and so on. Pages come from the cache alone, so that nothing but the judge varies.

  mind2web2 rejudge my_agent                  three times by the judge of its results: how far it varies
  mind2web2 rejudge my_agent --estimate       print first what one time will cost
  mind2web2 rejudge my_agent other --judge_model gpt-5-mini
                                              once by another judge: agreement, and the ranking of the agents
  mind2web2 rejudge my_agent --judge_model STRONG --sample 60
                                              60 random answers by a better judge: the corrected score

The same command continues where it was stopped, and reuses what was judged before. Exit status: 0, or 1 where
an answer has no result.
"""


def add_command(commands: Subcommands) -> None:
    """Add ``rejudge`` to ``mind2web2``."""
    parser = commands.add_parser(
        "rejudge",
        help="judge again, to see how far the judge varies",
        description=DESCRIPTION,
    )
    parser.add_argument("agents", metavar="AGENT", nargs="+", help="agents that have results")
    _add_options(parser)
    parser.set_defaults(run="mind2web2.cli.results.rejudge")


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--times",
        metavar="N",
        type=positive_int,
        help="how often (default: 3 by the judge of the results, once by another one)",
    )
    parser.add_argument(
        "--rejudged_root",
        metavar="DIR",
        type=Path,
        default=Path("rejudged"),
        help="where judgments and results go (default: rejudged/)",
    )
    add_json_option(parser)
    _add_sample_options(parser)
    names = ["eval_version", "task_ids", *FOLDER_NAMES, *judging_settings(), "quiet"]
    tasks = replace(SETTINGS["task_ids"], default_text="all that have results")
    add_settings(
        parser,
        names,
        base=RunSettings(no_capture=True, no_barred=True),
        changed=[tasks],
    )


def _add_sample_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--sample``, ``--target`` and ``--seed``."""
    parser.add_argument(
        "--sample",
        metavar="N",
        type=_size,
        help="judge only N random answers, tasks in turn, by the judge named with --judge_model, and correct "
        "the score of the results by them; auto judges until the interval reaches no farther than --target",
    )
    parser.add_argument(
        "--target",
        metavar="REACH",
        type=share,
        help="with --sample auto, how far the 95%% interval for these tasks may reach to either side "
        "(default: 0.02)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        help="of the sample; another one draws another sample (default: 0)",
    )


def _size(text: str) -> int | str:
    if text == "auto":
        return "auto"
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number of answers nor auto")
    return int(text)
