"""``mind2web2 evaluate --estimate``: what a run will take, told before anything is spent."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

from rich.console import Console

from mind2web2.cli.console import plain_console, print_amounts
from mind2web2.estimates import Range, TaskEstimate, total_ranges
from mind2web2.eval_runner import DEFAULT_JUDGE_MODEL, RunFolders
from mind2web2.llm_client.endpoints import endpoint_of
from mind2web2.recorded_judge import JudgeSettings
from mind2web2.run_estimate import PlannedRun, RunEstimate, estimate_run
from mind2web2.selection import TaskWork
from mind2web2.utils.dollars import dollars, dollars_as_given
from mind2web2.utils.path_config import PathConfig

REPLAY = "replay"
_COLUMNS = ("answers", "judge requests", "tokens in", "cached", "out", "dollars", "rests on")


def print_estimate(
    options: argparse.Namespace, agent_name: str, paths: PathConfig, work: Sequence[TaskWork]
) -> int:
    """Print what the run that the options describe would take, and return the exit status."""
    console = plain_console()
    if options.llm_provider == REPLAY:
        _line(console, "A replay answers from stored judgments: it asks nothing and costs nothing.")
        return 0
    run = _planned(options, RunFolders(agent_name, paths.cache_root, paths.eval_results_root), work)
    estimate = estimate_run(run)
    selected = sum(task.answers for task in estimate.tasks)
    to_evaluate = sum(task.to_evaluate for task in estimate.tasks)
    held = selected - to_evaluate - len(estimate.unscored)
    expected = [task for task in estimate.tasks if task.sample is not None]
    if expected:
        rows = {task.task_id: _cells(task) for task in expected}
        print_amounts(console, "Estimate", "task", _COLUMNS, rows)
    _line(
        console, f"Answers to evaluate: {to_evaluate} of {selected}; {held} have a result that still holds."
    )
    _print_totals(console, expected, run)
    _print_pages(console, estimate, run)
    for name, reason in estimate.unscored.items():
        _line(console, f"No result to be expected: {name}: {reason}")
    for note in _notes(options, run, total_ranges(expected)[-1]):
        _line(console, note)
    _line(console, "Nothing was asked, run or written.")
    return 0


def _planned(options: argparse.Namespace, folders: RunFolders, work: Sequence[TaskWork]) -> PlannedRun:
    settings = JudgeSettings(
        options.llm_provider,
        options.judge_model or DEFAULT_JUDGE_MODEL,
        options.judge_temperature,
        options.judge_reasoning_effort,
        batch=options.batch,
    )
    return PlannedRun(
        work=work,
        folders=folders,
        judge=settings,
        endpoint=endpoint_of(options.llm_provider, options.judge_base_url),
        overwrite=options.overwrite,
        with_captures=not options.no_capture,
        with_private_network=options.allow_private_network,
    )


def _cells(task: TaskEstimate) -> tuple[str, ...]:
    requests, tokens_in, cached, tokens_out, cost_usd = task.expected
    counts = (f"{round(count):,}" for count in (requests, tokens_in, cached, tokens_out))
    basis = "" if task.sample is None else task.sample.basis
    return (f"{task.to_evaluate} of {task.answers}", *counts, dollars(cost_usd), basis)


def _print_totals(console: Console, tasks: Sequence[TaskEstimate], run: PlannedRun) -> None:
    requests, tokens_in, cached, tokens_out, cost_usd = total_ranges(tasks)
    _line(console, f"Judge: {run.judge.model} ({run.endpoint or run.judge.provider}).")
    _line(console, f"Judge requests: {_counts(requests)}.")
    _line(
        console,
        f"Tokens in: {_counts(tokens_in)}, of which cached {_counts(cached)}; out: {_counts(tokens_out)}.",
    )
    if math.isnan(cost_usd.expected):
        _line(console, f"Dollars: not known, as there is no price for {run.judge.model}.")
    else:
        _line(console, f"Dollars: about {_dollar_range(cost_usd)}.")


def _print_pages(console: Console, estimate: RunEstimate, run: PlannedRun) -> None:
    then = "captured when a claim needs them" if run.with_captures else "claims on them fail (--no_capture)"
    pages = estimate.uncached_pages
    _line(console, f"Cited pages that are not cached yet: {pages}{f'; {then}' if pages else ''}.")


def _notes(options: argparse.Namespace, run: PlannedRun, cost_usd: Range) -> list[str]:
    notes = []
    if run.endpoint is None:
        notes.append("The judge's address is not set: results of any server were taken to hold.")
    if options.max_cost is not None and cost_usd.expected > 0:
        verdict = (
            "covers the run"
            if cost_usd.high <= options.max_cost
            else "may not cover the run"
            if cost_usd.expected <= options.max_cost
            else "will probably not cover the run: it stops there, and the same command goes on"
        )
        notes.append(f"--max_cost {dollars_as_given(options.max_cost)} {verdict}.")
    return notes


def _counts(amount: Range) -> str:
    low, expected, high = (f"{round(count):,}" for count in amount)
    return f"about {expected} ({low} to {high})" if low != high else expected


def _dollar_range(amount: Range) -> str:
    low, expected, high = (dollars(cost_usd) for cost_usd in amount)
    return f"{expected} ({low} to {high}, in 8 of 10 cases)" if low != high else expected


def _line(console: Console, text: str) -> None:
    console.print(text, soft_wrap=True)
