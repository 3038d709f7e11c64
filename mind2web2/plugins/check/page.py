"""One HTML file: the report with each statement marked, and its claims beside it on a click."""

from __future__ import annotations

import html
import json
from pathlib import Path

from mind2web2.plugins.check.findings import CheckedReport
from mind2web2.plugins.check.verdicts import StatementVerdict

_TEMPLATE = Path(__file__).parent / "page.html"


def _title(statement: StatementVerdict) -> str:
    return statement.verdict if statement.checkable else "needs no source"


def report_page(found: CheckedReport, text: str) -> str:
    """Return the page, which opens from disk and loads nothing."""
    pieces, position = [], 0
    for number, statement in enumerate(found.statements):
        if statement.start < position:
            continue
        shown = html.escape(text[statement.start : statement.end])
        kind = statement.verdict.replace(" ", "-") if statement.checkable else "no-claim"
        pieces += [
            html.escape(text[position : statement.start]),
            f'<span role="button" tabindex="0" class="{kind}" title="{_title(statement)}"'
            f' data-statement="{number}">{shown}</span>',
        ]
        position = statement.end
    pieces.append(html.escape(text[position:]))
    # "<" cannot end the script element early.
    report = {
        **found.model_dump(mode="json"),
        "figure_rows": list(found.figure_rows()),
        "figure_without": str(found.precision_without or "-"),
    }
    findings = json.dumps(report).replace("<", "\\u003c")
    page = _TEMPLATE.read_text(encoding="utf-8")
    page = page.replace("{{name}}", html.escape(found.name))
    before, _, after = page.partition("{{report}}")
    middle, _, end = after.partition("{{findings}}")
    return "".join((before, *pieces, middle, findings, end))
