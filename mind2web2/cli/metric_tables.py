"""Tables of metrics: one agent with intervals and reasons for caution, and two agents side by side."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from mind2web2.cli.console import counted, line, number
from mind2web2.statistics.bootstrap import LEVEL, RESAMPLES
from mind2web2.utils.text import name_list, natural_key

if TYPE_CHECKING:
    from mind2web2.runs.comparison import AgentComparison
    from mind2web2.runs.freshness import ResultsNow

_TASKS_SHOWN = 3
_LEVEL = f"{LEVEL:.0%} interval"
_METHOD = f"BCa bootstrap, {RESAMPLES:,} resamples of the tasks with all their answers"
_EXACT = "exact (Clopper-Pearson), as all tasks have the same value"
_RESERVATIONS = {
    "page_not_had": "failed: page unavailable",
    "suspect_page": "page looks wrong",
    "declined": "failed: judge refused",
    "flagged": "text tries to instruct judge",
    "error": "failed: error while judging",
}
_OF_EXTRACTIONS = {
    "page_not_had": "empty, as a page was unavailable",
    "suspect_page": "from pages that look wrong",
    "declined": "empty, as the judge refused to answer",
    "flagged": "from pages that try to instruct the judge",
}
_OF_ANSWERS = {
    "flagged_answers": "answers that try to instruct the judge",
    "in_doubt": "results in doubt, which the next run judges again",
    "treeless": "scores without a rubric tree, which cannot be checked",
    "off_tree": "scores that differ from their rubric trees",
    "unexplained": "results without evidence, whose claims are not counted here",
}


def print_metrics(console: Console, summary: Mapping[str, Any]) -> None:
    """Print an agent's metrics, with warnings."""
    runs = summary["num_runs"]
    tasks = counted(summary["num_tasks"], "task")
    table = Table(
        title=f"{summary['agent_name']}, all results: {tasks}, {counted(runs, 'run')}", min_width=46
    )
    table.add_column("metric")
    intervals = summary["intervals"]["metrics"]
    is_sampled = any(found["low"] is not None for found in intervals.values())
    for heading in ("mean", "std over runs", *([_LEVEL] if is_sampled else [])):
        table.add_column(heading, justify="right")
    labels = _labels(f"pass_at_{runs}", f"pass@{runs}")
    for name, label in labels.items():
        cells = (number(summary[name]), number(summary.get(f"{name}_std")))
        table.add_row(label, *cells, *([_interval(intervals[name])] if is_sampled else []))
    console.print(table)
    _print_methods(console, _LEVEL, _METHOD, labels, intervals)
    _print_reasons(console, labels, intervals)
    for warning in summary["warnings"]:
        line(console, f"Warning: {warning}")


def print_verdicts(console: Console, verdicts: Mapping[str, Any]) -> None:
    """Print how many verdicts rest on something doubtful, and in which tasks most of them are."""
    table = Table(
        title=f"What the scores rest on: {counted(verdicts['claims'], 'claim')} judged", min_width=46
    )
    table.add_column("claims")
    table.add_column("number", justify="right")
    table.add_column("share", justify="right")
    table.add_column("most of them in", overflow="fold")
    tasks = verdicts["tasks"]
    for name, label in _RESERVATIONS.items():
        found = {task: (own["reservations"][name], own["claims"]) for task, own in tasks.items()}
        _add_share(table, label, verdicts["reservations"][name], verdicts["claims"], found)
    split = {task: (own["split"], own["voted"]) for task, own in tasks.items()}
    label = f"votes differ, of {verdicts['voted']}"
    _add_share(table, label, verdicts["split"], verdicts["voted"], split)
    quoted = sum(verdicts["quotes"].values())
    missed = {task: (own["quotes"]["not_found"], sum(own["quotes"].values())) for task, own in tasks.items()}
    _add_share(table, f"quotations not found, of {quoted}", verdicts["quotes"]["not_found"], quoted, missed)
    console.print(table)
    counts = verdicts["extractions"]
    extractions = [f"{counts[name]} {label}" for name, label in _OF_EXTRACTIONS.items() if counts[name]]
    if extractions:
        line(console, f"Extractions: {', '.join(extractions)}.")
    for name, label in _OF_ANSWERS.items():
        if verdicts[name]:
            line(console, f"Warning: {label}: {len(verdicts[name])} ({name_list(verdicts[name])})")


def print_variation(console: Console, summary: Mapping[str, Any]) -> None:
    """Print how far the scores depend on weak verdicts, and on tasks and runs."""
    bounds, variation = summary["bounds"], summary["variation"]
    if bounds["avg_score"] is not None:
        (low, high), (low_rate, high_rate) = bounds["avg_score"], bounds["success_rate"]
        line(
            console,
            f"Bounds, had verdicts on weak evidence gone either way: partial completion {number(low)} to "
            f"{number(high)}, success rate {number(low_rate)} to {number(high_rate)}.",
        )
    elif bounds["without"]:
        line(
            console,
            f"No bounds for weak evidence: {counted(bounds['without'], 'result')} of an earlier version or "
            "without a rubric tree; `evaluate --llm_provider replay` writes results with bounds.",
        )
    if variation is not None and variation["between_runs"] is not None:
        line(
            console,
            f"Variance of scores: between tasks {variation['between_tasks']:.4f}, between runs of a task "
            f"{variation['between_runs']:.4f} (the judge's own included, which mind2web2 rejudge separates).",
        )


