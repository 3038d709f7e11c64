"""The comparison of agents on the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from mind2web2.cli.console import counted, line, number
from mind2web2.runs.analysis.leaf_flips import CAUSES, LeafFlips
from mind2web2.runs.analysis.ranking import PairResult, Power, Ranking

# More are not worth their exact number, which depends on a small remainder of two estimates.
_MOST_RUNS = 50
_LABELS = {"avg_score": "partial completion", "success_rate": "success rate"}


def print_ranking(console: Console, found: Ranking, flips: Mapping[str, LeafFlips]) -> None:
    """Print both metrics, and each further agent's power, tasks and leaves against the first.

    Args:
        flips: by the further agents.
    """
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
        line(console, f"* no significant difference from the best at the 5% level: {', '.join(metric.tied)}.")
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
    shown = "too few to show any difference in partial completion"
    if power.detectable is not None:
        shown = f"enough to show a difference of {power.detectable:.3f} in partial completion"
    line(
        console,
        f"Power of {pair.second} against {pair.first}: {counted(tasks, 'task')} are {shown} four times out "
        f"of five. {_for_observed(power, tasks)}".rstrip(),
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
    more, runs = "", power.runs_needed
    if runs is not None:
        more = f", or these tasks with {counted(runs, 'run')}"
        if runs > _MOST_RUNS:
            more = f"; with these tasks, more than {_MOST_RUNS} runs"
    return f"The observed difference would take {counted(power.tasks_needed, 'task')}{more}."


def _print_flips(console: Console, first: str, other: str, flips: LeafFlips) -> None:
    if not flips.matched:
        line(console, f"No leaf of {first} and {other} can be matched by task, answer and leaf id.")
        return
    table = Table(title=f"Verdicts that differ, of {flips.matched} matched leaves", min_width=46)
    table.add_column("cause")
    for heading in (f"only {other} passes", f"only {first} passes"):
        table.add_column(heading, justify="right", overflow="fold")
    examples = []
    for cause, label in CAUSES.items():
        own = flips.by_cause[cause]
        if own.gained or own.lost:
            table.add_row(label, str(own.gained), str(own.lost))
            examples.append(f"Such as ({label}): {', '.join(own.examples)}")
    if table.row_count:
        console.print(table)
        for text in examples:
            line(console, text)
    else:
        line(console, f"All {flips.matched} matched leaves of {first} and {other} have the same verdicts.")
    if flips.unmatched:
        line(console, f"Leaves that only one of {first} and {other} has, not compared: {flips.unmatched}.")


def print_verdict(console: Console, found: Ranking, worse: Sequence[str], margin: float) -> None:
    """Print whether ``--fail_if_worse`` applies."""
    first = found.agents[0]
    if worse:
        line(console, f"Worse than {first} by more than {margin:g}: {', '.join(worse)}.")
        return
    line(console, f"None is shown to be worse than {first} by more than {margin:g}.")
