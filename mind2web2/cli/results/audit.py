"""The judge's quality by people's labels."""

from __future__ import annotations

from collections.abc import Iterable

from mind2web2.analysis.audit_report import AuditReport
from mind2web2.analysis.audited import JudgeQuality
from mind2web2.cli.console import (
    PlainConsole,
)
from mind2web2.statistics.agreement import Figures
from mind2web2.statistics.paired import Estimate
from mind2web2.utils.text import counted, number


def print_audit(console: PlainConsole, found: AuditReport) -> None:
    """Print how often the judge and people's labels agree."""
    for auditor in found.auditors:
        _print_quality(console, f"Judge and {auditor.auditor}", auditor.quality)
    for pair in found.between_auditors:
        title = f"{' and '.join(pair.auditors)}: {counted(pair.leaves, 'leaf')}"
        _print_figures(console, title, _between(pair.figures))


def _print_quality(console: PlainConsole, title: str, found: JudgeQuality) -> None:
    rows = [
        *_between(found.figures),
        ("passed wrongly", found.figures.wrong_passes),
        ("failed wrongly", found.figures.wrong_failures),
    ]
    _print_figures(console, f"{title}: {counted(found.labels, 'leaf')}", rows)
    if found.undecidable:
        console.print_line(f"Not counted: {counted(found.undecidable, 'undecidable leaf')}.")
    if found.stale:
        console.print_line(
            f"{counted(found.stale, 'label')} no longer count, because the leaves were judged "
            "again.",
        )


def _between(figures: Figures) -> list[tuple[str, Estimate]]:
    return [
        ("agreement", figures.agreement),
        ("Cohen's kappa", figures.kappa),
        ("Gwet's AC1", figures.ac1),
    ]


def _print_figures(console: PlainConsole, title: str, rows: Iterable[tuple[str, Estimate]]) -> None:
    cells = [(name, number(one.value), _interval(one)) for name, one in rows]
    console.print_table(title, ("figure", "value", "95% interval"), cells)


def _interval(found: Estimate) -> str:
    if found.low is None or found.high is None:
        return "-"
    return f"{number(found.low)} to {number(found.high)}"
