"""The price of a run before it begins: ``--estimate``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from mind2web2.cli.console import PlainConsole
from mind2web2.cli.displays import uncached_text
from mind2web2.cli.evaluation_plan import EvaluationPlan
from mind2web2.results.answers import RunFolders, TaskWork
from mind2web2.results.freshness import Conditions
from mind2web2.runs.estimate import Amounts, PlannedRun, RunEstimate, estimate_run, total
from mind2web2.runs.named_judge import judge_spec
from mind2web2.runs.settings import RunSettings
from mind2web2.utils.text import dollars, dollars_as_given

_COLUMNS = ("answers", "requests", "tokens in", "out", "dollars", "results")


def print_estimate(evaluation: EvaluationPlan) -> int:
    """Print what an evaluation would take, and return the exit status."""
    settings, work, console = evaluation.settings, evaluation.work, PlainConsole()
    if settings.is_replay:
        console.print_line(
            "A replay judges from stored judgments. It asks nothing and costs nothing."
        )
        return 0
    paths = settings.paths
    folders = RunFolders(evaluation.agent_name, paths.cache_root, paths.eval_results_root)
    run = _plan_run(settings, folders, work)
    estimate = estimate_run(run)
    answers = {task.task_id: len(task.answers) for task in work}
    rows = [
        (task_id, *_cells(amounts, answers[task_id], estimate.results[task_id]))
        for task_id, amounts in estimate.amounts.items()
    ]
    if rows:
        console.print_table(
            "Estimate",
            ("task", *_COLUMNS),
            rows,
            caption="from earlier results; without any, as if every claim held; less where "
            "judgments are stored",
        )
    console.print_lines(_lines(run, estimate, settings))
    console.print_line("Nothing was asked or written.")
    return 0


def _plan_run(settings: RunSettings, folders: RunFolders, work: Sequence[TaskWork]) -> PlannedRun:
    judge = judge_spec(settings)
    conditions = Conditions(
        judge=judge.record(judge.endpoint or ""),
        as_of=settings.as_of,
        with_captures=not settings.no_capture,
        with_private_network=settings.allow_private_network,
    )
    return PlannedRun(work, folders, judge, conditions, settings.overwrite)


def _cells(amounts: Sequence[Amounts], answers: int, results: int) -> tuple[str, ...]:
    *counts, cost_usd = total(amounts)
    numbers = (*(f"{round(count):,}" for count in counts), dollars(cost_usd))
    return f"{len(amounts)} of {answers}", *numbers, str(results)


def _lines(run: PlannedRun, estimate: RunEstimate, settings: RunSettings) -> Iterator[str]:
    amounts = [each for of_agent in estimate.amounts.values() for each in of_agent]
    expected = total(amounts)
    selected = sum(len(task.answers) for task in run.work)
    reused = selected - len(amounts) - len(estimate.unscored)
    yield (
        f"Answers to evaluate: {len(amounts)} of {selected}; {reused} have a result that is up "
        "to date."
    )
    yield f"Judge: {run.judge.model} ({run.judge.endpoint or run.judge.provider})."
    yield (
        f"Judge requests: probably {round(expected.requests):,}; tokens in: "
        f"{round(expected.input_tokens):,}; out: {round(expected.output_tokens):,}."
    )
    if math.isnan(expected.cost_usd):
        yield (
            f"Dollars: unknown, because mind2web2 has no price for {run.judge.model}. You can "
            "write it into mind2web2.toml."
        )
    else:
        yield f"Dollars: probably {dollars(expected.cost_usd)}."
    yield uncached_text(estimate.uncached_pages, settings)
    for name, why in estimate.unscored.items():
        yield f"Not estimated: {name}: {why}"
    for task in run.work:
        for answer_name, why in task.failed_runs.items():
            yield f"Score 0, without asking the judge: {task.task_id}/{answer_name}: {why}"
    max_cost = settings.max_cost
    if max_cost is not None and expected.cost_usd > 0:
        covers = "probably covers" if expected.cost_usd <= max_cost else "will probably not cover"
        yield f"--max_cost {dollars_as_given(max_cost)} {covers} the run."
