"""The end of a run: its summaries are written, its tables and warnings printed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mind2web2.analysis.summaries import merge_all_results, summarise_answers
from mind2web2.cli.console import PlainConsole
from mind2web2.cli.displays import duration_text, unreported_text
from mind2web2.cli.evaluation_plan import OVERWRITE_CONTINUED, EndedRun
from mind2web2.cli.options import load_function
from mind2web2.cli.results.scores import score_cells
from mind2web2.cli.results.tables import (
    doubt_lines,
    print_metrics,
    removed_tasks_text,
)
from mind2web2.errors import ResultWriteError
from mind2web2.llm_client.chat import Usage
from mind2web2.results.agent_summary import AgentSummary
from mind2web2.results.answers import TaskWork
from mind2web2.results.cautions import cautions, clock_line
from mind2web2.results.freshness import removed_tasks
from mind2web2.results.stored_results import answer_results_dir, latest_result
from mind2web2.runs.answer import AnswerOutcome
from mind2web2.utils.names import name_list
from mind2web2.utils.program import command_line
from mind2web2.utils.text import dollars, dollars_as_given

if TYPE_CHECKING:
    from mind2web2.judge.budget import Budget


async def report_run(console: PlainConsole, run: EndedRun) -> None:
    """Write the agent's summaries; print scores, metrics, warnings, and what the run took."""
    if run.plan.settings.self_debug:
        _print_reused(console, run)
    summary = await asyncio.to_thread(_write_summaries, run)
    problems = [*run.problems, *_removed_tasks(run, summary)]
    if run.judge_check is not None and (failed := run.judge_check.failure):
        problems.insert(0, failed)
    elif run.judge_check is None and run.judge.usage.total().asked.judgments:
        console.print_line(f"To see how often this judge is right: {command_line('check-judge')}")
    if run.plan.shows_scores:
        print_scores(console, run.plan.work, run.outcomes)
        if summary is not None and summary.num_runs:
            print_metrics(console, summary)
    console.print_lines(_failure_lines(run))
    console.print_lines(_warning_lines(run, summary, problems))
    console.print_lines(_cost_lines(run))
    if run.plan.shows_scores and any(outcome.score is not None for outcome in run.outcomes):
        options = run.plan.settings.options("eval_results_root", "cache_root")
        show = command_line("show", run.folders.agent_name, "TASK", "ANSWER", *options)
        console.print_line(f"To see why an answer has its score: {show}")
    console.print_line(f"Time: {duration_text(run.elapsed_s)}.")
    console.print_line(f"Results: {run.folders.agent_results}")


def _write_summaries(run: EndedRun) -> AgentSummary | None:
    root = run.folders.eval_results_root
    try:
        summed = summarise_answers(root, run.folders.agent_name)
        merge_all_results(root)
    except ResultWriteError as error:
        # The table of scores is shown all the same.
        run.problems.append(str(error))
        return None
    return None if summed is None else summed.summary


def _removed_tasks(run: EndedRun, summary: AgentSummary | None) -> list[str]:
    if summary is None:
        return []
    answers = run.plan.settings.paths.answers_root / run.folders.agent_name
    known = [*summary.tasks, *(missing.task_id for missing in summary.missing)]
    removed = removed_tasks(answers, known)
    return [removed_tasks_text(run.folders.agent_results, removed)] if removed else []


def _print_reused(console: PlainConsole, run: EndedRun) -> None:
    """Print the stored values of reused results.

    Their scripts did not run and logged nothing.
    """
    stored_values = load_function("mind2web2.cli.results.stored_values:stored_values")
    for outcome in run.outcomes:
        folder = answer_results_dir(
            run.folders.eval_results_root,
            run.folders.agent_name,
            outcome.task_id,
            outcome.answer_name,
        )
        stored = latest_result(folder) if outcome.reused else None
        if stored is not None:
            name = f"{outcome.task_id}/{outcome.answer_name}"
            console.print_line(
                f"{name}: reused, so its script did not run. These values are stored:"
            )
            console.print_lines(stored_values(stored.content), "  ")


