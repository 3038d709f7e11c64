"""Parsers of ``mind2web2 metrics`` and ``compare``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mind2web2.cli.options import (
    Subcommands,
    add_correction_roots,
    add_folder_options,
    add_json_option,
    add_settings,
    add_task_option,
    share,
)
from mind2web2.runs.settings import SETTINGS

METRICS = """\
Average an agent's results into partial completion, success rate, pass@k, answer length and time, with 95%
intervals; the numbers are also written to eval_results/AGENT/summary.json.

  mind2web2 metrics my_agent                          over the tasks that have results
  mind2web2 metrics my_agent --task_list tasks.txt    over these tasks: what is missing counts as 0
  mind2web2 metrics my_agent --task_list tasks.csv    likewise, and by domain where it has that column
  mind2web2 metrics my_agent --task_id TASK           over this task; may be repeated
  mind2web2 metrics my_agent --forget TASK            delete the stored results of a task that was removed
  mind2web2 metrics my_agent --by_tag                 also how often the leaves of each tag pass
  mind2web2 metrics my_agent another --leaves         also the ten leaves of the rubrics to look at first
  mind2web2 metrics my_agent another                  both, and the difference over the tasks they share
  mind2web2 metrics my_agent --fail_under 0.5 --junit junit.xml
                                                      for continuous integration

The intervals show how the averages may vary with the choice of tasks; they do not include the judge's errors.
Below them stand reasons for caution: judges, versions or scripts that differ between answers, missing runs,
results that are out of date, and verdicts that rest on unavailable pages, on pages that look wrong, on
refusals, or on votes that differ.

Exit status: 0, or 5 where --fail_under applies, else 1 where an answer has no result.
"""


def add_command(commands: Subcommands) -> None:
    """Add ``metrics`` and ``compare`` to ``mind2web2``."""
    parser = commands.add_parser("metrics", help="average an agent's results", description=METRICS)
    parser.add_argument(
        "agents",
        metavar="AGENT",
        nargs="+",
        help="the agent, a folder under eval_results/; further ones are compared with the first",
    )
    text = "the tasks there should be: an id a line, or CSV with a column task_id"
    add_settings(parser, ["task_list"], changed=[replace(SETTINGS["task_list"], help=text)])
    add_task_option(parser, "all that have results")
    parser.add_argument(
        "--forget",
        metavar="TASK",
        action="append",
        default=[],
        help="delete eval_results/AGENT/TASK with all its results, for a task that has no answers any more; "
        "may be repeated",
    )
    parser.add_argument(
        "--by_tag",
        action="store_true",
        help="also how often the leaves of each tag pass",
    )
    parser.add_argument(
        "--leaves",
        action="store_true",
        help="also the leaves to look at first, such as those that pass where the rest fails; with --task_id "
        "all leaves, with the share passed by each agent",
    )
    parser.add_argument(
        "--bound_false_passes",
        action="store_true",
        help="also partial completion if the judge passes as many unsupported claims as it passed on changed "
        "pages, at most; needs figures of changed pages",
    )
    add_json_option(parser, "the numbers")
    parser.add_argument(
        "--fail_under",
        metavar="SCORE",
        type=share,
        help="exit with status 5 if the partial completion of an agent, as shown, is below SCORE; answers "
        "without a score count as 0 with --task_list, and are left out otherwise (exit status 1)",
    )
    parser.add_argument(
        "--junit",
        metavar="FILE",
        type=Path,
        help="also write JUnit XML: a test case for each answer, a failure below score 1, an error without a "
        "score",
    )
    add_settings(parser, ["eval_version"])
    add_correction_roots(parser)
    add_folder_options(parser)
    parser.set_defaults(run="mind2web2.cli.results.metrics")
    _add_compare(commands)


COMPARE = """\
Tell whether agents differ by more than chance: the paired difference of partial completion and success rate
over the tasks that all have, with 95% intervals and p-values, the agents that are tied with the best one, the
tasks with the largest differences, and the leaves whose verdicts differ, by cause.

  mind2web2 compare old_agent new_agent
  mind2web2 compare agent_a agent_b agent_c
  mind2web2 compare main/eval_results/bot branch/eval_results/bot    two runs of one agent, by their folders
  mind2web2 compare old_agent new_agent --fail_if_worse 0.02         for continuous integration
  mind2web2 compare old_agent new_agent --corrected                  without the judge's errors

Exit status: 0, or with --fail_if_worse 4 where a further agent is shown to be worse than the first.
"""


def _add_compare(commands: Subcommands) -> None:
    parser = commands.add_parser("compare", help="test whether agents differ", description=COMPARE)
    parser.add_argument(
        "agents",
        metavar="AGENT",
        nargs="+",
        help="at least two agents under eval_results/, or folders of results such as other/eval_results/bot; "
        "the first is the one that others are compared with",
    )
    text = "ids of the tasks that count, one a line: missing is 0"
    add_settings(parser, ["task_list"], changed=[replace(SETTINGS["task_list"], help=text)])
    add_task_option(parser, "all that have results of every agent")
    parser.add_argument(
        "--fail_if_worse",
        metavar="MARGIN",
        nargs="?",
        type=share,
        const=0.0,
        help="exit with status 4 if partial completion of a further agent is below that of the first by more "
        "than MARGIN (default 0), as the whole 95%% interval shows",
    )
    parser.add_argument(
        "--allow_unfair",
        action="store_true",
        help="compare although judge models, or the scripts of all tasks, are different",
    )
    parser.add_argument(
        "--corrected",
        action="store_true",
        help="also compare the scores corrected by labels of people, or else by a strong judge on a sample, "
        "and the judge's error rates by agent",
    )
    add_json_option(parser)
    add_correction_roots(parser)
    add_folder_options(parser, "eval_results_root")
    parser.set_defaults(run="mind2web2.cli.results.compare")