def print_now(console: Console, now: ResultsNow, evaluate: str) -> None:
    """Print which results are out of date, and which answers have none.

    Args:
        evaluate: the command that evaluates the agent as its newest result was made.
    """
    if now.stale:
        line(console, f"Warning: results out of date: {len(now.stale)}; to judge them again: {evaluate}")
    by_reason: dict[str, list[str]] = defaultdict(list)
    for name, reasons in now.stale.items():
        by_reason["; ".join(reasons)].append(name)
    for reason, names in by_reason.items():
        line(console, f"Out of date: {name_list(names)}: {reason}")
    if now.unevaluated:
        line(
            console,
            f"Warning: answers that were never evaluated and are not counted: {len(now.unevaluated)} "
            f"({name_list(now.unevaluated)}); to judge them: {evaluate}",
        )
    for unchecked in now.unchecked:
        line(console, f"Note: not checked: {unchecked}")


def print_comparison(console: Console, comparison: AgentComparison) -> None:
    """Print the metrics of two agents over the same tasks, with the differences."""
    first, second = comparison.first, comparison.second
    tasks = counted(len(comparison.tasks), "task")
    table = Table(title=f"{second} against {first}, over the same {tasks}", min_width=46)
    table.add_column("metric", no_wrap=True)
    for heading in (first, second):
        table.add_column(heading, justify="right", overflow="fold")
    for heading in ("difference", _LEVEL):
        table.add_column(heading, justify="right", no_wrap=True)
    labels = _labels("pass_at_k", "pass@k")
    found = {name: difference.summary() for name, difference in comparison.differences.items()}
    for name, label in labels.items():
        values = (found[name][key] for key in ("first", "second", "difference"))
        table.add_row(label, *map(number, values), _interval(found[name]))
    console.print(table)
    clear = [labels[name] for name, difference in comparison.differences.items() if difference.is_clear]
    if any(own["low"] is not None for own in found.values()):
        how = "sign flips of the differences of tasks, each averaged over its runs"
        _print_methods(console, f"{_LEVEL} of the difference", how, labels, found)
        line(console, f"More than chance in the choice of tasks: {', '.join(clear) or 'no difference'}.")
    _print_reasons(console, labels, found)
    for warning in comparison.warnings:
        line(console, f"Warning: {warning}")


def _labels(pass_name: str, pass_label: str) -> dict[str, str]:
    return {
        "avg_score": "partial completion",
        "success_rate": "success rate",
        pass_name: pass_label,
        "avg_answer_word_count": "answer length (words)",
        "avg_time_seconds": "agent's time (s)",
    }


def _interval(found: Mapping[str, Any]) -> str:
    return "-" if found["low"] is None else f"{number(found['low'])} to {number(found['high'])}"


def _print_methods(
    console: Console,
    title: str,
    how: str,
    labels: Mapping[str, str],
    intervals: Mapping[str, Mapping[str, Any]],
) -> None:
    """Name the method of the intervals: most are resampled, some are exact."""
    known = {name: found for name, found in intervals.items() if found["low"] is not None}
    exact = [labels[name] for name, found in known.items() if found.get("exact")]
    if len(exact) < len(known):
        line(console, f"{title}: {how}.")
    if exact:
        line(console, f"{title} of {', '.join(exact)}: {_EXACT}.")


def _print_reasons(
    console: Console, labels: Mapping[str, str], intervals: Mapping[str, Mapping[str, Any]]
) -> None:
    """Print which metrics have no interval, and why; a metric without a value needs no reason."""
    by_reason: dict[str, list[str]] = defaultdict(list)
    valued = {name: found for name, found in intervals.items() if found["tasks"]}
    for name, found in valued.items():
        if found["reason"] is not None:
            by_reason[found["reason"]].append(labels[name])
    for reason, names in by_reason.items():
        subject = f"No {_LEVEL}s" if len(names) == len(valued) else f"No interval for {', '.join(names)}"
        line(console, f"{subject}: {reason}.")


def _add_share(
    table: Table, label: str, amount: int, total: int, tasks: Mapping[str, tuple[int, int]]
) -> None:
    most = sorted(tasks, key=lambda task: (-tasks[task][0], natural_key(task)))[:_TASKS_SHOWN]
    listed = [f"{task} {tasks[task][0]} of {tasks[task][1]}" for task in most if tasks[task][0]]
    table.add_row(label, str(amount), f"{amount / total:.1%}" if total else "-", ", ".join(listed))
