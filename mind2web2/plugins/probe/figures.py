"""The figures of stored probes in ``metrics`` and ``check-judge``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mind2web2.analysis.changed_pages import ChangedPages, report_lines
from mind2web2.hooks import Figure, FigureMaker
from mind2web2.judge.judgment import JudgeIdentity
from mind2web2.plugins.probe.report import stored_reports


class ProbeFigures(FigureMaker):
    """Shows how often a judge noticed a changed fact, where it was asked."""

    def of_agent(self, eval_results_root: Path, agent_name: str) -> Figure | None:  # noqa: ARG002
        """Return a line on each judge that was asked about the agent's pages."""
        return _figure(stored_reports(agent_name))

    def of_judge(self, eval_results_root: Path, judge: JudgeIdentity) -> Figure | None:  # noqa: ARG002
        """Return a line on each agent on whose pages the judge was asked."""
        return _figure([each for each in stored_reports(None) if each.judge == judge.model])


FIGURES = ProbeFigures()


def _figure(reports: Sequence[ChangedPages]) -> Figure | None:
    if not reports:
        return None
    return Figure(report_lines(reports), [report.figures() for report in reports])
