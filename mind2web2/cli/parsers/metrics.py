"""Parsers of ``mind2web2 metrics`` and ``compare``."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from mind2web2.cli.options import (
    ASKING,
    CommandParser,
    Subcommands,
    add_correction_roots,
)

METRICS = """\
Average an agent's results: partial completion, success rate, pass@k, answer length and time, with 95%
intervals. The numbers are also written to eval_results/AGENT/summary.json.

  mind2web2 metrics my_agent                          average over the tasks that have results
  mind2web2 metrics my_agent --task_list tasks.txt    average over these tasks; missing answers count as 0
  mind2web2 metrics my_agent --task_list tasks.csv    the same, and by domain if it has a column domain
  mind2web2 metrics my_agent --task_id TASK           average over this task; may be repeated
  mind2web2 metrics my_agent --by_tag                 also show how often the leaves of each tag pass
  mind2web2 metrics my_agent another                  show both; compare says whether they differ
  mind2web2 metrics my_agent --fail_under 0.5         for continuous integration: exit status 5 below 0.5

The intervals show how far the averages may vary with the choice of tasks. They do not include the judge's
errors. Warnings follow if judges, versions or scripts differ between answers, if runs are missing, if results
are out of date, or if verdicts rest on weak evidence: unavailable pages, pages that look wrong, refusals, or
votes that differ.

Exit status: 0, or 5 if --fail_under applies, or else 1 if an answer has no result.
"""


def add_command(commands: Subcommands) -> None:
    """Add ``metrics`` and ``compare`` to ``mind2web2``."""
    parser = commands.add_parser("metrics", help="average an agent's results", description=METRICS)
    parser.add_argument(
        "agents",
        metavar="AGENT",
        nargs="+",
        help="the agents, folders under eval_results/",
    )
    text = (
        "the tasks that count: one id a line, or CSV with a column task_id. Missing answers "
        "count as 0"
    )
    parser.add_settings(["task_list"], changed={"task_list": {"help": text}})
    parser.add_argument(
        "--barred",
        metavar="FILE",
        type=Path,
        help="a file of hosts, addresses and titles. Answers that rest on any of them are named, "
        "with the scores without them (default: the benchmark's own dataset, code, paper and leaderboard)",
    )
    parser.add_task_option("all that have results")
    parser.add_argument(
        "--by_tag",
        action="store_true",
        help="also show how often the leaves of each tag pass",
    )
    parser.add_argument(
        "--audit",
        action="store_true",
        help="also show how often the judge agrees with people's labels, which you make with: "
        "mind2web2 view AGENT --audit NAME",
    )
    parser.add_json_option("the numbers")
    parser.add_argument(
        "--fail_under",
        metavar="SCORE",
        type="share",
        help="exit with status 5 if an agent's partial completion is below SCORE. With "
        "--task_list, answers "
        "without a score count as 0; without it, they are left out, and the exit status is 1",
    )
    parser.add_settings(["eval_version"])
    add_correction_roots(parser)
    parser.add_folder_options()
    parser.set_defaults(run="mind2web2.cli.results.metrics")
    _add_compare(commands)


COMPARE = """\
Find out whether agents differ by more than chance, on the tasks that all of them have. The command shows the
paired differences of partial completion and success rate with 95% intervals and p-values, the agents that are
tied with the best, and the tasks with the largest differences. With --why it shows what moved the score:
other answers, changed pages, changed scripts or another judge, each with its share, and the leaves behind
them.

  mind2web2 compare old_agent new_agent                              compare two agents
  mind2web2 compare agent_a agent_b agent_c                          compare each further one with the first
  mind2web2 compare main/eval_results/bot branch/eval_results/bot    compare two folders of results
  mind2web2 compare old_agent new_agent --fail_if_worse 0.02         fail in continuous integration
  mind2web2 compare old_agent new_agent --corrected                  correct for the judge's errors
  mind2web2 compare old_agent new_agent --why                        split the difference by cause
  mind2web2 compare my_agent --why --with eval_version=new_scripts   what would another script version change?

Exit status: 0, or 4 if --fail_if_worse applies: a further agent is shown to be worse than the first. With
--why: 0, or 1 if a share is not known.
"""


def _add_compare(commands: Subcommands) -> None:
    parser = commands.add_parser("compare", help="test whether agents differ", description=COMPARE)
    parser.add_argument(
        "agents",
        metavar="AGENT",
        nargs="+",
        help="at least two agents under eval_results/, or folders of results such as "
        "other/eval_results/bot; each further one is compared with the first. With --why, two, or "
        "one and --with",
    )
    text = (
        "the tasks that count: one id a line, or CSV with a column task_id. Missing answers "
        "count as 0"
    )
    parser.add_settings(["task_list"], changed={"task_list": {"help": text}})
    parser.add_task_option("all for which every agent has results")
    parser.add_argument(
        "--fail_if_worse",
        metavar="MARGIN",
        nargs="?",
        type="share",
        const=0.0,
        help="exit with status 4 if the whole 95%% interval shows a further agent's partial "
        "completion below "
        "that of the first by more than MARGIN (default: 0)",
    )
    parser.add_argument(
        "--allow_unfair",
        action="store_true",
        help="compare even if the judge models, or the scripts of all tasks, are different",
    )
    parser.add_argument(
        "--corrected",
        action="store_true",
        help="also compare the scores corrected by people's labels, or else by a strong judge's "
        "sample, and "
        "the judge's error rates on each agent",
    )
    parser.add_json_option()
    add_correction_roots(parser)
    parser.add_folder_options()
    parser.set_defaults(
        run="mind2web2.cli.results.compare", why=False, ask=False, estimate=False, changes=[]
    )
    # The rest is another package's, which may not be installed.
    if find_spec("mind2web2_trust") is not None:
        _add_why(parser)


def _add_why(parser: CommandParser) -> None:
    parser.add_argument(
        "--why",
        action="store_true",
        help="show what moved the score: scripts are run again with parts of either side, from "
        "stored replies, and the difference is split into shares (Shapley's rule)",
    )
    parser.add_argument(
        "--with",
        dest="changes",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="with --why: a setting of the second side, such as eval_version=v2, "
        "judge_model=gpt-5-mini, cache_root=cache_new or eval_results_root=results_new; may be "
        "repeated",
    )
    parser.add_argument(
        "--ask",
        action="store_true",
        help="with --why: ask the judges for the replies that are missing; they are stored with "
        "the second side's",
    )
    parser.add_argument(
        "--estimate",
        action="store_true",
        help="with --ask: print how many replies are missing and what they would cost, and ask "
        "nothing",
    )
    parser.add_settings(["max_cost", "max_llm_requests"], changed=ASKING)
