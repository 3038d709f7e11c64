"""``mind2web2 audit``: the judge's quality by human labels, and the score that they correct."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mind2web2.cli.options import Subcommands, add_folder_options, add_json_option
from mind2web2.cli.results.chosen import check_record
from mind2web2.cli.settings_file import paths_of, settings_of
from mind2web2.errors import UsageError
from mind2web2.utils.names import check_name
from mind2web2.utils.program import program
from mind2web2.utils.text import counted

if TYPE_CHECKING:
    from rich.console import Console

    from mind2web2.runs.audited import JudgeQuality
    from mind2web2.runs.corrected import CorrectedScore
    from mind2web2.runs.exported_labels import LabelExport
    from mind2web2.statistics.agreement import Figures
    from mind2web2.statistics.paired import Estimate
    from mind2web2.statistics.uncertainty import Interval

DESCRIPTION = """\
Compare the judge with people: how often they agree, which errors the judge makes, and the score corrected by
the labels. Labels are made with: mind2web2 view AGENT --audit NAME

  mind2web2 audit my_agent
  mind2web2 audit my_agent --export labels.jsonl      for: mind2web2 check-judge --labels labels.jsonl
"""
# The interval of these tasks that further labels are to reach.
REACH = 0.02


def add_command(commands: Subcommands) -> None:
    """Add ``audit`` to ``mind2web2``."""
    parser = commands.add_parser(
        "audit", help="check the judge by human labels", description=DESCRIPTION
    )
    parser.add_argument(
        "agent", metavar="AGENT", help="the agent, a folder under eval_results/"
    )
    add_json_option(parser)
    add_audits_root(parser)
    parser.add_argument(
        "--export",
        metavar="FILE",
        type=Path,
        help="write the blind labels with claims, answers and pages as JSON lines, to check other judges by",
    )
    add_folder_options(parser, "eval_results_root", "answer_folder", "cache_root")
    parser.set_defaults(run=run)


def add_audits_root(parser: argparse.ArgumentParser) -> None:
    """Add the folder of human labels."""
    parser.add_argument(
        "--audits_root",
        metavar="DIR",
        type=Path,
        default=Path("audits"),
        help="where labels go (default: audits/)",
    )


def run(options: argparse.Namespace) -> int:
    """Print the figures and return the exit status."""
    from mind2web2.cli.console import line, plain_console
    from mind2web2.runs.audit_report import audit_report
    from mind2web2.runs.exported_labels import LabelExport

    agent = check_name("agent", options.agent.rstrip("/"))
    settings = settings_of(options)
    paths = paths_of(settings, agent)
    found = audit_report(paths.eval_results_root, options.audits_root, agent)
    if found is None:
        check_record(settings, paths.eval_results_root, agent)
        raise UsageError(
            f"no labels of agent {agent} under {options.audits_root}; "
            f"make some with: {program()} view {agent} --audit YOUR_NAME"
        )
    if options.export is not None:
        return _export(LabelExport(paths, options.audits_root, agent, options.export))
    if options.json:
        print(json.dumps(found.summary(), indent=2))  # noqa: T201
        return 0
    console = plain_console()
    for name, quality in found.quality.items():
        _print_quality(console, f"Judge and {name}", quality)
    for (one, other), (shared, figures) in found.pairs.items():
        _print_figures(
            console, f"{one} and {other}: {counted(shared, 'leaf')}", _between(figures)
        )
    _print_score(console, found.score, "by the labels")
    for name, reason in found.not_counting.items():
        line(console, f"Labels of {name} do not correct the score: {reason}.")
    if found.settled is not None:
        _print_quality(
            console,
            "Judge and auditors after the second pass, not blind",
            found.settled,
        )
        _print_score(
            console, found.settled_score, "by the labels after the second pass"
        )
    return 0


def _export(export: LabelExport) -> int:
    """Write the labels and return the exit status: 1 where there is none to write."""
    import asyncio

    from mind2web2.cli.console import line, plain_console

    done = asyncio.run(export.write())
    console = plain_console()
    line(console, f"{counted(done.rows, 'label')} written to {export.path}.")
    for reason, count in done.left_out.most_common():
        line(console, f"Left out: {counted(count, 'label')}: {reason}.")
    if done.rows:
        line(
            console,
            f"Check a judge by them: {program()} check-judge --labels {export.path}",
        )
    return 0 if done.rows else 1


def _print_quality(console: Console, title: str, found: JudgeQuality) -> None:
    from mind2web2.cli.console import line

    rows = [
        *_between(found.figures),
        ("passed wrongly", found.figures.wrong_passes),
        ("failed wrongly", found.figures.wrong_failures),
    ]
    _print_figures(console, f"{title}: {counted(found.labels, 'leaf')}", rows)
    if found.undecidable:
        line(
            console, f"Undecidable: {counted(found.undecidable, 'leaf')}, not counted."
        )
    if found.stale:
        line(
            console,
            f"Labels that no longer count, as the leaves were judged again: {found.stale}.",
        )


def _between(figures: Figures) -> list[tuple[str, Estimate]]:
    return [
        ("agreement", figures.agreement),
        ("Cohen's kappa", figures.kappa),
        ("Gwet's AC1", figures.ac1),
    ]


def _print_figures(
    console: Console, title: str, rows: Iterable[tuple[str, Estimate]]
) -> None:
    from rich.table import Table

    table = Table(title=title)
    for heading in ("figure", "value", "95% interval"):
        table.add_column(heading, justify="left" if heading == "figure" else "right")
    for name, figure in rows:
        value = "-" if figure.value is None else f"{figure.value:.4f}"
        interval = (
            "-"
            if figure.low is None or figure.high is None
            else f"{figure.low:.4f} to {figure.high:.4f}"
        )
        table.add_row(name, value, interval)
    console.print(table)


def _print_score(console: Console, score: CorrectedScore | None, how: str) -> None:
    from mind2web2.cli.console import line

    if score is not None:
        for text in score_lines(score, how):
            line(console, text)


def score_lines(score: CorrectedScore, how: str) -> Iterator[str]:
    """Yield the raw and the corrected score with their intervals, one line each."""
    mean = score.mean
    yield (
        f"Partial completion by the judge: {mean.raw:.4f}, 95% interval for tasks at large "
        f"{interval_text(mean.raw_at_large)} (without the judge's errors)."
    )
    yield (
        f"Corrected {how}: {_value(score)}; 95% interval for these tasks "
        f"{interval_text(score.these_tasks)}, for tasks at large {interval_text(score.tasks_at_large)} "
        f"({counted(mean.labels, 'leaf')} of {mean.population} in {counted(score.answers, 'answer')})."
    )
    if score.behind:
        yield (
            f"Labels wanted: {counted(len(score.behind), 'leaf')} behind gates that the judge "
            "failed wrongly; until "
            "then the intervals allow for either verdict."
        )
    if score.if_undecidable is not None:
        low, high = score.if_undecidable
        yield f"With all undecidable leaves as not supported: {low:.4f}; as supported: {high:.4f}."
    yield from _more_wanted(score)


def _more_wanted(score: CorrectedScore) -> Iterator[str]:
    """Yield what labels are still wanted, if any that could be given would help."""
    from mind2web2.statistics.uncertainty import MIN_TASKS

    mean = score.mean
    if mean.is_enough:
        more = min(score.unseen, mean.more_wanted(REACH))
        if more:
            yield f"More labels wanted: {more} for an interval of these tasks of +-{REACH:g}."
        return
    lacking = MIN_TASKS - mean.labelled_tasks
    if lacking <= len(mean.raw_by_task) - mean.labelled_tasks:
        yield f"More labels wanted: leaves of {lacking} more tasks for an interval."
    elif score.unseen:
        yield (
            f"More labels wanted: all {score.unseen} other leaves for a corrected score, as there are fewer "
            f"than {MIN_TASKS} tasks."
        )


def _value(score: CorrectedScore) -> str:
    if score.value is not None:
        return f"{score.value:.4f}"
    if not score.mean.is_enough:
        from mind2web2.statistics.uncertainty import MIN_TASKS

        return f"unknown with labels of fewer than {MIN_TASKS} tasks"
    if score.behind:
        return "not known yet"
    return "no value that these labels show to be better than the judge's"


def interval_text(found: Interval | None, form: str = ".4f") -> str:
    """Return an interval in words."""
    if found is None:
        return "unknown"
    return f"{found.low:{form}} to {found.high:{form}}"
