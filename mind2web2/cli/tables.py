"""The tables at the end of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from mind2web2.answer_evaluation import AnswerOutcome
from mind2web2.cli.cautions import cautions, clock_line
from mind2web2.cli.metric_tables import line, number, print_metrics
from mind2web2.cli.progress import duration_text, totals_text
from mind2web2.cli.usage_report import budget_text, print_usage
from mind2web2.eval_runner import RunFolders
from mind2web2.recorded_judge import RecordedJudge
from mind2web2.selection import TaskWork
from mind2web2.utils.names import name_list


def print_run(
    console: Console,
    work: Sequence[TaskWork],
    outcomes: Sequence[AnswerOutcome],
    summary: Mapping[str, Any] | None,
    judge: RecordedJudge,
    folders: RunFolders,
    problems: Sequence[str],
    recapture: str,
    elapsed_s: float,
    show: str,
) -> None:
    """Print each task's scores, the agent's metrics, what has no score and why, and what it took.

    Args:
        recapture: the command that captures suspect pages again.
        elapsed_s: how long the run took.
        show: the command that shows why an answer has its score.
    """
    console.print(_scores_table(work, outcomes))
    if summary is not None and summary["num_runs"]:
        print_metrics(console, summary)
    for reason, names in _by_reason(outcomes).items():
        line(console, f"No result: {name_list(names)}: {reason}")
    for caution in cautions(outcomes, recapture):
        line(console, f"Warning: {caution}")
    for problem in problems:
        line(console, f"Warning: {problem}")
    if clock := clock_line(outcomes):
        line(console, f"Note: {clock}")
    for task in work:
        for problem in task.problems:
            line(console, f"Note: {task.task_id}: {problem}")
    print_usage(console, judge.usage)
    line(console, f"Judge: {judge.settings.model} ({judge.endpoint}). {totals_text(judge.totals)}.")
    if judge.budget is not None:
        line(console, budget_text(judge.budget))
    line(console, f"Why an answer has its score: {show}")
    line(console, f"Time: {duration_text(elapsed_s)}.")
    line(console, f"Results: {folders.agent_results}")


def _by_reason(outcomes: Sequence[AnswerOutcome]) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome.reason is not None:
            names.setdefault(outcome.reason, []).append(f"{outcome.task_id}/{outcome.answer_name}")
    return names


def _scores_table(work: Sequence[TaskWork], outcomes: Sequence[AnswerOutcome]) -> Table:
    table = Table(title="Scores")
    table.add_column("task", overflow="fold")
    table.add_column("script", no_wrap=True)
    table.add_column("answers", overflow="fold")
    table.add_column("mean", justify="right")
    for task in work:
        own = [outcome for outcome in outcomes if outcome.task_id == task.task_id]
        scores = [outcome.score for outcome in own if outcome.score is not None]
        mean = sum(scores) / len(scores) if scores else None
        listed = "  ".join(f"{_stem(outcome)} {number(outcome.score)}" for outcome in own)
        table.add_row(task.task_id, task.script_version or "none", listed or "none", number(mean))
    return table


def _stem(outcome: AnswerOutcome) -> str:
    return outcome.answer_name.removeprefix("answer_").removesuffix(".md") + ":"
