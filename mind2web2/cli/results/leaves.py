"""The leaves of rubrics, as ``mind2web2 metrics --leaves`` shows them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from rich.console import Console

from mind2web2.analysis.changed_pages import changed_pages, stayed_by_leaf
from mind2web2.analysis.leaf_report import (
    ENOUGH_RESULTS,
    JudgedResult,
    LeafRow,
    TaskReport,
    look_at_first,
    task_report,
)
from mind2web2.cli.console import line
from mind2web2.results.stored_results import latest_results
from mind2web2.utils.text import number, percent


def leaf_reports(
    root: Path, agents: Sequence[str], task_ids: Collection[str] | None
) -> list[TaskReport]:
    """Return the reports on the leaves of the tasks that agents have results of."""
    by_task: dict[str, list[JudgedResult]] = defaultdict(list)
    for name in agents:
        for task_id, _, loaded in latest_results(root, name):
            is_asked_for = task_ids is None or task_id in task_ids
            if is_asked_for and not loaded.content.is_edited:
                by_task[task_id].append(JudgedResult(name, loaded.content))
    judges = {each.result.judge_model or "" for results in by_task.values() for each in results}
    stayed = stayed_by_leaf([each for name in agents for each in changed_pages(name)], judges)
    return [task_report(task_id, results, stayed) for task_id, results in by_task.items()]


def print_leaves(console: Console, reports: Sequence[TaskReport], *, is_whole: bool) -> None:
    """Print the leaves to look at first, or all of them."""
    few = [report for report in reports if report.too_few]
    for report in reports:
        if report.warning is not None:
            line(console, f"Warning: {report.task_id}: {report.warning}")
    if is_whole:
        for report in reports:
            _print_rows(console, f"Leaves of {report.task_id}", report.leaves)
    else:
        _print_rows(console, "Leaves to look at first", look_at_first(reports))
    if few:
        counts = ", ".join(f"{report.task_id} has {report.results}" for report in few[:5])
        more = f" and {len(few) - 5} more" if len(few) > 5 else ""
        line(
            console,
            f"It takes {ENOUGH_RESULTS} results of a task to judge its leaves: {counts}{more}.",
        )


def _print_rows(console: Console, title: str, rows: Iterable[LeafRow]) -> None:
    line(console, f"{title}: {'' if rows else 'none'}".rstrip())
    for row in rows:
        shares = ", ".join(
            f"{name} {'-' if share is None else percent(share)}"
            for name, share in row.by_agent.items()
        )
        gate = " (gate)" if row.critical else ""
        correlation = "" if row.correlation is None else f"; r {number(row.correlation)}"
        notes = f"; {', '.join(row.notes)}" if row.notes else ""
        line(console, f"  {row.task_id} {row.name}{gate}: passed by {shares}{correlation}{notes}")
