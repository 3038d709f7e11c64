"""``mind2web2 check-judge``: how often a judge is right on claims whose true verdicts are known."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mind2web2.cli.evaluate import add_judge_parameters
from mind2web2.cli.options import (
    JUDGE_PROVIDERS,
    JUDGE_PROVIDERS_HELP,
    Subcommands,
    add_folder_options,
    paths_of,
    positive_int,
)
from mind2web2.cli.settings import apply_settings_file, judge_client, judge_server
from mind2web2.errors import UsageError
from mind2web2.utils.dollars import dollars

if TYPE_CHECKING:
    from rich.console import Console

    from mind2web2.judge.settings import JudgeSettings
    from mind2web2.judge_check.check import Checking, JudgeComparison, Quality
    from mind2web2.judge_check.labelled_set import LabelledSet
    from mind2web2.statistics.paired import Estimate


DESCRIPTION = """\
Find out how often a judge is right, before a run is paid for: a labelled set of claims and extractions about
invented pages is put to it, with the prompts, pages and votes of an evaluation. Half of the claims are false
and differ from a true one in one detail.

  mind2web2 check-judge --estimate
  mind2web2 check-judge --judge_model gpt-5-mini
  mind2web2 check-judge --judge_model gpt-5-mini --judge_model o4-mini     two judges, compared
  mind2web2 check-judge --sample 60                                        cheaper, less certain

Replies are stored, so that the same check is free the next time. Exit status: 0 every case has a reply,
1 some have none because the judge failed, 2 the check could not start, 5 where --fail_under applies.
"""
_WRONG_SHOWN = 10
_BELOW = 5
_OUTPUT_TOKENS = 400
_STOPPED = "Stopped. Every reply so far is kept: the same command continues from here."


def add_command(commands: Subcommands) -> None:
    """Add ``check-judge`` to ``mind2web2``."""
    parser = commands.add_parser(
        "check-judge", help="find out how often a judge is right", description=DESCRIPTION
    )
    add = parser.add_argument
    add(
        "--votes",
        metavar="N",
        type=_odd,
        default=3,
        help="votes on a claim at most, an odd number; a vote ends as soon as it is settled (default: 3)",
    )
    add("--sample", metavar="N", type=positive_int, help="N cases only, of all categories")
    add(
        "--category",
        metavar="NAME",
        action="append",
        help="the cases of this category only; may be repeated; results name no such check",
    )
    add("--estimate", action="store_true", help="print requests, tokens and dollars, and ask nothing")
    add("--overwrite", action="store_true", help="ask everything again")
    add(
        "--fail_under",
        metavar="SHARE",
        type=_share,
        help="exit with 5 where a judge is right on less than this share of the cases, such as 0.9",
    )
    add("--json", action="store_true", help="print the figures as JSON")
    group = parser.add_argument_group("judge")
    add = group.add_argument
    add("--llm_provider", choices=JUDGE_PROVIDERS, default="openai", help=JUDGE_PROVIDERS_HELP)
    add(
        "--judge_model",
        metavar="M",
        action="append",
        dest="judge_models",
        help="the model to check (default: o4-mini); repeat it to compare several",
    )
    add_judge_parameters(group)
    add(
        "--max_llm_requests",
        metavar="N",
        type=positive_int,
        help="at most N judge requests at once (default: 30)",
    )
    add_folder_options(parser, "eval_results_root")
    parser.set_defaults(run=run, judge_model=None, batch=False)


def _odd(text: str) -> int:
    votes = positive_int(text)
    if votes % 2 == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is even: a vote could end in a tie")
    return votes


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = math.nan
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share from 0 to 1")
    return share


def run(options: argparse.Namespace) -> int:
    """Check the judges, print the figures and return the exit status."""
    import asyncio

    from mind2web2.cli.console import line, plain_console
    from mind2web2.cli.evaluate_report import judge_settings
    from mind2web2.cli.event_loop import run_to_exit
    from mind2web2.judge_check.check import Checking
    from mind2web2.runs.answer import DEFAULT_JUDGE_LIMIT

    # For a judge pool, which serves one model.
    options.judge_model = options.judge_models[0] if options.judge_models else None
    with redirect_stdout(sys.stderr) if options.json else nullcontext():
        apply_settings_file(options)
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
    from mind2web2.judge_check.labelled_set import labelled_set

    labelled = labelled_set()
    if unknown := set(options.category or ()) - set(labelled.categories):
        known = "; ".join(labelled.categories)
        raise UsageError(f"--category {', '.join(sorted(unknown))}: there is none; known are {known}")
    if options.category:
        labelled = labelled.of(options.category)
    return labelled.sample(options.sample) if options.sample else labelled


def _store_path(options: argparse.Namespace) -> Path:
    from mind2web2.judge.store import CHECKS_FOLDER, FILE_NAME

    return paths_of(options).eval_results_root / CHECKS_FOLDER / FILE_NAME


async def _estimated(
    options: argparse.Namespace, checking: Checking, judges: list[JudgeSettings], console: Console
) -> int:
    from mind2web2.cli.console import line
    from mind2web2.judge.caching import CachingJudge
    from mind2web2.judge.store import JudgmentStore
    from mind2web2.judge_check.check import CountingProvider
    from mind2web2.llm_client.chat import Usage
    from mind2web2.llm_client.prices import total_price_usd
    from mind2web2.llm_client.settings import endpoint_of

    path = _store_path(options)
    endpoint = endpoint_of(options.llm_provider, judge_server(options)) or options.llm_provider
    found = {}
    for settings in judges:
        has_store = path.is_file() and not options.overwrite
        with JudgmentStore(path if has_store else None) as known, JudgmentStore(None) as scratch:
            provider = CountingProvider(endpoint, known)
            await checking.of(CachingJudge(settings, provider, scratch))
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
    from mind2web2.cli.console import line, warnings_on
    from mind2web2.judge.caching import CachingJudge
    from mind2web2.judge.store import JudgmentStore, record_check
    from mind2web2.judge_check.check import comparisons, quality

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
            judge = CachingJudge(settings, client, store, overwrite=options.overwrite)
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
        if not options.category:
            _print_verdicts(console, found)
    below = _below(found, options.fail_under)
    if below and not options.json:
        line(console, f"Below --fail_under {options.fail_under:g}: {', '.join(below)}")
    return _BELOW if below else 1 if any(each.failures for each in found) else 0


def _print_verdicts(console: Console, found: Sequence[Quality]) -> None:
    """Print for each judge whether it is good enough, in one sentence."""
    from mind2web2.cli.console import line
    from mind2web2.judge_check.fitness import verdict

    for each in found:
        if (record := each.record()) is not None:
            whose = f"{each.check.judge.model}: " if len(found) > 1 else ""
            but = f" Not for: {', '.join(each.weak)}." if each.weak else ""
            line(console, f"{whose}{verdict(record)}{but}")


def _below(found: Sequence[Quality], least: float | None) -> list[str]:
    """Return the judges that are right on a smaller share, each with its share."""
    below = []
    for each in found:
        share = each.overall.accuracy.value
        if least is not None and share is not None and share < least:
            below.append(f"{each.check.judge.model} {share:.1%}")
    return below


@contextmanager
def _progress(console: Console, cases: int, *, is_quiet: bool) -> Iterator[Callable[[], object]]:
    """Show on a terminal how many cases are done."""
    from rich.progress import MofNCompleteColumn, Progress, TextColumn

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
    from rich import box
    from rich.table import Table

    from mind2web2.cli.console import counted, duration_text, line

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
    from mind2web2.cli.console import line

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
