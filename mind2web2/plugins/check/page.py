"""One HTML file: the report with each statement marked, and its claims beside it on a click."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from mind2web2.plugins.check.findings import CheckedReport
from mind2web2.plugins.check.verdicts import StatementVerdict

_TEMPLATE = Path(__file__).parent / "page.html"


def _title(statement: StatementVerdict) -> str:
    return statement.verdict if statement.checkable else "needs no source"


def report_page(reports: Sequence[tuple[CheckedReport, str]]) -> str:
    """Return the page of one or more reports, which opens from disk and loads nothing."""
    pieces: list[str] = []
    statements: list[StatementVerdict] = []
    for found, text in reports:
        pieces.append(f"<h1>{html.escape(found.name)}: {html.escape(found.summary)}</h1>")
        pieces += _marked(found, text, len(statements))
        statements += found.statements
    data = {
        "statements": [each.model_dump(mode="json") for each in statements],
        "reports": [
            {
                **found.model_dump(mode="json", exclude={"statements"}),
                "figure_rows": list(found.figure_rows()),
                "figure_without": str(found.precision_without or "-"),
            }
            for found, _ in reports
        ],
    }
    # "<" cannot end the script element early.
    findings = json.dumps(data).replace("<", "\\u003c")
    page = _TEMPLATE.read_text(encoding="utf-8")
    page = page.replace("{{name}}", html.escape(", ".join(found.name for found, _ in reports)))
    before, _, after = page.partition("{{report}}")
    middle, _, end = after.partition("{{findings}}")
    return "".join((before, *pieces, middle, findings, end))


def _marked(found: CheckedReport, text: str, first: int) -> Iterator[str]:
    """Yield a report's text with its statements marked, which are numbered from ``first``."""
    position = 0
    for number, statement in enumerate(found.statements, start=first):
        if statement.start < position:
            continue
        shown = html.escape(text[statement.start : statement.end])
        kind = statement.verdict.replace(" ", "-") if statement.checkable else "no-claim"
        yield html.escape(text[position : statement.start])
        yield (
            f'<span role="button" tabindex="0" class="{kind}" title="{_title(statement)}"'
            f' data-statement="{number}">{shown}</span>'
        )
        position = statement.end
    yield html.escape(text[position:])
