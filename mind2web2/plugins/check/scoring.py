"""The eval script of checks and the reader of its result, for ``Scorer.check`` and the viewer."""

from __future__ import annotations

from pathlib import Path

from mind2web2.plugins.check.findings import CheckedReport, checked_report
from mind2web2.plugins.check.page import report_page
from mind2web2.plugins.check.rubric import CLAIMS
from mind2web2.plugins.check.statements import read_report
from mind2web2.results.answers import uniform_text
from mind2web2.results.result_file import ResultFile
from mind2web2.utils.path_config import ScriptFile

TASK = "report"
SCRIPTS = Path(__file__).parent / "eval_scripts"
SCRIPT = ScriptFile(SCRIPTS / "check" / f"{TASK}.py", "check")


def script_with(question: str) -> str:
    """Return the text of the script for a report whose question is known."""
    text = SCRIPT.path.read_text(encoding="utf-8")
    return text.replace('QUESTION = ""', f"QUESTION = {question!r}")


def findings(report: str, result: ResultFile) -> CheckedReport:
    """Return what the result of a check says about a report."""
    return checked_report("report", read_report(uniform_text(report)), result)


def is_checked(result: ResultFile) -> bool:
    """Tell whether a result is that of a check."""
    return any(
        name == CLAIMS and isinstance(value, dict) and "statements" in value
        for name, value in result.info_entries()
    )


def page(report: str, result: ResultFile, evidence: str) -> str:
    """Return the report as a page with each statement marked.

    Args:
        evidence: the address below which the viewer shows each leaf beside its page.
    """
    return report_page(findings(report, result), uniform_text(report), evidence)
