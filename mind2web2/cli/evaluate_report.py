"""The tables and warnings at the end of a run."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mind2web2.cli.console import (
    PlainConsole,
)
from mind2web2.cli.displays import duration_text, totals_text
from mind2web2.cli.results.tables import print_metrics
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.usage import RunUsage
from mind2web2.llm_client.chat import Usage
from mind2web2.results.agent_summary import AgentSummary
from mind2web2.results.answers import RunFolders, TaskWork
from mind2web2.results.cautions import cautions, clock_line
from mind2web2.runs.answer import AnswerOutcome
from mind2web2.utils.names import name_list, natural_key
from mind2web2.utils.text import counted, dollars, dollars_as_given, number

if TYPE_CHECKING:
    from mind2web2.judge.budget import Budget

log = logging.getLogger(__name__)

OVERWRITE_CONTINUED = (
    "The same command asks everything again from the start. Answers without a new result keep "
    "their earlier one."
)


# After the run


@dataclass(frozen=True)
class RunReport:
    """A run that is over.

    Args:
        summary: the agent's metrics, ``None`` where they could not be written.
        problems: failures beside the answers, one line each.
        recapture: the command that captures suspect pages again.
        is_overwriting: it has asked everything again.
        is_quiet: without tables of scores, the judge's use and hints.
    """

    work: Sequence[TaskWork]
    outcomes: Sequence[AnswerOutcome]
    summary: AgentSummary | None
    judge: CachingJudge
    folders: RunFolders
    problems: Sequence[str]
    elapsed_s: float
    recapture: str
    show: str
    is_overwriting: bool = False
    is_quiet: bool = False


def print_run(console: PlainConsole, run: RunReport) -> None:
    """Print each task's scores, the agent's metrics, and what the run took.

    The answers without a score are printed too.
    """
    if not run.is_quiet:
        print_scores(console, run.work, run.outcomes)
        if run.summary is not None and run.summary.num_runs:
            print_metrics(console, run.summary)
    for text in _failure_lines(run):
        console.print_line(text)
    facts = [each.facts for each in run.outcomes if each.facts is not None]
    for warning in (*cautions(facts, run.recapture), *run.problems):
        console.print_line(f"Warning: {warning}")
    if clock := clock_line(facts):
        console.print_line(f"Note: {clock}")
    for task in run.work:
        for problem in task.problems:
            console.print_line(f"Note: {task.task_id}: {problem}")
    judge = run.judge
    if not run.is_quiet:
        print_unreported(console, judge.usage)
        print_spent_for_nothing(console, judge.spent_for_nothing)
    console.print_line(
        f"{judge.in_words()}. {totals_text(judge.usage)}.",
    )
    if judge.budget is not None:
        console.print_line(budget_text(judge.budget, run.is_overwriting))
    has_score = any(outcome.score is not None for outcome in run.outcomes)
    if has_score and not run.is_quiet:
        console.print_line(f"To see why an answer has its score: {run.show}")
    console.print_line(f"Time: {duration_text(run.elapsed_s)}.")
    results = run.folders.agent_results
    console.print_line(f"Results: {results}")


def _failure_lines(run: RunReport) -> Iterator[str]:
    unscored: dict[str, list[str]] = {}
    for outcome in run.outcomes:
        if outcome.reason is not None:
            unscored.setdefault(outcome.reason, []).append(
                f"{outcome.task_id}/{outcome.answer_name}"
            )
    for reason, names in unscored.items():
        yield f"No result: {name_list(names)}: {reason}"
    if unscored and not run.is_quiet:
        yield (
            OVERWRITE_CONTINUED
            if run.is_overwriting
            else "The same command tries the answers without a result again. Everything asked so "
            "far is kept."
        )
    for task in run.work:
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
        scores = [score for score in by_answer.values() if score is not None]
        mean = sum(scores) / len(scores) if scores else None
        listed = "  ".join(
            f"{name.removeprefix('answer_').removesuffix('.md')}: {number(by_answer[name])}"
            for name in sorted(by_answer, key=natural_key)
        )
        rows.append((task.task_id, task.script_version or "none", listed or "none", number(mean)))
    headings = ("task", "script", "answers", "mean")
    console.print_table("Scores", headings, rows, texts=("script", "answers"))


def print_spent_for_nothing(console: PlainConsole, usage: Usage) -> None:
    """Print what lookahead asked about leaves that were skipped; nothing if that was none."""
    if usage.judgments:
        console.print_line(
            f"Not used: {usage.judgments:,} of these judgments ({_cost(usage)}). They were about "
            "leaves that were skipped, or the script did not ask them in the end.",
        )


def print_unreported(console: PlainConsole, usage: RunUsage) -> None:
    """Print how many requests may be billed without being counted; nothing if none are."""
    if requests := usage.total().asked.unreported_requests:
        console.print_line(
            f"Judge use: the server did not report the tokens of {counted(requests, 'request')}, "
            "because they were stopped, timed out or were answered without a count. They may be "
            "billed, and the totals leave them out.",
        )


def _cost(usage: Usage) -> str:
    return "unknown" if usage.cost_usd is None else dollars(usage.cost_usd)


def budget_text(budget: Budget, is_overwriting: bool) -> str:
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
