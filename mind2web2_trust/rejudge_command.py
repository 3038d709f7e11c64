"""Parser of ``mind2web2 rejudge``."""

from __future__ import annotations

from pathlib import Path

from mind2web2.plugin import Subcommands

DESCRIPTION = """\
Judge the answers again with fresh judgments, and show how far scores and leaves vary. The results that count
stay as they are: the new ones go to rejudged/JUDGE/1/, /2/ and so on. Pages come only from the cache, so that
nothing varies but the judge.

  mind2web2 rejudge my_agent                  judge three times with the same judge: how far does it vary?
  mind2web2 rejudge my_agent --estimate       print what one round will cost
  mind2web2 rejudge my_agent --judge_model gpt-5-mini
                                              judge once with another judge: do both agree?
  mind2web2 rejudge my_agent --judge_model STRONG --sample 60
                                              have a better judge correct the score by 60 random answers

If the command was stopped, the same command continues. Exit status: 0, or 1 if an answer has no result.
"""


def add_command(commands: Subcommands) -> None:
    """Add ``rejudge`` to ``mind2web2``."""
    parser = commands.add_parser(
        "rejudge",
        help="judge again, to see how far the judge varies",
        description=DESCRIPTION,
    )
    parser.add_argument("agent", metavar="AGENT", help="an agent that has results")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument(
        "--times",
        metavar="N",
        type="positive_int",
        help="how often to judge (default: 3 with the judge of the results, 1 with another one)",
    )
    kinds.add_argument(
        "--sample",
        metavar="N",
        type="positive_int",
        help="judge only N random answers, tasks in turn, with the judge of --judge_model, and "
        "correct the score by them; a larger N adds to the same sample",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        help="the seed of the sample; another seed draws another sample (default: 0)",
    )
    parser.add_argument(
        "--rejudged_root",
        metavar="DIR",
        type=Path,
        default=Path("rejudged"),
        help="the new judgments and results (default: rejudged/)",
    )
    parser.add_json_option()
    parser.add_settings(["eval_version"])
    parser.add_task_option("all that have results")
    parser.add_folder_options()
    judge_model = {"default_text": "the judge of the results"}
    parser.add_judging_settings({"judge_model": judge_model})
    parser.set_defaults(run="mind2web2_trust.rejudge")
