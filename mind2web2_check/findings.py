"""All that a check found in one report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from operator import itemgetter

from pydantic import BaseModel, computed_field

from mind2web2.plugin import counted
from mind2web2_check.figures import Figure, FigureName, figures_of
from mind2web2_check.sources import SourcePage
from mind2web2_check.statements import ReadReport
from mind2web2_check.verdicts import ORDER, SourceVerdict, StatementVerdict, Verdict

# As the capture words them: the name does not exist.
MARKS_WITHOUT_SOURCE = "Marks without a source"

_LABELS: Mapping[FigureName, str] = {
    "precision": "Citation precision (supported claims, of those whose page was read)",
    "coverage": "Coverage (claims with a source, of those that need one)",
    "contradicted": "Contradicted claims, of those whose page was read",
    "unavailable": "Sources whose page was unavailable",
}
_UNCHECKED: tuple[Verdict, ...] = ("not judged", "page unavailable", "no source given")


def name_lists(report: ReadReport | CheckedReport) -> Iterator[tuple[str, list[str]]]:
    """Yield the marks and addresses of a report that lead to nothing, each list with a title."""
    lists = {
        MARKS_WITHOUT_SOURCE: report.unresolved,
        "Sources that no statement cites": report.uncited,
    }
    yield from filter(itemgetter(1), lists.items())


class CheckedReport(BaseModel):
    """The verdicts, the figures, and what is wrong with the citations themselves.

    Args:
        invented: addresses whose host has never resolved.
        contaminated: sources about a benchmark (docs/trust.md); ``precision_without`` is the
            citation precision of the claims that rest on none of them.
        retracted: sources whose page says that the work was retracted.
    """

    name: str
    statements: list[StatementVerdict]
    figures: dict[FigureName, Figure | None]
    unresolved: list[str]
    uncited: list[str]
    invented: list[str] = []
    contaminated: list[str] = []
    precision_without: Figure | None = None
    retracted: list[str] = []
    judge: str | None = None

    @computed_field  # type: ignore[prop-decorator] # how the library's users write it
    @property
    def not_judged(self) -> list[str]:
        """The claims that were not judged; their sources have the reason."""
        claims = (claim for each in self.statements for claim in each.claims)
        return [claim.claim for claim in claims if claim.verdict == "not judged"]

    @property
    def sources(self) -> list[SourceVerdict]:
        """Return what the pages say about all claims."""
        return [source for each in self.statements for source in each.sources]

    @property
    def summary(self) -> str:
        """Return the findings in one sentence."""
        checkable = [each for each in self.statements if each.checkable]
        counts = Counter(claim.verdict for each in checkable for claim in each.claims)
        unchecked = Counter({verdict: counts.pop(verdict, 0) for verdict in _UNCHECKED})
        if not checkable:
            return "no claim was found"
        total, held = counts.total(), ""
        if total:
            supported = f"{counts.pop('supported', 0)} of {counted(total, 'checked claim')}"
            held = f"{supported} {'holds' if total == 1 else 'hold'}"
        others = (f"{n} {'is' if n == 1 else 'are'} {each}" for each, n in _in_order(counts))
        named = ", ".join(f"{n} {each}" for each, n in _in_order(unchecked))
        left = named and f"not checked: {named}"
        return "; ".join(filter(None, (held, ", ".join(others), left)))

    def figure_rows(self) -> Iterator[tuple[str, str]]:
        """Yield each figure with its label, as text."""
        figures = [(label, self.figures.get(name)) for name, label in _LABELS.items()]
        if self.contaminated:
            figures.append(
                ("Citation precision without sources about a benchmark", self.precision_without)
            )
        for label, figure in figures:
            yield label, str(figure or "-")

    def name_lists(self) -> Iterator[tuple[str, list[str]]]:
        """Yield what is wrong with the citations themselves: a title, and addresses or marks."""
        lists = {
            "Sources about a benchmark": self.contaminated,
            "Sources that say that they were retracted": self.retracted,
            "Invented addresses, whose host does not exist": self.invented,
        }
        yield from filter(itemgetter(1), lists.items())
        yield from name_lists(self)

    def name_pages(self, pages: Mapping[str, SourcePage]) -> None:
        """Say which copy was read in place of a source, and why a page could not be read."""
        for source in self.sources:
            page = pages[source.source]
            if page.is_stand_in:
                source.page, source.depth = page.read_at, "stand-in"
            if source.verdict == "page unavailable":
                source.reason = page.problem or source.reason


def checked_report(
    name: str, read: ReadReport, statements: list[StatementVerdict], judge: str | None
) -> CheckedReport:
    """Return all that was found in a report.

    Args:
        judge: ``None`` for a check that was stopped, which has no figures.
    """
    return CheckedReport(
        name=name,
        statements=statements,
        figures=figures_of(statements) if judge else {},
        unresolved=read.unresolved,
        uncited=read.uncited,
        judge=judge,
    )


def precision_without(
    statements: Sequence[StatementVerdict], sources: Collection[str]
) -> Figure | None:
    """Return the citation precision of the claims that rest on none of these sources."""
    others = [
        statement
        for statement in statements
        if not {source.page for source in statement.sources}.intersection(sources)
    ]
    return figures_of(others)["precision"]


def _in_order(counts: Counter[Verdict]) -> list[tuple[Verdict, int]]:
    return [(each, counts[each]) for each in ORDER if counts[each]]
