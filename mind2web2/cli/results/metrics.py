"""``mind2web2 metrics``: the averages of an agent, and what they rest on."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mind2web2.analysis.agent_report import (
    ReportedAgent,
    agent_report,
)
from mind2web2.analysis.changed_pages import changed_pages
from mind2web2.analysis.correction_record import (
    CorrectionFigures,
    CorrectionRoots,
    correcting_files,
)
from mind2web2.analysis.judge_checks import failed_check
from mind2web2.analysis.score_matrix import NO_ANSWER, NO_RUNS
from mind2web2.cli.console import PlainConsole
from mind2web2.cli.options import load_function, settings_of
from mind2web2.cli.results.chosen import chosen_tasks, domains_of, named_agents
from mind2web2.cli.results.tables import (
    print_metrics,
    print_now,
    print_verdicts,
    removed_tasks_text,
)
from mind2web2.errors import UsageError
from mind2web2.pages.barred import barred_list
from mind2web2.results.known_answers import require_results
from mind2web2.results.scored_answer import NEVER_EVALUATED, scored_by_judge
from mind2web2.utils.program import command_line
from mind2web2.utils.text import counted, number, percent

if TYPE_CHECKING:
    from mind2web2.analysis.audit_report import AuditReport
    from mind2web2.runs.settings import RunSettings

BELOW = 5


def run(options: argparse.Namespace) -> int:
    """Print the metrics and return the exit status.

    The status is 5 below ``--fail_under``, and 1 where a result is missing.
    """
    names = named_agents(options)
    settings = settings_of(options)
    paths = settings.paths
    if settings.eval_version is not None:
        paths.script_versions()  # raises where the version does not exist
    task_ids = chosen_tasks(settings, [paths.eval_results_root / name for name in names])
    console = PlainConsole()
    with console.show_warnings():
        agents = [_report_agent(options, settings, name, task_ids) for name in names]
    root = paths.eval_results_root
    audits = _audits(options, root, names)
    if options.json:
        _print_json(console, agents, audits)
    else:
        for agent in agents:
            _print_agent(console, settings, agent)
            if agent.name in audits:
                load_function("mind2web2.cli.results.audit:print_audit")(
                    console, audits[agent.name]
                )
        if len(agents) > 1:
            compare = command_line("compare", *names, *settings.options())
            console.print_line(f"To see whether they differ by more than chance: {compare}")
    below = _below(agents, options.fail_under)
    if below:
        if not options.json:
            console.print_line(f"Below --fail_under {options.fail_under:g}: {', '.join(below)}")
        return BELOW
    return 1 if any(agent.report.summary.missing for agent in agents) else 0


# Most calls want none of these parts, and each has modules of its own.


def _audits(
    options: argparse.Namespace, root: Path, agent_names: Sequence[str]
) -> dict[str, AuditReport]:
    """Return what people's labels of each agent say, if they are asked for.

    Raises:
        UsageError: an agent has none.
    """
    audits: dict[str, AuditReport] = {}
    for name in agent_names if options.audit else ():
        report = load_function("mind2web2.analysis.audit_report:audit_report")(
            root, options.audits_root, name
        )
        if report is None:
            raise UsageError(
                f"no labels of agent {name} under {options.audits_root}; "
                f"make some with: {command_line('view', name, '--audit', 'YOUR_NAME')}"
            )
        audits[name] = report
    return audits


def _corrected(
    roots: CorrectionRoots, name: str, task_ids: list[str] | None
) -> CorrectionFigures | None:
    if not correcting_files(roots, name):
        return None
    corrected = load_function("mind2web2.analysis.corrections:corrected_figures")
    figures: CorrectionFigures | None = corrected(roots, name, task_ids)
    return figures


def _report_agent(
    options: argparse.Namespace,
    settings: RunSettings,
    name: str,
    task_ids: list[str] | None,
) -> ReportedAgent:
    paths = settings.paths
    root = paths.eval_results_root
    require_results(root, name)
    return agent_report(
        paths,
        name,
        task_ids,
        domains_of(settings),
        by_tag=options.by_tag,
        corrected=_corrected(
            CorrectionRoots(root, options.audits_root, options.rejudged_root), name, task_ids
        ),
        barred=barred_list(options.barred),
    )


def _below(agents: Sequence[ReportedAgent], limit: float | None) -> list[str]:
    """Return the agents whose partial completion is below ``--fail_under``, each with it."""
    scores = {agent.name: agent.report.summary.shown_score for agent in agents}
    return [
        f"{name} {number(score)}"
        for name, score in scores.items()
        if limit is not None and score is not None and score < limit
    ]


def _print_json(
    console: PlainConsole,
    agents: Sequence[ReportedAgent],
    audits: Mapping[str, AuditReport],
) -> None:
    contents = []
    for agent in agents:
        probed = [report.figures() for report in changed_pages(agent.name)]
        content_of_agent: dict[str, object] = {**agent.report.as_json(), "changed_pages": probed}
        if agent.name in audits:
            content_of_agent["audit"] = audits[agent.name].model_dump(mode="json")
        contents.append(content_of_agent)
    content: dict[str, object] = contents[0]
    if len(agents) > 1:
        content = {"agents": contents}
    console.print_json(json.dumps(content))


def _print_agent(
    console: PlainConsole,
    settings: RunSettings,
    agent: ReportedAgent,
) -> None:
    report = agent.report
    has_scores = report.summary.avg_score is not None
    if has_scores:
        print_metrics(console, report.summary)
    else:
        console.print_line(f"No answer of {agent.name} has a score.")
    for missing in report.summary.missing:
        # A warning sums up the answers that do not exist.
        if missing.reason not in (NO_ANSWER, NO_RUNS, NEVER_EVALUATED):
            name = f"{missing.task_id}/{missing.answer_name}"
            console.print_line(f"No result: {name}: {missing.reason}")
    if has_scores:
        _print_grounds(console, settings, agent)
        for probe in changed_pages(agent.name):
            console.print_line(probe.sentence)
    _print_present(console, settings, agent)
    if agent.not_written:
        console.print_line(f"Warning: the numbers were not stored: {agent.not_written}")
    if report.sentence is not None:
        console.print_line(f"To copy: {report.sentence}")
    _print_groups(console, agent)


def _print_grounds(console: PlainConsole, settings: RunSettings, agent: ReportedAgent) -> None:
    """Print what the scores rest on: corrections, verdicts, bounds and checks of the judge."""
    report = agent.report
    if report.corrected is not None:
        console.print_lines(report.corrected.lines())
    print_verdicts(console, report.summary.verdicts)
    judges = {(each.facts.judge, each.facts.server) for each in scored_by_judge(agent.answers)}
    # If there are several judges, the newest result names the check of one.
    check = None if agent.newest is None else agent.newest.run.judge_check
    if len(judges) == 1 and check is not None:
        console.print_line(f"The judge's check when these scores were made: {check}.")
    if judge := failed_check(settings.paths.eval_results_root, agent.name):
        console.print_line(f"Warning: {judge}")
    console.print_lines(report.cautions, "Warning: ")


def _print_present(console: PlainConsole, settings: RunSettings, agent: ReportedAgent) -> None:
    """Print which results are out of date, and which answers have none."""
    now = agent.report.now
    root = settings.paths.eval_results_root / agent.name
    unevaluated = [
        f"{each.task_id}/{each.answer_name}"
        for each in agent.report.summary.missing
        if each.reason == NEVER_EVALUATED
    ]
    evaluate = command_line("evaluate", agent.name, *settings.options())
    print_now(console, now, unevaluated, evaluate)
    if now.removed:
        console.print_line(f"Note: {removed_tasks_text(root, now.removed)}")


def _print_groups(console: PlainConsole, agent: ReportedAgent) -> None:
    """Print the figures by domain and by tag."""
    report = agent.report
    for domain in report.by_domain:
        console.print_line(
            f"{agent.name}, domain {domain.domain}: partial completion {number(domain.avg_score)}, "
            f"pass@{report.summary.num_runs} {number(domain.pass_at_k)} "
            f"({counted(domain.tasks, 'task')})",
        )
    if report.by_tag is not None and not report.by_tag:
        console.print_line(
            f"{agent.name}: no leaf has a tag (write tags=[...] in scripts, tags: in rubric files)",
        )
    for tag in report.by_tag or ():
        leaves = counted(tag.leaves, "leaf")
        counts = f"{leaves} of {counted(tag.answers, 'answer')}, {counted(tag.tasks, 'task')}"
        console.print_line(
            f"{agent.name}, tag {tag.tag}: {percent(tag.passed)} of its leaves passed ({counts})",
        )