def _failure_lines(run: EndedRun) -> Iterator[str]:
    unscored: dict[str, list[str]] = {}
    for outcome in run.outcomes:
        if outcome.reason is not None:
            unscored.setdefault(outcome.reason, []).append(
                f"{outcome.task_id}/{outcome.answer_name}"
            )
    for reason, names in unscored.items():
        answers = "" if run.plan.is_quiet else f": {name_list(names)}"
        yield f"No result{answers}: {reason}"
    if unscored and not run.plan.is_quiet:
        yield (
            OVERWRITE_CONTINUED
            if run.plan.settings.overwrite
            else "The same command tries the answers without a result again. Everything asked so "
            "far is kept."
        )
    for task in run.plan.work:
        yield from (
            f"Score 0: {task.task_id}/{name}: {why}" for name, why in task.failed_runs.items()
        )


def print_scores(
    console: PlainConsole, work: Sequence[TaskWork], outcomes: Sequence[AnswerOutcome]
) -> None:
    """Print each task's scores."""
    rows = []
    for task in work:
        # Runs in which the agent failed count as 0, as in the metrics.
        by_answer: dict[str, float | None] = dict.fromkeys(task.failed_runs, 0.0)
        by_answer |= {
            each.answer_name: each.score for each in outcomes if each.task_id == task.task_id
        }
        rows.append((task.task_id, task.script_version or "none", *score_cells(by_answer)))
    headings = ("task", "script", "answers", "mean")
    console.print_table("Scores", headings, rows, texts=("script", "answers"))


def _warning_lines(
    run: EndedRun, summary: AgentSummary | None, problems: Sequence[str]
) -> Iterator[str]:
    facts = [each.facts for each in run.outcomes if each.facts is not None]
    doubts = () if summary is None else doubt_lines(summary.verdicts)
    for warning in (*cautions(facts), *doubts, *problems):
        yield f"Warning: {warning}"
    if summary is not None and summary.verdicts.reservations["suspect_page"]:
        given = run.plan.settings.options("answer_folder", "cache_root", "allow_private_network")
        recapture = command_line("cache", run.folders.agent_name, "--only", "suspect", *given)
        yield f"Next, to capture pages that look wrong again: {recapture}"
    if clock := clock_line(facts):
        yield f"Note: {clock}"
    for task in run.plan.work:
        for problem in task.problems:
            yield f"Note: {task.task_id}: {problem}"


def _cost_lines(run: EndedRun) -> Iterator[str]:
    judge = run.judge
    texts = (unreported_text(judge.usage), _unused_text(judge.spent_for_nothing))
    if not run.plan.is_quiet:
        yield from filter(None, texts)
    yield f"{judge.in_words()}. {judge.usage.in_words()}."
    if judge.budget is not None:
        yield _budget_text(judge.budget, run.plan.settings.overwrite)


def _unused_text(usage: Usage) -> str | None:
    """Return what lookahead asked about leaves that were skipped; ``None`` if that was none."""
    if not usage.judgments:
        return None
    return (
        f"Not used: {usage.judgments:,} of these judgments ({dollars(usage.cost_usd)}). They were about "
        "leaves that were skipped, or the script did not ask them in the end."
    )


def _budget_text(budget: Budget, is_overwriting: bool) -> str:
    """Return how much of a budget was spent, and how to continue where it is used up."""
    limit = dollars_as_given(budget.max_usd)
    spent = f"Budget: {dollars(budget.spent_usd)} of --max_cost {limit} spent"
    if not budget.is_reached:
        return f"{spent}."
    spent = f"{spent}, so the run asked nothing more."
    if is_overwriting:
        return (
            f"{spent} With --overwrite, set --max_cost high enough for everything (--estimate "
            "says how much), or judge one task at a time (--task_id)."
        )
    return (
        f"{spent} The same command continues with another ${limit}, and a higher --max_cost "
        "goes further."
    )
