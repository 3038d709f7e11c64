"""The eval script of checks and the reader of its result, for programs that hold a ``Scorer``."""

from __future__ import annotations

import asyncio
from pathlib import Path

from mind2web2 import NoScore, Scorer
from mind2web2.plugin import (
    ResultFile,
    uniform_text,
)
from mind2web2_check.findings import CheckedReport, checked_report
from mind2web2_check.statements import read_report
from mind2web2_check.verdicts import verdicts_of

TASK = "report"
ANSWER = "answer_1"
SCRIPTS = Path(__file__).parent / "eval_scripts"
SCRIPT = SCRIPTS / "check" / f"{TASK}.py"


async def check_report(scorer: Scorer, report: str) -> CheckedReport | NoScore:
    """Check a report as ``mind2web2 check`` does; return why there is no verdict if there is none.

    Raises:
        AnswerError: the report is too large, or no text.
    """
    outcome = await scorer.score(TASK, report, SCRIPT)
    if isinstance(outcome, NoScore):
        return outcome
    return await asyncio.to_thread(_findings, report, ResultFile.of(dict(outcome.result)))


def _findings(report: str, result: ResultFile) -> CheckedReport:
    read = read_report(uniform_text(report))
    return checked_report("report", read, verdicts_of(read, result), result.judge_model)
