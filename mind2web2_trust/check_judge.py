"""``mind2web2 check-judge``: how often a judge is right on claims whose true verdicts are known."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path

from rich import box
from rich.table import Table

from mind2web2.plugin import (
    AskedJudge,
    CheckRecord,
    PlainConsole,
    RunSettings,
    UsageError,
    counted,
    dollars,
    percent,
    settings_of,
)
from mind2web2_trust.judge_check.check import (
    SOURCE,
    Checking,
    JudgeCheck,
    JudgeComparison,
    Quality,
    comparisons,
    quality,
)
from mind2web2_trust.judge_check.figures import (
    CheckReport,
    ComparisonFigures,
    JudgeFigures,
    SetFigures,
)
from mind2web2_trust.judge_check.labelled_set import LabelledSet, shipped_set
from mind2web2_trust.judge_check.outside_labels import read_labels

# MODEL@http://SERVER/v1, or https.
_AT_SERVER = "@http"
_WRONG_SHOWN = 10
_BELOW = 5
_STOPPED = "Stopped. Every reply so far is kept. The same command continues from here."


def run(options: argparse.Namespace) -> int:
    """Check the judges, print the figures and return the exit status."""
    with redirect_stdout(sys.stderr) if options.json else nullcontext():
        settings = settings_of(options, is_announced=True)
    labelled = _chosen_cases(options)
    # No scripts run, and the cases have their pages.
    settings = replace(settings, no_capture=True)
    judges = [_judge(settings, name) for name in options.judge_models or [settings.model]]
    if len({judge.model for judge in judges}) < len(judges):
        raise UsageError("name each --judge_model once")
    checking = Checking(labelled, options.votes)
    console = PlainConsole(outlives_reader=True)
    check = _Check(
        settings,
        checking,
        judges,
        console,
        is_recorded=not (options.labels or options.category),
        is_json=options.json,
        least_share=options.fail_under,
    )
    return console.run(_run_check(check), _STOPPED)


def _judge(settings: RunSettings, named: str) -> RunSettings:
    """Return the settings of a judge, which may have a server of its own."""
    model, at, rest = named.partition(_AT_SERVER)
    if not at:
        return replace(settings, judge_model=model)
    return replace(settings, judge_model=model, judge_base_url=f"{at[1:]}{rest}")


@dataclass(frozen=True)
class _Check:
    """The judge that is checked, and how its figures are shown.

    Args:
        is_recorded: results of the judge name this check.
    """

    settings: RunSettings
    checking: Checking
    judges: list[RunSettings]
    console: PlainConsole
    is_recorded: bool
    is_json: bool
    least_share: float | None

    @property
    def results_root(self) -> Path:
        return self.settings.paths.eval_results_root


def _chosen_cases(options: argparse.Namespace) -> LabelledSet:
    """Return the cases that the options choose.

    Raises:
        UsageError: they name a category that is not there.
    """
    categories = options.category or ()
    labelled = read_labels(options.labels) if options.labels else shipped_set()
    if unknown := set(categories) - set(labelled.categories):
        known = "; ".join(labelled.categories)
        raise UsageError(
            f"--category {', '.join(sorted(unknown))}: there is none; known are {known}"
        )
    if categories:
        labelled = labelled.of(categories)
    return labelled.sample(options.sample) if options.sample else labelled


async def _run_check(check: _Check) -> int:
    checks = await _ask_judges(check)
    qualities = [quality(check) for check in checks]
    for each in qualities:
        if check.is_recorded and (record := each.record()) is not None:
            record.keep(check.results_root, each.check.judge.identity)
    show = _print_json if check.is_json else _print_text
    show(check, qualities, comparisons(checks))
    below = _below(qualities, check.least_share)
    if below and not check.is_json:
        least = f"{check.least_share:g}"
        check.console.print_line(f"Below --fail_under {least}: {', '.join(below)}")
    if below:
        return _BELOW
    return 1 if any(each.failures for each in qualities) else 0


async def _ask_judges(check: _Check) -> list[JudgeCheck]:
    """Put the cases to each judge."""
    console, checking = check.console, check.checking
    checks = []
    cases = len(check.judges) * len(checking.labelled.cases)
    with (
        console.show_warnings(),
        console.show_progress("cases", cases, is_quiet=check.is_json) as advance,
    ):
        asking = replace(checking, on_reply=advance)
        for settings in check.judges:
            # A session for each, so that each has counts of its own.
            folder = CheckRecord.folder(check.results_root)
            async with AskedJudge.opened(settings, folder, SOURCE) as judge:
                done = await asking.of(judge)
            if all(outcome.is_right is None for outcome in done.outcomes):
                judge.raise_if_unusable()
            checks.append(done)
    return checks


def _print_text(
    check: _Check,
    qualities: Sequence[Quality],
    compared: Sequence[JudgeComparison],
) -> None:
    console = check.console
    for each in qualities:
        _print_quality(console, each)
    for comparison in compared:
        _print_comparison(console, comparison)
    if check.is_recorded:
        _print_verdicts(console, qualities)


def _print_verdicts(console: PlainConsole, qualities: Sequence[Quality]) -> None:
    """Print for each judge whether it is good enough, in one sentence."""
    for each in qualities:
        if (record := each.record()) is not None:
            whose = f"{each.check.name}: " if len(qualities) > 1 else ""
            but = f" Not for: {', '.join(each.weak)}." if each.weak else ""
            console.print_line(f"{whose}{record.verdict}{but}")


def _below(qualities: Sequence[Quality], least: float | None) -> list[str]:
    """Return the judges that are right on a smaller share, each with its share."""
    below = []
    for each in qualities:
        share = each.overall.accuracy.value
        if least is not None and share is not None and share < least:
            below.append(f"{each.check.name} {percent(share)}")
    return below


def _print_json(
    check: _Check,
    qualities: Sequence[Quality],
    compared: Sequence[JudgeComparison],
) -> None:
    report = CheckReport(
        set=SetFigures.of(check.checking.labelled),
        votes=check.checking.votes,
        judges=[JudgeFigures.of(each) for each in qualities],
        comparisons=[ComparisonFigures.of(each) for each in compared],
    )
    check.console.print_json(report.model_dump_json())


def _print_quality(console: PlainConsole, quality: Quality) -> None:
    check, overall = quality.check, quality.overall
    labelled = check.labelled
    name = "labels" if labelled.is_outside else f"set {labelled.version}"
    which = f"{name} ({labelled.digest}), {counted(len(labelled.cases), 'case')}"
    console.print_line(f"{' '.join(check.judge.identity.in_words())}: {which}")
    # The longest name of a category leaves no room for more in 80 columns.
    table = Table(box=box.SIMPLE_HEAD, padding=0, show_edge=False)
    table.add_column("category", no_wrap=True)
    for heading in ("right", "accuracy\n(95%)", "false\naccepted", "true\nrejected"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, own in (*quality.by_category.items(), ("all", overall)):
        if name == "all":
            table.add_section()
        mark = " *" if name in quality.weak else ""
        errors = (own.false_accepted, own.true_rejected)
        table.add_row(
            f"{name}{mark}",
            f"{own.right}/{own.cases}",
            str(own.accuracy).replace("%", "").replace(" (", "% ("),
            *("-" if share.value is None else percent(share.value) for share in errors),
        )
    console.print(table)
    console.print_line(
        f"Right: {overall.accuracy}. False claims accepted: "
        f"{overall.false_accepted}. True claims rejected: "
        f"{overall.true_rejected}.",
    )
    if labelled.is_outside and quality.balanced_accuracy is not None:
        console.print_line(f"Balanced accuracy: {percent(quality.balanced_accuracy)}.")
    if quality.weak:
        console.print_line(
            "* more errors than chance explains, compared with the other categories: "
            f"{', '.join(quality.weak)}.",
        )
    console.print_line(
        f"Invalid replies: {check.judge.repairs} asked again. Refused: {quality.declined}.",
    )
    for outcome in quality.wrong[:_WRONG_SHOWN]:
        case, right, given = (
            outcome.case,
            *map(json.dumps, (outcome.case.right, outcome.given)),
        )
        console.print_line(
            f"Wrong: {case.id}: {case.question} Expected: {right}. Judge said: {given}.",
        )
    if len(quality.wrong) > _WRONG_SHOWN:
        console.print_line(
            f"{len(quality.wrong) - _WRONG_SHOWN} more wrong replies; --json lists all.",
        )
    for reason, count in quality.failures.most_common():
        console.print_line(
            f"No reply, so not counted: {counted(count, 'case')}: {reason}",
        )
    usage = check.judge.usage
    used, reused = usage.asked + usage.reused, usage.reused.judgments
    console.print_line(
        f"{counted(used.judgments, 'judgment')}, {used.input_tokens:,} tokens in, "
        f"{used.output_tokens:,} out, {dollars(used.cost_usd)}. "
        f"{reused:,} of them were stored and cost nothing now. Took {check.seconds:.0f} s.",
    )


def _print_comparison(console: PlainConsole, comparison: JudgeComparison) -> None:
    console.print_line(
        f"Accuracy of {comparison.second.name} minus that of {comparison.first.name}: "
        f"{comparison.test}, p = {comparison.holm_p:.2g}, over "
        f"{counted(comparison.cases, 'case')}.",
    )
