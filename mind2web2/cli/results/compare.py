"""``mind2web2 compare``: whether one agent is better than another, and how sure that is."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mind2web2.cli.metric_tables import counted, line, number
from mind2web2.cli.options import Subcommands, add_folder_options, add_task_option, paths_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from mind2web2.runs.analysis.leaf_flips import JudgedLeaf, LeafFlips, Leaves
    from mind2web2.runs.analysis.ranking import PairResult, Power, Ranking
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
_LABELS = {"avg_score": "partial completion", "success_rate": "success rate"}


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


def run(options: argparse.Namespace) -> int:
    """Print the comparison and return the exit status: 4 where ``--fail_if_worse`` applies."""
    from mind2web2.cli.console import plain_console
    from mind2web2.cli.metrics import chosen_tasks
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
        _print(plain_console(), found, flips)
        if margin is not None:
            _print_verdict(plain_console(), found, worse, margin)
    return WORSE if worse else 0


def _loaded(options: argparse.Namespace, name: str) -> _Agent:
    from mind2web2.cli.metrics import has_record, no_results
    from mind2web2.runs.analysis.leaf_flips import judged_leaves
    from mind2web2.runs.results import latest_results
    from mind2web2.runs.summaries import agent_answers
    from mind2web2.utils.names import check_name

    if "/" in name.rstrip("/"):
        root, agent_name = Path(name).parent, Path(name).name
    else:
        root, agent_name = paths_of(options).eval_results_root, check_name("agent", name.rstrip("/"))
    if not has_record(root, agent_name):
        raise no_results(options, root, agent_name)
    answers = agent_answers(root, agent_name)
    scored = {(answer.task_id, answer.answer_name) for answer in answers if answer.score is not None}
    leaves: dict[tuple[str, str, str], JudgedLeaf] = {}
    for task_id, answer_name, result in latest_results(root, agent_name):
        if (task_id, answer_name) in scored:
            leaves |= judged_leaves(task_id, answer_name, result.content)
    return _Agent(name.rstrip("/"), answers, leaves)


def _print(console: Console, found: Ranking, flips: Mapping[str, LeafFlips]) -> None:
    first, *others = found.agents
    for name, label in _LABELS.items():
        _print_metric(console, found, name, label)
    line(
        console,
        "Differences, intervals and p-values: sign flips of the differences of tasks, each averaged over its "
        f"runs{'; p-values corrected for several pairs by Holm' if len(others) > 1 else ''}.",
    )
    pairs = found.metrics["avg_score"].against(first)
    for other in others:
        pair = pairs[other]
        _print_power(console, pair, len(found.tasks))
        largest = ", ".join(f"{task} {value:+.2f}" for task, value in pair.largest())
        if largest:
            line(console, f"Largest differences of {other} from {first}: {largest}")
        _print_flips(console, first, other, flips[other])
    for warning in found.warnings:
        line(console, f"Warning: {warning}")


def _print_metric(console: Console, found: Ranking, name: str, label: str) -> None:
    from rich.table import Table

    first = found.agents[0]
    metric = found.metrics[name]
    pairs = metric.against(first)
    table = Table(title=f"{label}, over the same {counted(len(found.tasks), 'task')}", min_width=46)
    table.add_column("agent", overflow="fold")
    for heading in ("mean", "difference", "95% interval", "p"):
        table.add_column(heading, justify="right", no_wrap=True)
    for agent, value in metric.values.items():
        pair = pairs.get(agent)
        mark = " *" if agent in metric.tied and len(metric.tied) > 1 else ""
        cells = ("first", "", "") if pair is None else _cells(pair)
        table.add_row(f"{agent}{mark}", number(round(value, 4)), *cells)
    console.print(table)
    for pair in pairs.values():
        reason = pair.found.sampled.reason
        if reason is not None:
            line(console, f"No interval for {pair.second}: {reason}.")
    if len(metric.tied) > 1:
        line(console, f"* not told apart from the best at the 5% level: {', '.join(metric.tied)}.")
    else:
        line(console, f"The best is {metric.tied[0]}; no other is tied with it at the 5% level.")


def _cells(pair: PairResult) -> Sequence[str]:
    value, interval = pair.found.value, pair.found.sampled.interval
    shown = "-" if interval is None else f"{interval.low:+.4f} to {interval.high:+.4f}"
    return "-" if value is None else f"{value:+.4f}", shown, f"{pair.holm_p:.4f}"


def _print_power(console: Console, pair: PairResult, tasks: int) -> None:
    power = pair.power
    if power is None:
        return
    if power.detectable is not None:
        line(
            console,
            f"Power of {pair.second} against {pair.first}: {counted(tasks, 'task')} show a difference of "
            f"{power.detectable:.3f} in partial completion four times out of five. "
            f"{_for_observed(power, tasks)}".rstrip(),
        )
    split = power.variation
    if split.between_runs is not None:
        line(
            console,
            f"Variance of a task's difference: {split.of_difference:.4f}, of it between tasks "
            f"{split.between_tasks:.4f} and between runs {split.between_runs / split.runs:.4f}.",
        )


def _for_observed(power: Power, tasks: int) -> str:
    if power.tasks_needed is None:
        return ""
    if power.tasks_needed <= tasks:
        return "The observed difference is larger than that."
    runs = power.runs_needed
    more = f", or these tasks with {counted(runs, 'run')}" if runs is not None else ""
    return f"The observed difference would take {power.tasks_needed} tasks{more}."


def _print_flips(console: Console, first: str, other: str, flips: LeafFlips) -> None:
    from rich.table import Table

    from mind2web2.runs.analysis.leaf_flips import CAUSES

    if not flips.matched:
        line(console, f"No leaf of {first} and {other} can be matched by task, answer and leaf id.")
        return
    table = Table(title=f"Verdicts that differ, of {flips.matched} matched leaves", min_width=46)
    table.add_column("cause")
    for heading in (f"only {other} passes", f"only {first} passes"):
        table.add_column(heading, justify="right", overflow="fold")
    table.add_column("such as", overflow="fold")
    for cause, label in CAUSES.items():
        own = flips.by_cause[cause]
        if own.gained or own.lost:
            table.add_row(label, str(own.gained), str(own.lost), ", ".join(own.examples))
    if table.row_count:
        console.print(table)
    else:
        line(console, f"All {flips.matched} matched leaves of {first} and {other} have the same verdicts.")
    if flips.unmatched:
        line(console, f"Leaves that only one of {first} and {other} has, not compared: {flips.unmatched}.")


def _print_verdict(console: Console, found: Ranking, worse: Sequence[str], margin: float) -> None:
    first = found.agents[0]
    if worse:
        line(console, f"Worse than {first} by more than {margin:g}: {', '.join(worse)}.")
        return
    line(console, f"None is shown to be worse than {first} by more than {margin:g}.")
