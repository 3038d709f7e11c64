"""``mind2web2 compare``: whether one agent is better than another, and how sure that is."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mind2web2.cli.options import Subcommands, add_folder_options, add_task_option, paths_of

if TYPE_CHECKING:
    from mind2web2.runs.analysis.leaf_flips import JudgedLeaf, Leaves
    from mind2web2.runs.score_matrix import ScoredAnswer

DESCRIPTION = """\
Tell whether agents differ by more than chance: the paired difference of partial completion and success rate
over the tasks that all have, with 95% intervals and p-values, the agents that are tied with the best one, the
tasks with the largest differences, and the leaves whose verdicts differ, by cause.

  mind2web2 compare old_agent new_agent
  mind2web2 compare agent_a agent_b agent_c
  mind2web2 compare main/eval_results/bot branch/eval_results/bot    two runs of one agent, by their folders
  mind2web2 compare old_agent new_agent --fail_if_worse 0.02         for continuous integration

Exit status: 0, or with --fail_if_worse 4 where a further agent is shown to be worse than the first.
"""
WORSE = 4


def add_command(commands: Subcommands) -> None:
    """Add ``compare`` to ``mind2web2``."""
    parser = commands.add_parser("compare", help="test whether agents differ", description=DESCRIPTION)
    parser.add_argument(
        "agents",
        metavar="AGENT",
        nargs="+",
        help="at least two agents under eval_results/, or folders of results such as other/eval_results/bot; "
        "the first is the one that others are compared with",
    )
    parser.add_argument(
        "--task_list", metavar="FILE", type=Path, help="ids of the tasks that count, one a line: missing is 0"
    )
    add_task_option(parser, "all that have results of every agent")
    parser.add_argument(
        "--fail_if_worse",
        metavar="MARGIN",
        nargs="?",
        type=_margin,
        const=0.0,
        help="exit with status 4 if partial completion of a further agent is below that of the first by more "
        "than MARGIN (default 0), as the whole 95%% interval shows",
    )
    parser.add_argument(
        "--allow_unfair",
        action="store_true",
        help="compare although judge models, or the scripts of all tasks, are different",
    )
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    add_folder_options(parser, "eval_results_root")
    parser.set_defaults(run=run)


def _margin(text: str) -> float:
    margin = float(text)
    if not 0 <= margin <= 1:
        raise argparse.ArgumentTypeError("not a difference of scores from 0 to 1")
    return margin


class _Agent(NamedTuple):
    name: str
    answers: list[ScoredAnswer]
    leaves: Leaves
    caution: str | None


def run(options: argparse.Namespace) -> int:
    """Print the comparison and return the exit status: 4 where ``--fail_if_worse`` applies."""
    from mind2web2.cli.console import plain_console
    from mind2web2.cli.metrics import chosen_tasks
    from mind2web2.cli.results.tables import print_ranking, print_verdict
    from mind2web2.errors import UsageError
    from mind2web2.runs.analysis.leaf_flips import leaf_flips
    from mind2web2.runs.analysis.ranking import ranking

    if len(set(options.agents)) < max(2, len(options.agents)):
        raise UsageError("name at least two agents, each one once")
    task_ids = chosen_tasks(options)
    first, *others = agents = [_loaded(options, name) for name in options.agents]
    found = ranking(
        [(agent.name, agent.answers) for agent in agents], task_ids, allow_unfair=options.allow_unfair
    )
    cautions = [f"{agent.name}: {agent.caution}" for agent in agents if agent.caution]
    found = replace(found, warnings=(*cautions, *found.warnings))
    tasks = set(found.tasks)
    own = {agent.name: {at: leaf for at, leaf in agent.leaves.items() if at[0] in tasks} for agent in agents}
    flips = {other.name: leaf_flips(own[first.name], own[other.name]) for other in others}
    pairs = found.metrics["avg_score"].against(first.name)
    margin = options.fail_if_worse
    worse = [] if margin is None else [name for name, pair in pairs.items() if pair.is_worse_by(margin)]
    if options.json:
        content = found.summary() | {
            "flipped_leaves": {name: own_flips.summary() for name, own_flips in flips.items()},
            "worse": worse,
        }
        plain_console().print_json(json.dumps(content))
    else:
        print_ranking(plain_console(), found, flips)
        if margin is not None:
            print_verdict(plain_console(), found, worse, margin)
    return WORSE if worse else 0


def _loaded(options: argparse.Namespace, name: str) -> _Agent:
    from mind2web2.cli.metrics import has_record, no_results
    from mind2web2.runs.sharding.shards import shard_caution
    from mind2web2.utils.text import check_name

    if "/" in name.rstrip("/"):
        root, agent_name = Path(name).parent, Path(name).name
    else:
        root, agent_name = paths_of(options).eval_results_root, check_name("agent", name.rstrip("/"))
    if not has_record(root, agent_name):
        raise no_results(options, root, agent_name)
    answers, leaves = answers_and_leaves(root, agent_name)
    return _Agent(name.rstrip("/"), answers, leaves, shard_caution(root / agent_name))


def answers_and_leaves(eval_results_root: Path, agent_name: str) -> tuple[list[ScoredAnswer], Leaves]:
    """Return an agent's answers, and the leaves of those that have a score."""
    from mind2web2.runs.analysis.leaf_flips import judged_leaves
    from mind2web2.runs.results import latest_results
    from mind2web2.runs.summaries import agent_answers

    answers = agent_answers(eval_results_root, agent_name)
    scored = {(answer.task_id, answer.answer_name) for answer in answers if answer.score is not None}
    leaves: dict[tuple[str, str, str], JudgedLeaf] = {}
    for task_id, answer_name, result in latest_results(eval_results_root, agent_name):
        if (task_id, answer_name) in scored:
            leaves |= judged_leaves(task_id, answer_name, result.content)
    return answers, leaves
