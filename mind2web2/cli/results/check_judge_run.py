"""A check of judges: selects the cases, asks or estimates, keeps the outcome and prints it."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rich import box
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from mind2web2.cli.console import counted, duration_text, line, plain_console, warnings_on
from mind2web2.cli.evaluate_report import judge_settings
from mind2web2.cli.event_loop import run_to_exit
from mind2web2.cli.options import paths_of
from mind2web2.cli.settings_file import judge_client, judge_server
from mind2web2.errors import UsageError
from mind2web2.judge.caching import JudgeSettings, RecordedJudge
from mind2web2.judge.store import CHECKS_FOLDER, FILE_NAME, JudgmentStore, record_check
from mind2web2.judge_check.check import (
    Checking,
    CountingProvider,
    JudgeComparison,
    Quality,
    comparisons,
    quality,
)
from mind2web2.judge_check.labelled_set import LabelledSet, labelled_set
from mind2web2.llm_client.chat import Usage
from mind2web2.llm_client.prices import total_price_usd
from mind2web2.llm_client.settings import endpoint_of
from mind2web2.runs.answer import DEFAULT_JUDGE_LIMIT
from mind2web2.statistics.paired import Estimate
from mind2web2.utils.text import dollars

_WRONG_SHOWN = 10
_OUTPUT_TOKENS = 400
_STOPPED = "Stopped. Every reply so far is kept: the same command continues from here."


def run_check(options: argparse.Namespace) -> int:
    """Check the judges that the options name, or estimate the costs, and return the exit status."""
    labelled = _selected(options)
    settings = judge_settings(options)
    judges = [replace(settings, model=model) for model in options.judge_models or [settings.model]]
    if len(set(judges)) < len(judges):
        raise UsageError("name each --judge_model once")
    requests = asyncio.Semaphore(options.max_llm_requests or DEFAULT_JUDGE_LIMIT)
    checking = Checking(labelled, options.votes, requests)
    console = plain_console(outlives_reader=True)
    work = _estimated if options.estimate else _checked
    return run_to_exit(work(options, checking, judges, console), lambda: line(console, _STOPPED))


def _selected(options: argparse.Namespace) -> LabelledSet:
    labelled = labelled_set()
    if unknown := set(options.category or ()) - set(labelled.categories):
        known = "; ".join(labelled.categories)
        raise UsageError(f"--category {', '.join(sorted(unknown))}: there is none; known are {known}")
    if options.category:
        labelled = labelled.of(options.category)
    return labelled.sample(options.sample) if options.sample else labelled


def _store_path(options: argparse.Namespace) -> Path:
    return paths_of(options).eval_results_root / CHECKS_FOLDER / FILE_NAME


async def _estimated(
    options: argparse.Namespace, checking: Checking, judges: list[JudgeSettings], console: Console
) -> int:
    path = _store_path(options)
    endpoint = endpoint_of(options.llm_provider, judge_server(options)) or options.llm_provider
    found = {}
    for settings in judges:
        has_store = path.is_file() and not options.overwrite
        with JudgmentStore(path if has_store else None) as known, JudgmentStore(None) as scratch:
            provider = CountingProvider(endpoint, known)
            await checking.of(RecordedJudge(settings, provider, scratch))
        usages = [Usage(tokens, output_tokens=_OUTPUT_TOKENS) for tokens in provider.prompts]
        found[settings.model] = {
            "requests": len(usages),
            "stored": provider.stored,
            "input_tokens": sum(provider.prompts),
            "output_tokens": _OUTPUT_TOKENS * len(usages),
            "cost_usd": total_price_usd(usages, settings.model),
        }
    if options.json:
        console.print_json(json.dumps(found))
        return 0
    for model, own in found.items():
        cost = "price unknown" if own["cost_usd"] is None else f"about {dollars(own['cost_usd'])}"
        line(
            console,
            f"{model}: {len(checking.labelled.cases)} cases take {own['requests']:,} judge requests, and one "
            f"more for each split vote; {own['stored']:,} replies are stored and free. Tokens in: "
            f"{own['input_tokens']:,}, out: about {own['output_tokens']:,}. {cost.capitalize()}, without "
            "discounts for repeated text.",
        )
    line(console, "Nothing was asked.")
    return 0


async def _checked(
    options: argparse.Namespace, checking: Checking, judges: list[JudgeSettings], console: Console
) -> int:
    checks = []
    cases = len(judges) * len(checking.labelled.cases)
    with (
        JudgmentStore(_store_path(options)) as store,
        warnings_on(console),
        _progress(console, cases, is_quiet=options.json) as advance,
    ):
        for settings in judges:
            # A client for each, so that each has counts of its own.
            client = judge_client(options)
            judge = RecordedJudge(settings, client, store, overwrite=options.overwrite)
            try:
                check = await replace(checking, on_reply=advance).of(judge)
            finally:
                if client is not None:
                    await client.close()
            if all(outcome.is_right is None for outcome in check.outcomes):
                judge.raise_if_unusable()
            checks.append(check)
    found = [quality(check) for check in checks]
    compared = comparisons(checks)
    for each in found:
        if not options.category and (record := each.record()) is not None:
            record_check(paths_of(options).eval_results_root, each.check.judge, record)
    if options.json:
        _print_json(console, checking, found, compared)
    else:
        for each in found:
            _print_quality(console, each)
        for comparison in compared:
            _print_comparison(console, comparison)
    return 1 if any(each.failures for each in found) else 0


@contextmanager
def _progress(console: Console, cases: int, *, is_quiet: bool) -> Iterator[Callable[[], object]]:
    """Show on a terminal how many cases are done."""
    columns = (TextColumn("cases"), MofNCompleteColumn())
    is_shown = console.is_terminal and not is_quiet
    with Progress(*columns, console=console, transient=True, disable=not is_shown) as bar:
        task = bar.add_task("", total=cases)
        yield lambda: bar.advance(task)


def _print_json(
    console: Console, checking: Checking, found: list[Quality], compared: list[JudgeComparison]
) -> None:
    labelled = checking.labelled
    content = {
        "set": {
            "version": labelled.version,
            "digest": labelled.digest,
            "cases": len(labelled.cases),
            "is_whole": labelled.is_whole,
        },
        "votes": checking.votes,
        "judges": [each.summary() for each in found],
        "comparisons": [each.summary() for each in compared],
    }
    console.print_json(json.dumps(content))


def _print_quality(console: Console, found: Quality) -> None:
    check, overall = found.check, found.overall
    labelled = check.labelled
    which = f"set {labelled.version} ({labelled.digest}), {counted(len(labelled.cases), 'case')}"
    line(console, f"{' '.join(check.judge.in_words())}: {which}")
    # The longest name of a category leaves no room for more in 80 columns.
    table = Table(box=box.SIMPLE_HEAD, padding=0, show_edge=False)
    table.add_column("category", no_wrap=True)
    for heading in ("right", "accuracy\n(95%)", "false\naccepted", "true\nrejected"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, own in (*found.by_category.items(), ("all", overall)):
        if name == "all":
            table.add_section()
        mark = " *" if name in found.weak else ""
        errors = (own.false_accepted, own.true_rejected)
        table.add_row(
            f"{name}{mark}",
            f"{own.right}/{own.cases}",
            _share_text(own.accuracy, digits=0).replace("%", "").replace(" (", "% ("),
            *("-" if share.value is None else f"{share.value:.0%}" for share in errors),
        )
    console.print(table)
    line(
        console,
        f"Right: {_share_text(overall.accuracy)}. False claims accepted: "
        f"{_share_text(overall.false_accepted)}. True claims rejected: {_share_text(overall.true_rejected)}.",
    )
    if found.weak:
        line(console, f"* more errors than in the other categories, beyond chance: {', '.join(found.weak)}.")
    if found.leaning is not None:
        line(console, f"The judge {found.leaning} (p = {found.lean_p:.2g}).")
    if found.votes_agree.value is not None:
        line(console, f"The first two votes on a page are the same: {_share_text(found.votes_agree)}.")
    line(
        console,
        f"Invalid replies: {check.repairs} asked again, {found.invalid} never valid. "
        f"Declined: {found.declined}.",
    )
    for outcome in found.wrong[:_WRONG_SHOWN]:
        case, right, given = outcome.case, *map(json.dumps, (outcome.case.right, outcome.given))
        line(console, f"Wrong: {case.id}: {case.question} Right is {right}, given was {given}.")
    if len(found.wrong) > _WRONG_SHOWN:
        line(console, f"{len(found.wrong) - _WRONG_SHOWN} more wrong replies; --json lists all.")
    for reason, count in found.failures.most_common():
        line(console, f"No reply, which counts neither way: {counted(count, 'case')}: {reason}")
    used, reused = check.usage.asked + check.usage.reused, check.usage.reused.judgments
    cost = "price unknown" if used.cost_usd is None else dollars(used.cost_usd)
    line(
        console,
        f"{counted(used.judgments, 'judgment')}, {used.input_tokens:,} tokens in, {used.output_tokens:,} "
        f"out, {cost}; {reused:,} of them were stored and are free now. Took {duration_text(check.seconds)}.",
    )


def _print_comparison(console: Console, comparison: JudgeComparison) -> None:
    test = comparison.test
    interval = test.interval
    shown = f" (95% interval {interval.low:+.1%} to {interval.high:+.1%})" if interval else ""
    line(
        console,
        f"Accuracy of {comparison.second.judge.model} minus that of {comparison.first.judge.model}: "
        f"{test.difference:+.1%}{shown}, p = {comparison.holm_p:.2g}, over {comparison.cases} cases.",
    )


def _share_text(found: Estimate, digits: int = 1) -> str:
    if found.value is None or found.low is None or found.high is None:
        return "-"
    return f"{found.value:.{digits}%} ({found.low:.0%} to {found.high:.0%})"
