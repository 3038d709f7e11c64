"""The outputs of a check: printed lines, JSON and JUnit."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from mind2web2.plugin import (
    JUnitReport,
    PlainConsole,
    UsageError,
    write_whole,
)
from mind2web2_check.findings import MARKS_WITHOUT_SOURCE, CheckedReport, name_lists
from mind2web2_check.hints import Hint
from mind2web2_check.statements import ReadReport
from mind2web2_check.verdicts import ClaimVerdict, SourceVerdict, StatementVerdict

_MAX_LISTED = 10
# The words before a quotation of the judge.
_QUOTED: Mapping[str | None, str] = {
    "found": "",
    "approximate": " approximately",
    "not_found": " in words that are not on the page:",
}
# Some programs write such marks for their readers alone.
_LOST = re.compile(r"cite|†|\ue200|turn|citation:|grok:")


def print_findings(console: PlainConsole, found: CheckedReport) -> None:
    """Print each claim with its verdict, then the figures."""
    console.print_lines(findings_text(found))


def findings_text(found: CheckedReport) -> Iterator[str]:
    """Yield the lines that a check prints."""
    for statement in found.statements:
        if statement.checkable:
            yield from _statement_lines(statement)
    yield ""
    yield f"{found.name}: {found.summary}."
    for label, figure in found.figure_rows():
        yield f"{label}: {figure}"
    yield from _name_lines(found.name_lists())


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
        depth = f" ({source.depth})" if source.depth in ("abstract", "stand-in") else ""
        yield f"  {source.verdict}: {source.page}{depth}{_quotation(source)}"
        # The run has said why it was stopped.
        if source.reason and source.verdict != "not judged":
            yield f"    {_short(source.reason)}"


def _quotation(source: SourceVerdict) -> str:
    return f'{_QUOTED[source.quote_match]} "{_short(source.quote)}"' if source.quote else ""


def _short(text: str, most: int = 400) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _name_lines(lists: Iterable[tuple[str, list[str]]]) -> Iterator[str]:
    for title, names in lists:
        more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
        yield f"{title}: {', '.join(map(_short, names[:_MAX_LISTED]))}{more}"
        if title == MARKS_WITHOUT_SOURCE and any(map(_LOST.search, names)):
            yield (
                "Sources lost in the copy: export the report as markdown, DOCX or PDF, or share it "
                "as a link and save that page as HTML."
            )


def evidence_table(report: ReadReport) -> Iterator[str]:
    """Yield how each form of mark was decided: the logarithms of odds, their sum, the verdict."""
    yield (
        "Marks of a form, with and without an entry in the list of sources, and how much speaks for "
        "the form (logarithms of odds): its look, these numbers, its share of the list, and other "
        "forms of its kind. A form is taken if the total is at least 3."
    )
    yield "with entry  without    look   marks   share  family   total  taken  form"
    for row in report.forms:
        numbers = (row.look, row.marks, row.share, row.family, row.total)
        shown = " ".join(f"{number:7.1f}" for number in numbers)
        taken = "yes" if row.is_taken else "no"
        yield f"{row.with_entry:10} {row.without_entry:8} {shown}  {taken:5}  {row.form}, as {row.example}"


def print_hints(
    console: PlainConsole, name: str, report: ReadReport, hints: Sequence[Hint]
) -> None:
    """Print the hints about a report: those about sources first, then by statement."""
    console.print_line(
        f"{name}: hints, found without a judge. A hint says where to look; it is not a verdict.",
    )
    for number, group in groupby(hints, key=attrgetter("statement")):
        if number is not None:
            console.print_line(_short(report.statements[number].text, 160))
        for hint in group:
            console.print_line(f"  {_hint_text(hint)}")
    counts = Counter(hint.kind for hint in hints)
    console.print_line(
        ", ".join(f"{kind}: {number}" for kind, number in counts.items()) or "No hints.",
    )
    console.print_lines(_name_lines(name_lists(report)))


def _hint_text(hint: Hint) -> str:
    about = ", ".join(filter(None, (hint.source, _short(hint.detail, 160))))
    return f"{hint.kind}: {about}".rstrip(": ")


def check_ending(path: Path, has_judge: bool) -> None:
    """Check that a file's ending names a format.

    Raises:
        UsageError: it does not.
    """
    suffix = path.suffix.lower()
    if suffix not in (".html", ".htm", ".json", ".xml"):
        raise UsageError(f"-o {path}: name a file that ends in .html, .json or .xml")
    if not has_judge and suffix != ".json":
        raise UsageError(
            f"-o {path}: without a judge, check gives hints only: set OPENAI_API_KEY, choose "
            "another judge with --llm_provider, or name a file that ends in .json"
        )


def write_hints(path: Path, hints: Sequence[Sequence[Hint]]) -> None:
    """Write the hints about one or more reports as JSON. Raises OSError: it cannot."""
    _write_json(path, [[hint.model_dump() for hint in each] for each in hints])


def write_findings(path: Path, reports: Sequence[CheckedReport]) -> None:
    """Write what was found in one or more reports, as JSON or JUnit. Raises OSError: it cannot."""
    if path.suffix.lower() == ".xml":
        junit = JUnitReport()
        for report in reports:
            _add_claims(junit, report)
        write_whole(path, junit.content())
    else:
        _write_json(path, [report.model_dump(mode="json") for report in reports])


def _write_json(path: Path, reports: Sequence[object]) -> None:
    shown = reports[0] if len(reports) == 1 else reports
    write_whole(path, json.dumps(shown, ensure_ascii=False, indent=2) + "\n")


def _add_claims(junit: JUnitReport, found: CheckedReport) -> None:
    """Add the claims as test cases; an unavailable page is an error, not a failure."""
    claims = [
        (f"{statement.start}-{number}", claim)
        for statement in found.statements
        for number, claim in enumerate(statement.claims)
        if claim.sources
    ]
    for name, claim in claims:
        junit.add(
            found.name,
            f"{name} {claim.claim}",
            None if claim.verdict == "supported" else claim.verdict,
            "\n".join(f"{each.page}: {each.reason}{_quotation(each)}" for each in claim.sources),
            "error" if claim.verdict in ("page unavailable", "not judged") else "failure",
        )
