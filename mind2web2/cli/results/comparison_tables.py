"""Comparisons of agents as tables, with tests and warnings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from mind2web2.analysis.comparison import Pair, Ranking
from mind2web2.cli.console import PlainConsole
from mind2web2.cli.results.tables import METRICS, range_text
from mind2web2.utils.program import command_line
from mind2web2.utils.text import counted, fixed, number


def print_ranking(console: PlainConsole, ranking: Ranking, given: Sequence[str]) -> None:
    """Print both metrics, and each further agent's power and tasks against the first.

    Args:
        given: options of suggested commands.
    """
    first, *others = ranking.agents
    for name in ranking.metrics:
        _print_metric(console, ranking, name, METRICS[name].label)
    console.print_line(
        "Differences, intervals and p-values come from sign flips of the tasks' differences, each "
        "averaged over its runs. Intervals are for other tasks of this kind, and p-values are "
        "corrected for several pairs (Holm).",
    )
    pairs = ranking.metrics["avg_score"].against(first)
    for other in others:
        pair = pairs[other]
        _print_power(console, pair, ranking.num_tasks)
        largest = ", ".join(f"{one.task_id} {_difference(one.difference)}" for one in pair.largest)
        if largest:
            console.print_line(f"Largest differences of {other} from {first}: {largest}")
        why = command_line("compare", first, other, "--why", *given)
        console.print_line(f"What moved the score: {why}")
    console.print_lines(ranking.warnings, "Warning: ")


def _print_metric(console: PlainConsole, ranking: Ranking, name: str, label: str) -> None:
    first = ranking.agents[0]
    metric = ranking.metrics[name]
    pairs = metric.against(first)
    rows = []
    for agent, value in metric.values.items():
        pair = pairs.get(agent)
        mark = " *" if agent in metric.tied_with_best else ""
        cells = ("first", "", "") if pair is None else _cells(pair)
        rows.append((f"{agent}{mark}", number(value), *cells))
    title = f"{label}, over the same {counted(ranking.num_tasks, 'task')}"
    console.print_table(title, ("agent", "mean", "difference", "95% interval", "p"), rows)
    for pair in pairs.values():
        if pair.reason is not None:
            console.print_line(f"No interval for {pair.second_agent}: {pair.reason}.")
    if len(metric.tied_with_best) > 1:
        console.print_line(
            f"* tied with the best at the 5% level: {', '.join(metric.tied_with_best)}.",
        )
    else:
        console.print_line(
            f"* the best is {metric.tied_with_best[0]}, and no other agent is tied with it at the "
            "5% level.",
        )


def _cells(pair: Pair) -> Sequence[str]:
    shown = range_text(pair.low, pair.high, _difference)
    return _difference(pair.difference), shown, f"{pair.p_holm:.2g}"


_difference = partial(number, is_difference=True)


def _print_power(console: PlainConsole, pair: Pair, tasks: int) -> None:
    # Where all tasks differ alike, their variance tells nothing about other tasks.
    if tasks < 2 or pair.detectable == 0:
        return
    shown = "no difference in partial completion would show"
    if pair.detectable is not None:
        points = fixed(100 * pair.detectable, 0)
        shown = f"only a difference of {points} points or more in partial completion would show"
    console.print_line(
        f"{pair.second_agent} against {pair.first_agent}: with {counted(tasks, 'task')}, {shown} "
        "(80% power).",
    )


def print_verdict(
    console: PlainConsole, ranking: Ranking, worse: Sequence[str], margin: float
) -> None:
    """Print whether ``--fail_if_worse`` applies."""
    first = ranking.agents[0]
    if worse:
        console.print_line(
            f"Shown to be worse than {first} by more than {margin:g}: {', '.join(worse)}."
        )
        return
    console.print_line(f"No agent is shown to be worse than {first} by more than {margin:g}.")
