"""All that a check found in one report."""

from __future__ import annotations

from pydantic import BaseModel

from mind2web2.plugins.check.figures import Figure, FigureName, figures_of
from mind2web2.plugins.check.statements import ReadReport
from mind2web2.plugins.check.verdicts import StatementVerdict, verdicts_of
from mind2web2.runs.result_file import ResultFile

# As the capture words them: the name does not exist.
_NEVER_RESOLVED = "there is no host"


class CheckedReport(BaseModel):
    """The verdicts, the figures, and what is wrong with the citations themselves.

    Args:
        invented: addresses whose host has never resolved.
    """

    name: str
    statements: list[StatementVerdict]
    figures: dict[FigureName, Figure | None]
    unresolved: list[str]
    uncited: list[str]
    invented: list[str]
    judge: str | None = None


def checked_report(name: str, read: ReadReport, result: ResultFile) -> CheckedReport:
    """Return what the result of a check says about a report."""
    statements = verdicts_of(read, result)
    return CheckedReport(
        name=name,
        statements=statements,
        figures=figures_of(statements),
        unresolved=read.unresolved,
        uncited=read.uncited,
        invented=_invented(statements),
        judge=result.judge_model,
    )


def _invented(statements: list[StatementVerdict]) -> list[str]:
    sources = [
        source.source
        for statement in statements
        for claim in statement.claims
        for source in claim.sources
        if _NEVER_RESOLVED in source.reason
    ]
    return list(dict.fromkeys(sources))
