"""The judge's quality by people's labels."""

from __future__ import annotations

from collections.abc import Iterable

from mind2web2.analysis.audit_report import AuditReport
from mind2web2.analysis.audited import JudgeQuality
from mind2web2.cli.console import PlainConsole
from mind2web2.cli.results.tables import range_text
from mind2web2.statistics.agreement import Figures
from mind2web2.statistics.paired import Estimate
from mind2web2.utils.text import counted, number


def print_audit(console: PlainConsole, report: AuditReport) -> None:
    """Print how often the judge and people's labels agree."""
    for auditor in report.auditors:
        _print_quality(console, f"Judge and {auditor.auditor}", auditor.quality)
    for pair in report.between_auditors:
        title = f"{' and '.join(pair.auditors)}: {counted(pair.leaves, 'leaf')}"
        _print_figures(console, title, _between(pair.figures))


def _print_quality(console: PlainConsole, title: str, quality: JudgeQuality) -> None:
    rows = [
        *_between(quality.figures),
        ("passed wrongly", quality.figures.wrong_passes),
        ("failed wrongly", quality.figures.wrong_failures),
    ]
    _print_figures(console, f"{title}: {counted(quality.labels, 'leaf')}", rows)
    if quality.undecidable:
        console.print_line(f"Not counted: {counted(quality.undecidable, 'undecidable leaf')}.")
    if quality.stale:
        console.print_line(
            f"{counted(quality.stale, 'label')} no longer count, because the leaves were judged "
            "again.",
        )


def _between(figures: Figures) -> list[tuple[str, Estimate]]:
    return [
        ("agreement", figures.agreement),
        ("Cohen's kappa", figures.kappa),
        ("Gwet's AC1", figures.ac1),
    ]


def _print_figures(console: PlainConsole, title: str, rows: Iterable[tuple[str, Estimate]]) -> None:
    cells = [(name, number(one.value), range_text(one.low, one.high)) for name, one in rows]
    console.print_table(title, ("figure", "value", "95% interval"), cells)
