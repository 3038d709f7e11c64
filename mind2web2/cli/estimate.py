"""``--estimate``: the requests, tokens and dollars of a run, printed before it starts."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Sequence
from functools import partial

from mind2web2.cli.console import plain_console, print_amounts
from mind2web2.cli.options import REPLAY
from mind2web2.judge.caching import JudgeSettings
from mind2web2.llm_client.settings import endpoint_of
from mind2web2.runs.answers import TaskWork
from mind2web2.runs.estimate import PlannedRun, Range, RunEstimate, estimate_run, total
from mind2web2.runs.freshness import Conditions, newest_judge
from mind2web2.runs.provenance import JudgeRecord
from mind2web2.runs.run import DEFAULT_JUDGE_MODEL, RunFolders
from mind2web2.utils.path_config import PathConfig
from mind2web2.utils.text import dollars, dollars_as_given

_COLUMNS = ("answers", "judge requests", "tokens in", "cached", "out", "dollars", "judged from")


def print_estimate(
    options: argparse.Namespace, agent_name: str, paths: PathConfig, work: Sequence[TaskWork]
) -> int:
    """Print what the run that the options describe would take, and return the exit status."""
    console = plain_console()
    line = partial(console.print, soft_wrap=True)
    if options.llm_provider == REPLAY:
        line("A replay answers from stored judgments: it asks nothing and costs nothing.")
        return 0
    run = _planned(options, RunFolders(agent_name, paths.cache_root, paths.eval_results_root), work)
    estimate = estimate_run(run)
    answers = {task.task_id: len(task.answers) for task in work}
    rows = {task_id: _cells(ranges, answers[task_id]) for task_id, ranges in estimate.ranges.items()}
    if rows:
        print_amounts(console, "Estimate", "task", _COLUMNS, rows)
    for text in _summary(options, run, estimate):
        line(text)
    line("Nothing was asked, run or written.")
    return 0


def _planned(options: argparse.Namespace, folders: RunFolders, work: Sequence[TaskWork]) -> PlannedRun:
    settings = JudgeSettings(
        options.llm_provider,
        options.judge_model or DEFAULT_JUDGE_MODEL,
        options.judge_temperature,
        options.judge_reasoning_effort,
        batch=options.batch,
        max_images=options.max_images,
    )
    endpoint = endpoint_of(options.llm_provider, options.judge_base_url)
    newest = newest_judge(folders.eval_results_root, folders.agent_name) or {}
    conditions = Conditions(
        judge=JudgeRecord.of(settings, endpoint or newest.get("endpoint", "")),
        with_captures=not options.no_capture,
        with_private_network=options.allow_private_network,
        as_of=options.as_of,
        variables={name: os.environ[name] for name in options.script_env},
    )
    return PlannedRun(work, folders, settings, endpoint, conditions, options.overwrite)


def _cells(ranges: Sequence[Range], answers: int) -> tuple[str, ...]:
    *counts, cost_usd = total(found.expected for found in ranges)
    amounts = (*(f"{round(count):,}" for count in counts), dollars(cost_usd))
    return f"{len(ranges)} of {answers}", *amounts, _basis(ranges)


def _summary(options: argparse.Namespace, run: PlannedRun, estimate: RunEstimate) -> list[str]:
    ranges = [found for own in estimate.ranges.values() for found in own]
    low = total(found.low for found in ranges)
    expected = total(found.expected for found in ranges)
    high = total(found.high for found in ranges)
    selected = sum(len(task.answers) for task in run.work)
    held = selected - len(ranges) - len(estimate.unscored)
    captured = run.conditions.with_captures
    then = "captured when a claim needs them" if captured else "claims on them fail (--no_capture)"
    pages = estimate.uncached_pages
    basis = f"; judged from {_basis(ranges)}" if expected.requests else ""
    lines = [
        f"Answers to evaluate: {len(ranges)} of {selected}; {held} have a result that still holds.",
        f"Judge: {run.judge.model} ({run.endpoint or run.judge.provider}).",
        f"Judge requests: {_range(*(f'{round(part.requests):,}' for part in (low, expected, high)))}{basis}.",
        f"Tokens in: probably {round(expected.input_tokens):,}, of which cached "
        f"{round(expected.cached_tokens):,}; out: {round(expected.output_tokens):,}.",
        f"Dollars: {_range(*(dollars(part.cost_usd) for part in (low, expected, high)))}."
        if not math.isnan(expected.cost_usd)
        else f"Dollars: not known, as there is no price for {run.judge.model}: mind2web2.toml may give it.",
        f"Cited pages that are not cached yet: {pages}{f'; {then}' if pages else ''}.",
    ]
    lines += [f"No result to be expected: {name}: {why}" for name, why in estimate.unscored.items()]
    if run.endpoint is None:
        lines.append("The judge's address is not set: results of any server count as valid.")
    if options.max_cost is not None and expected.cost_usd > 0:
        verdict = "covers the run"
        if high.cost_usd > options.max_cost:
            verdict = "may not cover the run"
        if expected.cost_usd > options.max_cost:
            verdict = "will probably not cover the run: it stops there, and the same command continues"
        lines.append(f"--max_cost {dollars_as_given(options.max_cost)} {verdict}.")
    return lines


def _range(low: str, expected: str, high: str) -> str:
    return expected if low == high else f"between {low} and {high}, probably {expected}"


def _basis(ranges: Sequence[Range]) -> str:
    return " and ".join(dict.fromkeys(found.basis for found in ranges))
