"""The outputs of a check: printed lines, JSON and JUnit."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console

from mind2web2.cli.console import line
from mind2web2.errors import ResultWriteError, UsageError
from mind2web2.plugins.check.findings import CheckedReport
from mind2web2.plugins.check.hints import Hint
from mind2web2.plugins.check.page import report_page
from mind2web2.plugins.check.statements import ReadReport
from mind2web2.plugins.check.verdicts import ClaimVerdict, StatementVerdict
from mind2web2.utils.files import write_whole
from mind2web2.utils.junit import JUnitCase, JUnitSuite, junit_xml

_MAX_LISTED = 10


def print_findings(console: Console, found: CheckedReport) -> None:
    """Print each claim with its verdict, then the figures."""
    for text in findings_text(found):
        line(console, text)


def findings_text(found: CheckedReport) -> Iterator[str]:
    """Yield the lines that a check prints."""
    for statement in found.statements:
        if statement.checkable:
            yield from _statement_lines(statement)
    yield ""
    yield from _figure_lines(found)
    yield from _citation_lines(found)


def _statement_lines(statement: StatementVerdict) -> Iterator[str]:
    """Yield the statement and its claims; a single claim says the same as its statement."""
    yield ""
    indent = ""
    if len(statement.claims) > 1:
        yield _short(statement.text)
        indent = "  "
    for claim in statement.claims:
        yield f"{indent}{claim.verdict.upper()}: {_short(claim.claim)}"
        for text in _source_lines(claim):
            yield f"{indent}{text}"


def _source_lines(claim: ClaimVerdict) -> Iterator[str]:
    for source in claim.sources:
        quote = f' "{_short(source.quote)}"' if source.quote else ""
        depth = f" ({source.depth})" if source.depth in ("abstract", "stand-in") else ""
        yield f"  {source.verdict}: {source.page}{depth}{quote}"
        if source.reason:
            yield f"    {_short(source.reason)}"


def _short(text: str, most: int = 400) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _figure_lines(found: CheckedReport) -> Iterator[str]:
    yield f"{found.name}: {found.summary}."
    for label, figure in found.figure_rows():
        yield f"{label}: {figure}"


def _citation_lines(found: CheckedReport) -> Iterator[str]:
    if found.contaminated:
        yield f"Sources about a benchmark: {_name_list(found.contaminated)}"
        yield f"Citation precision without them: {found.precision_without or '-'}"
    if found.retracted:
        yield f"Sources that say that they were retracted: {_name_list(found.retracted)}"
    if found.invented:
        yield f"Invented addresses, whose host does not exist: {_name_list(found.invented)}"
    yield from _mark_lines(found.unresolved, found.uncited)


def _mark_lines(unresolved: list[str], uncited: list[str]) -> Iterator[str]:
    if unresolved:
        yield f"Marks without a source: {_name_list([_short(mark, 40) for mark in unresolved])}"
    if any(map(is_lost, unresolved)):
        yield (
            "Sources lost in the copy: export the report as markdown, DOCX or PDF, or share it as a"
            " link and save that page as HTML."
        )
    if uncited:
        yield f"Sources that no statement cites: {_name_list(uncited)}"


def is_lost(mark: str) -> bool:
    """Tell whether a mark is one that a program writes for its reader alone."""
    return any(sign in mark for sign in ("cite", "†", "\ue200", "turn", "citation:", "grok:"))


def _name_list(names: list[str]) -> str:
    more = len(names) - _MAX_LISTED
    return ", ".join(names[:_MAX_LISTED]) + (f" and {more} more" if more > 0 else "")


def evidence_table(report: ReadReport) -> Iterator[str]:
    """Yield how each form of mark was decided: the logarithms of odds, their sum, the verdict."""
    yield "with entry  without    look   marks   share  family   total  taken  form"
    for row in report.forms:
        numbers = (row.look, row.marks, row.share, row.family, row.total)
        shown = " ".join(f"{number:7.1f}" for number in numbers)
        taken = "yes" if row.is_taken else "no"
        yield f"{row.with_entry:10} {row.without_entry:8} {shown}  {taken:5}  {row.form}, as {row.example}"


def print_hints(console: Console, name: str, report: ReadReport, hints: Sequence[Hint]) -> None:
    """Print the hints about a report: those about sources first, then by statement."""
    line(
        console,
        f"{name}: hints, found without a judge. A hint says where to look; it is not a verdict.",
    )
    for hint in hints:
        if hint.statement is None:
            line(console, f"  {hint.kind}: {hint.source} ({_short(hint.detail, 160)})")
    by_statement: dict[int, list[Hint]] = {}
    for hint in hints:
        if hint.statement is not None:
            by_statement.setdefault(hint.statement, []).append(hint)
    for number, found in by_statement.items():
        line(console, _short(report.statements[number].text, 160))
        line(console, f"  {'; '.join(_hint_text(hint) for hint in found)}")
    counts = Counter(hint.kind for hint in hints)
    line(
        console,
        ", ".join(f"{kind}: {number}" for kind, number in counts.items()) or "No hints.",
    )
    for text in _mark_lines(report.unresolved, report.uncited):
        line(console, text)


def _hint_text(hint: Hint) -> str:
    return f"{hint.kind}: {hint.detail}" if hint.detail else hint.kind


def check_ending(path: Path, has_judge: bool) -> None:
    """Check that a file's ending names a format.

    Raises:
        UsageError: it does not.
    """
    suffix = path.suffix.lower()
    if suffix not in (".html", ".htm", ".json", ".xml"):
        raise UsageError(f"-o {path}: name a file that ends in .html, .json or .xml")
    if not has_judge and suffix != ".json":
        raise UsageError(f"-o {path}: hints are written as .json; .html and .xml need a judge")


def write_hints(path: Path, hints: Sequence[Hint]) -> None:
    """Write the hints as JSON.

    Raises:
        ResultWriteError: the file cannot be written.
    """
    _write(
        path,
        json.dumps([hint.model_dump() for hint in hints], ensure_ascii=False, indent=2) + "\n",
    )


def _write(path: Path, content: str | bytes) -> None:
    try:
        write_whole(path, content)
    except OSError as error:
        raise ResultWriteError.at(path, error) from error


def write_output(path: Path, found: Sequence[tuple[CheckedReport, str]]) -> None:
    """Write a file in the format that its ending names.

    Args:
        found: each report with its text.

    Raises:
        ResultWriteError: the file cannot be written.
    """
    suffix = path.suffix.lower()
    content: str | bytes
    if suffix == ".json":
        reports = [report.model_dump(mode="json") for report, _ in found]
        shown = reports[0] if len(reports) == 1 else reports
        content = json.dumps(shown, ensure_ascii=False, indent=2) + "\n"
    elif suffix == ".xml":
        content = junit_xml([_suite(report) for report, _ in found])
    else:
        content = report_page(found)
    _write(path, content)


def _suite(found: CheckedReport) -> JUnitSuite:
    """Return the claims as JUnit test cases; an unavailable page is an error, not a failure."""
    cases = [
        _case(found.name, f"{statement.start}-{number}", claim)
        for statement in found.statements
        for number, claim in enumerate(statement.claims)
        if statement.checkable and claim.sources
    ]
    return JUnitSuite(found.name, cases)


def _case(classname: str, name: str, claim: ClaimVerdict) -> JUnitCase:
    return JUnitCase(
        classname,
        f"{name} {claim.claim}",
        None if claim.verdict == "supported" else claim.verdict,
        "\n".join(f"{each.page}: {each.reason}" for each in claim.sources),
        "error" if claim.verdict == "page unavailable" else "failure",
    )
