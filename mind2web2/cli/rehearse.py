"""``mind2web2 rehearse``: tasks tried without a judge, before any agent answers them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from mind2web2.cli.options import (
    Subcommands,
    add_settings,
    asking_providers,
    given_settings,
    positive_seconds,
)
from mind2web2.cli.scorer_options import SCORING_DEFAULTS, scorer_of
from mind2web2.cli.settings_file import settings_of
from mind2web2.errors import UsageError
from mind2web2.runs.settings import JUDGE_SETTINGS, SETTINGS
from mind2web2.utils.text import counted

if TYPE_CHECKING:
    from rich.console import Console

    from mind2web2.authoring.rehearsal import RehearsalPlan, TaskRehearsal
    from mind2web2.scoring.scorer import Score, Scorer

DESCRIPTION = """\
Try a task before agents answer it: no key, no pages, seconds (docs/rehearsals.md).

  mind2web2 rehearse TASK                  what its structure is worth, and its author's cases
  mind2web2 rehearse TASK --write_cases    write variants of rehearsals/TASK/perfect.md first
  mind2web2 rehearse --strict              all tasks; exit status 1 where there is a finding
  mind2web2 rehearse TASK --judge_model M --pages cache/my_agent    the same cases by a real judge

Findings are points for worthless answers, leaves that never matter, are never reached or always fall
together, missing items that cost nothing, and cases whose score is not the expected one.
"""
_WORLD_TIMEOUT_S = 10.0
_CASES = Path("rehearsals")
_MISSING_PAGES = "no_score"
_CHANGED = (
    asking_providers(),
    replace(
        SETTINGS["judge_model"],
        help="judge the cases by this model",
        default_text="by policy",
    ),
    replace(SETTINGS["max_cost"], help="stop asking at this cost, for good"),
)


def add_command(commands: Subcommands) -> None:
    """Add ``rehearse`` to ``mind2web2``."""
    parser = commands.add_parser(
        "rehearse", help="try tasks without a judge", description=DESCRIPTION
    )
    add = parser.add_argument
    add(
        "tasks",
        metavar="TASK",
        nargs="*",
        help="task ids (default: all with a script or rubric file)",
    )
    add(
        "--cases",
        metavar="DIR",
        type=Path,
        default=_CASES,
        help="the cases, a folder a task",
    )
    add(
        "--write_cases",
        action="store_true",
        help="write the variants of perfect.md that are not there",
    )
    add(
        "--write_golden",
        action="store_true",
        help="keep the trees of the cases, to be compared from now on",
    )
    add(
        "--world_timeout",
        metavar="S",
        type=positive_seconds,
        default=_WORLD_TIMEOUT_S,
        help="seconds that a script has for one made-up answer (default: %(default)g)",
    )
    add(
        "--strict",
        # Not the setting of this name, by which a script's mistakes leave no score.
        dest="fails_on_findings",
        action="store_true",
        help="exit status 1 where there is a finding; without it, only where a task or case fails to run",
    )
    add(
        "--junit",
        metavar="FILE",
        type=Path,
        help="write the findings and cases as JUnit XML",
    )
    add("--json", action="store_true", help="print everything as JSON")
    judge = parser.add_argument_group("a real judge, for the cases")
    judge.add_argument(
        "--pages",
        metavar="DIR",
        type=Path,
        help="the cached pages, a folder a task: cache/AGENT",
    )
    judge.add_argument(
        "--missing_pages",
        choices=("no_score", "unavailable", "capture"),
        default=_MISSING_PAGES,
        help="a page that is not there: no score (default), unavailable (claims on it fail), or capture it",
    )
    add_settings(parser, ["allow_private_network"], group=judge)
    settings = ("eval_scripts_root", "eval_version", *JUDGE_SETTINGS, "max_cost")
    add_settings(parser, settings, base=SCORING_DEFAULTS, changed=_CHANGED)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Rehearse the tasks, print the findings, and return the exit status."""
    from mind2web2.cli.console import plain_console
    from mind2web2.cli.rehearsing import rehearsal_plans, rehearse_all

    # A model in mind2web2.toml does not mean that the user wants to pay for one here.
    is_judged = given_settings(options).judge_model is not None
    if not is_judged:
        _refuse_judge_options(options.pages, options.missing_pages)
    if options.cases != _CASES and not options.cases.is_dir():
        raise UsageError(f"--cases: there is no folder {options.cases}")
    settings = settings_of(options, is_announced=is_judged)
    plans = [
        replace(
            plan,
            writes_cases=options.write_cases,
            writes_golden=options.write_golden,
            world_timeout_s=options.world_timeout,
        )
        for plan in rehearsal_plans(settings, options.tasks, options.cases)
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
    from mind2web2.authoring.cases import TOLERANCE, BrokenCase, read_cases
    from mind2web2.authoring.rehearsal import CaseResult
    from mind2web2.scoring.scorer import Score

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
    from mind2web2.results.result_file import ResultFile

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
    from mind2web2.cli.console import line
    from mind2web2.utils.dollars import dollars

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
    from mind2web2.cli.results.tables import junit_xml
    from mind2web2.utils.files import write_whole

    suites = []
    for report in reports:
        findings = report.findings
        attributes = {
            "name": report.task_id,
            "tests": str(len(findings) or 1),
            "failures": str(len(findings)),
        }
        suite = ElementTree.Element("testsuite", attributes)
        for finding in findings:
            case = ElementTree.SubElement(
                suite, "testcase", {"name": finding.kind, "classname": report.task_id}
            )
            ElementTree.SubElement(case, "failure", {"message": finding.message})
        if not findings:
            ElementTree.SubElement(
                suite, "testcase", {"name": "rehearsal", "classname": report.task_id}
            )
        suites.append(suite)
    write_whole(path, junit_xml(suites))
