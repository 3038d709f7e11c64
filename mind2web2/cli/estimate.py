"""The price of a run before it begins: ``--estimate``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from mind2web2.cli.console import line, plain_console, print_amounts
from mind2web2.cli.displays import uncached_text
from mind2web2.results.answers import RunFolders, TaskWork
from mind2web2.results.freshness import Conditions, newest_judge
from mind2web2.runs.estimate import PlannedRun, Range, RunEstimate, basis_text, estimate_run, total
from mind2web2.runs.named_judge import judge_spec
from mind2web2.runs.settings import RunSettings
from mind2web2.utils.dollars import dollars, dollars_as_given
from mind2web2.utils.path_config import PathConfig
from mind2web2.utils.text import counted

_ESTIMATE_COLUMNS = (
    "answers",
    "judge requests",
    "tokens in",
    "cached",
    "out",
    "dollars",
    "based on",
)


def print_estimate(
    settings: RunSettings, agent_name: str, paths: PathConfig, work: Sequence[TaskWork]
) -> int:
    """Print what the run that the settings describe would take, and return the exit status."""
    console = plain_console()
    if settings.is_replay:
        line(
            console,
            "A replay judges from stored judgments. It asks nothing and costs nothing.",
        )
        return 0
    run = _plan_run(
        settings,
        RunFolders(agent_name, paths.cache_root, paths.eval_results_root),
        work,
    )
    estimate = estimate_run(run)
    answers = {task.task_id: len(task.answers) for task in work}
    rows = {
        task_id: _estimate_cells(_as_planned(run, ranges), answers[task_id])
        for task_id, ranges in estimate.ranges.items()
    }
    if rows:
        print_amounts(console, "Estimate", "task", _ESTIMATE_COLUMNS, rows)
    for text in _estimate_lines(run, estimate, settings):
        line(console, text)
    line(console, "Nothing was asked or written.")
    return 0


def _plan_run(settings: RunSettings, folders: RunFolders, work: Sequence[TaskWork]) -> PlannedRun:

    judge = judge_spec(settings)
    endpoint = judge.endpoint
    newest = newest_judge(folders.eval_results_root, folders.agent_name)
    conditions = Conditions(
        judge=judge.record(endpoint or ("" if newest is None else newest.endpoint)),
        with_captures=not settings.no_capture,
        with_private_network=settings.allow_private_network,
    )
    return PlannedRun(
        work,
        folders,
        judge,
        endpoint,
        conditions,
        settings.overwrite,
        looks_ahead=settings.ahead == "gates",
    )


def _estimate_cells(ranges: Sequence[Range], answers: int) -> tuple[str, ...]:

    *counts, cost_usd = total(found.expected for found in ranges)
    amounts = (*(f"{round(count):,}" for count in counts), dollars(cost_usd))
    return f"{len(ranges)} of {answers}", *amounts, _basis(ranges)


def _estimate_lines(run: PlannedRun, estimate: RunEstimate, settings: RunSettings) -> Iterator[str]:
    without = [found for own in estimate.ranges.values() for found in own]
    ranges = _as_planned(run, without)
    low = total(found.low for found in ranges)
    expected = total(found.expected for found in ranges)
    high = total(found.high for found in ranges)
    selected = sum(len(task.answers) for task in run.work)
    reused = selected - len(ranges) - len(estimate.unscored)
    yield (
        f"Answers to evaluate: {len(ranges)} of {selected}; {reused} have a result that is up "
        "to date."
    )
    yield f"Judge: {run.judge.model} ({run.endpoint or run.judge.provider})."
    basis = f", based on {_basis(ranges)}" if expected.requests else ""
    requests = _between(*(f"{round(part.requests):,}" for part in (low, expected, high)))
    yield f"Judge requests: {requests}{basis}."
    yield (
        f"Tokens in: probably {round(expected.input_tokens):,}, of which cached "
        f"{round(expected.cached_tokens):,}; out: {round(expected.output_tokens):,}."
    )
    if math.isnan(expected.cost_usd):
        yield (
            f"Dollars: unknown, because mind2web2 has no price for {run.judge.model}. You can "
            "write it into mind2web2.toml."
        )
    else:
        yield f"Dollars: {_between(*(dollars(part.cost_usd) for part in (low, expected, high)))}."
    if expected.requests:
        yield _lookahead_line(run, without)
    yield uncached_text(estimate.uncached_pages, settings)
    for name, why in estimate.unscored.items():
        yield f"Not estimated: {name}: {why}"
    for task in run.work:
        for answer_name, why in task.failed_runs.items():
            yield f"Score 0, without asking the judge: {task.task_id}/{answer_name}: {why}"
    if run.endpoint is None:
        yield "The judge's address is not set, so results of any server count as valid."
    max_cost = settings.max_cost
    if max_cost is not None and expected.cost_usd > 0:
        verdict = "will probably not cover the run: it stops there"
        if not run.overwrite:
            verdict += ", and the same command continues"
        if expected.cost_usd <= max_cost:
            verdict = "covers the run" if high.cost_usd <= max_cost else "may not cover the run"
        yield f"--max_cost {dollars_as_given(max_cost)} {verdict}."


def _as_planned(run: PlannedRun, ranges: Sequence[Range]) -> Sequence[Range]:
    return [found.with_lookahead() for found in ranges] if run.looks_ahead else ranges


def _lookahead_line(run: PlannedRun, without: Sequence[Range]) -> str:
    """Return the price of a run without and with lookahead."""
    off = total(found.expected for found in without)
    gates = total(found.with_lookahead().expected for found in without)
    prices = [
        f"{way}, probably {counted(round(amounts.requests), 'request')}"
        + ("" if math.isnan(amounts.cost_usd) else f", {dollars(amounts.cost_usd)}")
        for way, amounts in (("values", off), ("gates", gates))
    ]
    planned = "gates" if run.looks_ahead else "values"
    return f"With --ahead {' and '.join(prices)} (this command: {planned})."


def _between(low: str, expected: str, high: str) -> str:
    if low == high:
        return expected
    return f"between {low} and {high}, probably {expected}"


def _basis(ranges: Sequence[Range]) -> str:

    return basis_text(found.basis for found in ranges)
