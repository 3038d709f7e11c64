"""``mind2web2 leaves``: what each leaf of the rubrics did in all stored results."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from mind2web2.analysis.leaf_report import (
    LeafReport,
    LeafRow,
    Share,
    TaskReport,
    leaf_report,
    stored_results,
)
from mind2web2.cli.console import line, plain_console, warnings_on
from mind2web2.cli.results.chosen import check_record
from mind2web2.cli.settings_file import paths_of, settings_of
from mind2web2.errors import UsageError
from mind2web2.runs.settings import RunSettings
from mind2web2.statistics.items import ENOUGH_RESULTS
from mind2web2.utils.names import check_name
from mind2web2.utils.program import program
from mind2web2.utils.text import counted

# "quotation not found in 3"
_NOTES_WIDTH = 24
_COLUMNS = (
    "leaf",
    "passed",
    "failed",
    "skipped",
    "r",
    "page",
    "votes",
    "$",
    "notes",
)


def run(options: argparse.Namespace) -> int:
    """Print the report and return the exit status."""
    settings = settings_of(options)
    console = plain_console()
    report = _of_results(settings, options.agents, options.judge, console)
    if options.json:
        console.print_json(json.dumps(asdict(report)))
    else:
        _print(console, report)
    return 0


def _of_results(
    settings: RunSettings, agents: Sequence[str], judge: str | None, console: Console
) -> LeafReport:

    names = [check_name("agent", name) for name in agents]
    root = paths_of(settings, *names).eval_results_root
    known = sorted({path.parts[-5] for path in root.glob("*/*/*/results/*.md.json")})
    for name in names:
        check_record(settings, root, name)
    if not known:
        raise UsageError(f"no results under {root}: run {program()} evaluate AGENT first")
    task_ids = list(settings.task_ids) or None
    with warnings_on(console):
        results = stored_results(root, names or known, task_ids, judge)
    if not results:
        of_task = f" of task {', '.join(settings.task_ids)}" if task_ids else ""
        of_judge = f" by judge {judge}" if judge else ""
        options = ["--task_id"] * bool(task_ids) + ["--judge"] * bool(judge)
        cure = " and ".join(options)
        raise UsageError(f"no results{of_task}{of_judge} under {root}: check {cure}")
    return leaf_report(results)


def _print(console: Console, report: LeafReport) -> None:
    for task in report.tasks:
        _print_task(console, task)
    _print_shares(console, "passed, by pages cited", report.by_pages)
    _print_shares(console, "passed, by place in the rubric", report.by_position)


def _print_task(console: Console, task: TaskReport) -> None:

    line(
        console,
        f"{task.task_id}: {counted(task.results, 'result')} of {', '.join(task.agents)}",
    )
    if task.warning is not None:
        line(console, f"Warning: {task.warning}; --judge MODEL takes one")
    table = Table()
    for head in _COLUMNS:
        is_text = head in ("leaf", "notes")
        # An id that is broken over lines cannot be searched or copied.
        table.add_column(
            head,
            justify="left" if is_text else "right",
            no_wrap=head != "notes",
            min_width=_NOTES_WIDTH if head == "notes" else None,
        )
    for row in task.leaves:
        table.add_row(*_cells(row))
    unbounded = console.options.update(max_width=10_000)
    least = Measurement.get(console, unbounded, table).minimum
    console.width = max(console.width, least)
    console.print(table, crop=False)
    for group in task.twins:
        line(console, f"twins, the same verdict everywhere: {', '.join(group)}")
    for text in _figures(task):
        line(console, text)
    if task.too_few:
        line(
            console,
            f"Too few results to judge leaves: {ENOUGH_RESULTS} are needed, there are {task.results}.",
        )
    line(console, "")


def _cells(row: LeafRow) -> Sequence[str]:
    counts = row.counts
    notes: list[str] = [*row.labels]
    if counts.undecided:
        notes.append(f"never judged in {counts.undecided}")
    if row.split:
        notes.append(f"votes differ in {row.split}")
    if row.quotes_missing:
        notes.append(f"quotation not found in {row.quotes_missing}")
    if row.stayed is not None and row.stayed.stayed:
        notes.append(str(row.stayed))
    return (
        f"{row.name} (gate)" if row.critical else row.name,
        str(counts.passed),
        str(counts.failed),
        str(counts.skipped),
        "-" if row.correlation is None else f"{row.correlation:.2f}",
        f"{row.with_page}/{row.judged}" if row.judged else "-",
        str(row.judgments),
        "-" if row.cost_usd is None else f"{row.cost_usd:.4f}",
        ", ".join(notes),
    )


def _figures(task: TaskReport) -> Sequence[str]:
    figures, texts = task.figures, []
    if figures.saturated:
        texts.append(
            "saturated: every score is 0, or every one is 1, so that the task separates no agents"
        )
    if figures.discrimination is not None:
        between = (
            ""
            if figures.between_agents is None
            else f", {figures.between_agents:.0%} of the variance"
        )
        part = (
            ""
            if figures.variance_share is None
            else f"; {figures.variance_share:.0%} of all tasks' part"
        )
        texts.append(
            f"between agents: {figures.discrimination:.4g} from worst to best{between}{part}"
        )
    return texts


def _print_shares(console: Console, title: str, shares: Mapping[str, Share]) -> None:

    if shares:
        parts = ", ".join(
            f"{name} {each.passed / each.of:.0%} of {each.of}" for name, each in shares.items()
        )
        line(console, f"Judged leaves that {title}: {parts}")
