"""``mind2web2 compare``: whether one agent is better than another, and how sure that is."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

from mind2web2.cli.options import Subcommands, add_folder_options, add_task_option, paths_of, share
from mind2web2.cli.results.metrics import check_record, chosen_tasks
from mind2web2.errors import UsageError
from mind2web2.utils.text import check_name

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
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    add_folder_options(parser, "eval_results_root")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the comparison and return the exit status: 4 where ``--fail_if_worse`` applies."""
    from mind2web2.cli.console import plain_console
    from mind2web2.cli.results.tables import print_ranking, print_verdict
    from mind2web2.runs.answers import shard_caution
    from mind2web2.runs.comparison import ranking
    from mind2web2.runs.judgings import Judging, leaf_flips

    names = [name.rstrip("/") for name in options.agents]
    if len(set(names)) < max(2, len(names)):
        raise UsageError("name at least two agents, each one once")
    task_ids = chosen_tasks(options)
    folders = {name: _folder(options, name) for name in names}
    agents = {name: Judging.read(folder.parent, folder.name) for name, folder in folders.items()}
    found = ranking(
        [(name, own.answers) for name, own in agents.items()], task_ids, allow_unfair=options.allow_unfair
    )
    shards = {name: shard_caution(folder) for name, folder in folders.items()}
    cautions = [f"{name}: {caution}" for name, caution in shards.items() if caution]
    found = replace(found, warnings=(*cautions, *found.warnings))
    first, *others = agents
    leaves = {
        name: {place: leaf for place, leaf in own.leaves.items() if place[0] in found.tasks}
        for name, own in agents.items()
    }
    flips = {other: leaf_flips(leaves[first], leaves[other]) for other in others}
    pairs = found.metrics["avg_score"].against(first)
    margin = options.fail_if_worse
    worse = [] if margin is None else [name for name, pair in pairs.items() if pair.is_worse_by(margin)]
    if options.json:
        content = found.summary() | {
            "flipped_leaves": flips,
            "worse": worse,
        }
        plain_console().print_json(json.dumps(content))
    else:
        print_ranking(plain_console(), found, flips)
        if margin is not None:
            print_verdict(plain_console(), found, worse, margin)
    return WORSE if worse else 0


def _folder(options: argparse.Namespace, name: str) -> Path:
    """Return the folder of results that an argument names."""
    if "/" in name:
        folder = Path(name)
    else:
        folder = paths_of(options).eval_results_root / check_name("agent", name)
    check_record(options, folder.parent, folder.name)
    return folder
