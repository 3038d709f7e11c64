"""``mind2web2 rehearse``: would a task's rubric give a right answer 1 and a wrong one 0?"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import shorten

from pydantic import TypeAdapter

from mind2web2 import NoScore, Scorer
from mind2web2.plugin import (
    JUnitReport,
    PlainConsole,
    ReadRubric,
    ResultFile,
    UsageError,
    YamlFileError,
    counted,
    dollars,
    script_of,
    settings_of,
    write_whole,
)
from mind2web2_authoring.cases import CaseOutcome, case_paths, outcome_of, read_case
from mind2web2_authoring.rehearsal import RehearsalPlan, TaskRehearsal
from mind2web2_authoring.rehearse_command import CASES
from mind2web2_authoring.rehearsing import rehearsal_plans, rehearse_all
from mind2web2_authoring.rubric_outline import tree_lines

_REPORTS = TypeAdapter(list[TaskRehearsal])
_MAX_FINDINGS = 5
_QUESTION_CHARS = 100

_MISSING_PAGES = "no_score"


def run(options: argparse.Namespace) -> int:
    """Rehearse the tasks, print the verdicts, and return the exit status."""
    if options.show_tree or options.write_script is not None:
        return _convert(options.tasks, options.write_script)
    # A model in mind2web2.toml does not mean that the user wants to pay for one here.
    is_judged = "judge_model" in options
    if not is_judged:
        _refuse_judge_options(options.pages, options.missing_pages)
    cases: Path = options.cases
    if cases != CASES and not cases.is_dir():
        raise UsageError(f"--cases: there is no folder {cases}")
    settings = settings_of(options, is_announced=is_judged)
    plans = [
        replace(
            plan,
            runs=not options.no_run,
            writes_cases=options.write_cases,
            timeout_s=options.timeout,
        )
        for plan in rehearsal_plans(settings, options.tasks, cases)
    ]
    reports = rehearse_all(plans)
    if is_judged:
        with Scorer.of_settings(settings, options.pages, options.missing_pages) as scorer:
            reports = [
                _judge_cases(scorer, plan, report)
                for plan, report in zip(plans, reports, strict=True)
            ]
    console = PlainConsole()
    if options.json:
        console.print_json(_REPORTS.dump_json(reports).decode())
    elif options.tasks or options.verbose:
        _print(console, reports, settings.model, is_verbose=options.verbose)
    else:
        _print_table(console, reports, is_run=not options.no_run)
    if options.junit is not None:
        _write_junit(options.junit, reports)
    if options.fails_unless_sound:
        return int(any(report.verdict != "sound" for report in reports))
    return int(any(report.error is not None for report in reports))


def _convert(files: Sequence[str], script: Path | None) -> int:
    """Print the tree of a rubric file, or write it as a script."""
    if len(files) != 1 or not Path(files[0]).is_file():
        raise UsageError("name one rubric file, such as eval_scripts/VERSION/TASK.yaml")
    read = ReadRubric.at(Path(files[0]))
    if read is None:
        raise UsageError(f"{files[0]} is not a rubric file")
    if script is None:
        PlainConsole().print_lines(tree_lines(read))
        return 0
    if script.exists():
        raise UsageError(f"{script} is there already: name another file")
    write_whole(script, script_of(read))
    return 0


def _refuse_judge_options(pages: Path | None, missing_pages: str) -> None:
    if pages is not None:
        raise UsageError("--pages is for a real judge: add --judge_model")
    if missing_pages != _MISSING_PAGES:
        raise UsageError("--missing_pages is for a real judge: add --judge_model")


def _judge_cases(scorer: Scorer, plan: RehearsalPlan, report: TaskRehearsal) -> TaskRehearsal:
    """Return the report with the cases as a real judge decides them."""
    results = []
    for path in case_paths(plan.cases):
        try:
            case = read_case(path)
        except YamlFileError as error:
            results.append(CaseOutcome(path.stem, None, None, str(error)))
            continue
        score = scorer.score_sync(plan.task_id, case.answer)
        if isinstance(score, NoScore):
            results.append(CaseOutcome(case.name, case.header.expect, None, score.reason))
            continue
        leaves = list(ResultFile.of(score.result).leaves())
        results.append(outcome_of(case, leaves, score.score))
    return report.with_cases(tuple(results))


def _print(
    console: PlainConsole, reports: Sequence[TaskRehearsal], model: str, *, is_verbose: bool
) -> None:
    for report in reports:
        reason = f": {report.reason}" if report.verdict == "cannot tell" else ""
        console.print_line(f"{report.task_id}: {report.verdict}{reason}")
        if is_verbose:
            console.print_line(f"    {report.question}")
        shown = report.findings if is_verbose else report.certain[:_MAX_FINDINGS]
        for finding in shown:
            console.print_line(f"    {finding}")
            if finding.cure:
                console.print_line(f"        {finding.cure}")
        more = len(report.findings) - len(shown)
        if more:
            console.print_line(f"    and {more} more: -v")
        if report.is_made_up and not report.reason:
            console.print_line("    tried with made-up values: write perfect.md to try yours")
        if report.reason and report.verdict != "cannot tell":
            console.print_line(f"    more cannot be told: {report.reason}")
        for case in report.cases if is_verbose else ():
            console.print_line(f"    case {case.name}: {case}")
        if report.program_order:
            console.print_line(f"    runs in program order, which is slow: {report.program_order}")
        for path in report.written:
            console.print_line(f"    written: {os.path.relpath(path)}")
        amounts = report.amounts
        if amounts.judgments:
            each = (
                f"the price of {model} is unknown (mind2web2.toml can state it)"
                if amounts.cost_usd is None
                else f"about {_price(report)} an answer by {model}"
            )
            console.print_line(
                f"    {counted(amounts.leaves, 'leaf')}, {counted(amounts.judgments, 'judgment')}, "
                f"{counted(amounts.pages, 'page')}; {each}",
            )
    console.print_line(_totals(reports))


def _print_table(console: PlainConsole, reports: Sequence[TaskRehearsal], *, is_run: bool) -> None:
    width = max(len(report.task_id) for report in reports)
    heads = "leaves  judgments        $" if is_run else "question"
    console.print_line(f"{'task':<{width}}  verdict      {heads}  findings; the worst")
    for report in reports:
        amounts, worst = report.amounts, report.reason
        if report.findings:
            worst = "; ".join([str(len(report.findings)), *map(str, report.certain[:1])])
        middle = f"{amounts.leaves:6}  {amounts.judgments:9}  {_price(report):>7}"
        if not is_run:
            middle = shorten(report.question, _QUESTION_CHARS, placeholder="…")
        console.print_line(
            f"{report.task_id:<{width}}  {report.verdict:<11}  {middle}  {worst}".rstrip()
        )
    console.print_line(_totals(reports))


def _totals(reports: Sequence[TaskRehearsal]) -> str:
    verdicts = [report.verdict for report in reports]
    counts = [
        f"{verdicts.count(verdict)} {verdict}"
        for verdict in ("sound", "faulty", "look at", "cannot tell")
        if verdict in verdicts
    ]
    return f"{counted(len(reports), 'task')}: {', '.join(counts)}"


def _price(report: TaskRehearsal) -> str:
    cost_usd = report.amounts.cost_usd
    return "-" if cost_usd is None else dollars(cost_usd)


def _write_junit(path: Path, reports: Sequence[TaskRehearsal]) -> None:
    junit = JUnitReport()
    for report in reports:
        for each in report.findings:
            trouble = f"{each}; {each.cure}".removesuffix("; ")
            junit.add(report.task_id, each.kind, trouble)
        # A sound task, and one of which nothing can be told.
        if not report.findings:
            junit.add(report.task_id, report.verdict, report.reason or None)
    write_whole(path, junit.content())
