"""What a run has taken: a table after the scores, and a file beside the results."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from mind2web2.cli.console import print_amounts
from mind2web2.recorded_judge import RecordedJudge
from mind2web2.results import write_file, writing_in
from mind2web2.spending import Budget
from mind2web2.usage import RunUsage, TaskUsage, Usage
from mind2web2.utils.dollars import dollars, dollars_as_given
from mind2web2.utils.foreign_files import read_regular_file

log = logging.getLogger(__name__)

FILE_NAME = "usage.json"
# A line of totals each, so that the file stays small however often an agent is evaluated.
_RUNS_KEPT = 200
_COLUMNS = ("asked", "requests", "tokens in", "cached", "out", "cost", "reused", "saved")


def print_usage(console: Console, usage: RunUsage) -> None:
    """Print what each task and all together have taken; nothing where no judge was asked."""
    total = usage.total()
    if total.asked.requests:
        rows = {task_id: _cells(usage.tasks[task_id]) for task_id in sorted(usage.tasks)}
        print_amounts(console, "Judge use", "task", _COLUMNS, rows | {"all": _cells(total)})
    print_untold(console, usage)


def print_untold(console: Console, usage: RunUsage) -> None:
    """Print how many requests may be on the bill without being among the dollars; nothing if none are."""
    if requests := usage.total().asked.untold_requests:
        console.print(_untold_text(requests), soft_wrap=True)


def budget_text(budget: Budget) -> str:
    """Return what a budget was used for, and how to go on where it is used up."""
    limit = dollars_as_given(budget.max_usd)
    spent = f"Budget: {dollars(budget.spent_usd)} of --max_cost {limit} spent"
    if not budget.is_reached:
        return f"{spent}."
    return (
        f"{spent}, and nothing more was asked. The same command (without --overwrite) goes on with another "
        f"${limit}; a higher --max_cost goes further."
    )


def write_usage(folder: Path, judge: RecordedJudge) -> None:
    """Add the run to ``usage.json``: the newest run by task, those before as totals.

    Raises:
        ResultWriteError: the file cannot be written.
    """
    if not judge.usage.tasks:
        return
    path = folder / FILE_NAME
    total = judge.usage.total().as_json()
    run = {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "judge_model": judge.settings.model,
        "endpoint": judge.endpoint,
        **total,
        "sent_again": dict(judge.totals.retries.reasons),
    }
    tasks = {task_id: judge.usage.tasks[task_id].as_json() for task_id in sorted(judge.usage.tasks)}
    with writing_in(folder):
        runs = [*_earlier_runs(path), run][-_RUNS_KEPT:]
        content = {"newest_run": {**run, "tasks": tasks}, "runs": runs}
        write_file(path, json.dumps(content, ensure_ascii=True, indent=2) + "\n")


def _cells(task: TaskUsage) -> Sequence[str]:
    asked, reused = task.asked, task.reused
    tokens = (asked.tokens.input_tokens, asked.tokens.cached_tokens, asked.tokens.output_tokens)
    counts = (asked.judgments, asked.requests, *tokens)
    saved = _cost(reused) if reused.judgments else "-"
    return (*(f"{count:,}" for count in counts), _cost(asked), f"{reused.judgments:,}", saved)


def _untold_text(requests: int) -> str:
    return (
        f"Judge use: the server did not report the tokens of {requests:,} requests (stopped, timed out or "
        "answered without a count). They may be billed, and are not among the tokens and dollars above."
    )


def _cost(usage: Usage) -> str:
    return "unknown" if usage.cost_usd is None else dollars(usage.cost_usd)


def _earlier_runs(path: Path) -> list[Any]:
    try:
        runs = json.loads(read_regular_file(path))["runs"]
        if not isinstance(runs, list):
            raise TypeError("its runs are no list")
    except FileNotFoundError:
        return []
    except (OSError, ValueError, RecursionError, LookupError, TypeError) as error:
        log.warning(
            "%s is damaged and is replaced: the judge use of earlier runs is lost, nothing else (%s)",
            path,
            error,
        )
        return []
    return runs
