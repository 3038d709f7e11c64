"""The leaves of rubrics, as ``mind2web2 metrics --leaves`` shows them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

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
from mind2web2.results.result_file import ResultFile


def leaf_reports(
    agents: Sequence[tuple[str, Mapping[tuple[str, str], ResultFile]]],
) -> list[TaskReport]:
    """Return the reports on the leaves of all tasks.

    Args:
        agents: by name, with their results by task and answer.
    """
    by_task: dict[str, list[JudgedResult]] = defaultdict(list)
    for name, results in agents:
        for (task_id, _), result in results.items():
            by_task[task_id].append(JudgedResult(name, result))
    judges = {each.result.judge_model or "" for results in by_task.values() for each in results}
    stayed = stayed_by_leaf([each for name, _ in agents for each in changed_pages(name)], judges)
    return [task_report(task_id, results, stayed) for task_id, results in by_task.items()]


def print_leaves(console: Console, reports: Sequence[TaskReport], *, is_whole: bool) -> None:
    """Print the leaves to look at first, or all of them; nothing without a report."""
    if not reports:
        return
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
            f"{name} {'-' if share is None else f'{share:.0%}'}"
            for name, share in row.by_agent.items()
        )
        gate = " (gate)" if row.critical else ""
        correlation = "" if row.correlation is None else f"; r {row.correlation:.2f}"
        notes = f"; {', '.join(row.notes)}" if row.notes else ""
        line(console, f"  {row.task_id} {row.name}{gate}: passed by {shares}{correlation}{notes}")
