"""``mind2web2 rehearse``: tasks tried without a judge, before any agent answers them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from mind2web2.authoring.cases import TOLERANCE, BrokenCase, read_cases
from mind2web2.authoring.rehearsal import CaseResult, RehearsalPlan, TaskRehearsal
from mind2web2.cli.console import line, plain_console
from mind2web2.cli.options import (
    given_settings,
)
from mind2web2.cli.rehearsing import rehearsal_plans, rehearse_all
from mind2web2.cli.scorer_options import scorer_of
from mind2web2.cli.settings_file import settings_of
from mind2web2.errors import UsageError
from mind2web2.results.result_file import ResultFile
from mind2web2.scoring.scorer import Score, Scorer
from mind2web2.utils.dollars import dollars
from mind2web2.utils.files import write_whole
from mind2web2.utils.junit import JUnitCase, JUnitSuite, junit_xml
from mind2web2.utils.text import counted

_CASES = Path("rehearsals")
_MISSING_PAGES = "no_score"


def run(options: argparse.Namespace) -> int:
    """Rehearse the tasks, print the findings, and return the exit status."""
    # A model in mind2web2.toml does not mean that the user wants to pay for one here.
    is_judged = given_settings(options).judge_model is not None
    if not is_judged:
        _refuse_judge_options(options.pages, options.missing_pages)
    cases: Path = options.cases or _CASES
    if options.cases is not None and not cases.is_dir():
        raise UsageError(f"--cases: there is no folder {cases}")
    settings = settings_of(options, is_announced=is_judged)
    plans = [
        replace(
            plan,
            writes_cases=options.write_cases,
            writes_golden=options.write_golden,
            world_timeout_s=options.world_timeout,
        )
        for plan in rehearsal_plans(settings, options.tasks, cases)
    ]
    reports = rehearse_all(plans)
    if is_judged:
        with scorer_of(settings, options.pages, options.missing_pages) as scorer:
            reports = [
                _judged(scorer, plan, report) for plan, report in zip(plans, reports, strict=True)
            ]
    console = plain_console()
    if options.json:
        console.print_json(json.dumps([report.as_json() for report in reports]))
    else:
        _print(console, reports)
    if options.junit is not None:
        _write_junit(options.junit, reports)
    is_incomplete = any(report.is_incomplete for report in reports)
    has_findings = any(report.findings for report in reports)
    return 1 if is_incomplete or (options.fails_on_findings and has_findings) else 0


def _refuse_judge_options(pages: Path | None, missing_pages: str) -> None:
    if pages is not None:
        raise UsageError("--pages is for a real judge: add --judge_model")
    if missing_pages != _MISSING_PAGES:
        raise UsageError("--missing_pages is for a real judge: add --judge_model")


def _judged(scorer: Scorer, plan: RehearsalPlan, report: TaskRehearsal) -> TaskRehearsal:
    """Return the report with the cases as a real judge decides them."""
    results = []
    for case in read_cases(plan.cases):
        if isinstance(case, BrokenCase):
            results.append(CaseResult.of_broken(case))
            continue
        expected = case.header.expect
        score = scorer.score_sync(plan.task_id, case.answer)
        if isinstance(score, Score):
            differs = None if abs(score.score - expected) <= TOLERANCE else _first_shortfall(score)
            results.append(CaseResult(case.name, expected, score.score, differs))
        else:
            results.append(CaseResult(case.name, expected, None, score.reason))
    return replace(report, cases=tuple(results))


def _first_shortfall(score: Score) -> str:

    leaves = ResultFile.of(score.result).leaves()
    short = next((leaf for leaf in leaves if leaf.status != "passed"), None)
    if short is None:
        return "every leaf passed"
    text = f"first leaf that did not pass: {short.id}"
    for page in short.evidence.pages if short.evidence is not None else ():
        if page.outcome == "unavailable":
            text += f"; {page.url} is unavailable: {page.reason}"
    return text


def _print(console: Console, reports: Sequence[TaskRehearsal]) -> None:

    for report in reports:
        if report.error is not None:
            line(console, f"{report.task_id}: {report.error}")
            continue
        found = report.structure
        price = (
            f"the price of {found.judge_model} is unknown (mind2web2.toml can state it)"
            if found.cost_usd is None
            else f"about {dollars(found.cost_usd)} an answer by {found.judge_model}"
        )
        line(
            console,
            f"{report.task_id}: {counted(found.leaves, 'leaf')}, "
            f"{counted(found.judgments, 'judgment')} in {counted(found.longest_chain, 'round')}, "
            f"{counted(found.pages, 'page')}; {price}",
        )
        line(
            console,
            "    made-up answers: "
            + "; ".join(f"{name} {score:.2f}" for name, score in found.scores.items()),
        )
        if found.gates:
            worst = min(found.gates.values())
            named = ", ".join(
                [name for name, score in found.gates.items() if score <= worst + 1e-9][:6]
            )
            line(
                console,
                f"    {counted(len(found.gates), 'gate')}; "
                f"the score falls to {worst:.2f} where one of these fails: {named}",
            )
        if found.unshown:
            line(
                console,
                f"    decided by code and seen to pass in no rehearsal: {', '.join(found.unshown)}: "
                f"write a case (rehearsals/{report.task_id}/perfect.md)",
            )
        for path in report.written:
            line(console, f"    written: {_shown(path)}")
        for case in report.cases:
            finding = "" if case.differs is None else f"  FINDING {case.differs}"
            line(console, f"    case {case.name}: {case}{finding}")
        for each in report.structure.findings:
            line(console, f"    FINDING {each.kind}: {each.message}")
    total = sum(len(report.findings) for report in reports)
    line(console, f"{counted(len(reports), 'task')}, {counted(total, 'finding')}")


def _shown(path: str) -> str:
    here = str(Path.cwd())
    if path.startswith(here):
        return path.removeprefix(here).lstrip("/")
    return path


def _write_junit(path: Path, reports: Sequence[TaskRehearsal]) -> None:
    write_whole(path, junit_xml([_suite(report) for report in reports]))


def _suite(report: TaskRehearsal) -> JUnitSuite:
    task_id = report.task_id
    cases = [JUnitCase(task_id, each.kind, each.message) for each in report.findings]
    return JUnitSuite(task_id, cases or [JUnitCase(task_id, "rehearsal")], {})
