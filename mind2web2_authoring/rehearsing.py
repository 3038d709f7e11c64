"""Rehearsals of many tasks on all cores, with their progress."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mind2web2.plugin import (
    Mind2Web2Error,
    PlainConsole,
    RunSettings,
    Surroundings,
    UsageError,
    find_tasks,
    run_in_worker,
)
from mind2web2_authoring.findings import Finding
from mind2web2_authoring.rehearsal import (
    RehearsalPlan,
    TaskRehearsal,
    rehearse_task,
)

# The limit of a task with all its answers stops work that no time limit within the process stops.
_TASK_TIMEOUT_S = 600.0
_STOPPED = "Stopped: name tasks to rehearse these alone."


def rehearsal_plans(
    settings: RunSettings, names: Sequence[str], cases: Path
) -> list[RehearsalPlan]:
    """Return a plan for each of the named tasks, or for all that can be evaluated.

    Args:
        names: task ids, or files of tasks.

    Raises:
        UsageError: there is no such task, or none at all.
    """
    paths = settings.paths
    files = [Path(name) for name in names if Path(name).is_file()]
    ids = [name for name in names if not Path(name).is_file()]
    questions = {path: path.stem for path in files}
    surroundings = Surroundings.of_command()
    if ids or not files:
        for task in find_tasks(paths, Path("tasks"), names=ids, with_script=True):
            script = paths.default_script_for(task.task_id)
            questions[script] = task.question or task.task_id
    plans = [
        RehearsalPlan(
            path.stem,
            # Workers have a working directory of their own.
            path.absolute(),
            question,
            (cases / path.stem).absolute(),
            settings,
            surroundings,
        )
        for path, question in questions.items()
    ]
    if not plans:
        raise UsageError(f"no task under {paths.eval_scripts_root} has a script or rubric file")
    return plans


def rehearse_all(plans: Sequence[RehearsalPlan]) -> list[TaskRehearsal]:
    """Rehearse the tasks on all cores and return their reports in order.

    Raises:
        SystemExit: Ctrl-C or SIGTERM; the worker processes are gone by then.
    """
    reports: list[TaskRehearsal] = []
    console = PlainConsole(sys.stderr, outlives_reader=True)
    status = console.run(_rehearse(plans, console, reports), _STOPPED)
    if status:
        raise SystemExit(status)
    return reports


async def _rehearse(
    plans: Sequence[RehearsalPlan], console: PlainConsole, reports: list[TaskRehearsal]
) -> int:
    """Rehearse the tasks on all cores, fill in their reports in order, and return 0."""
    with console.show_progress("rehearsed", len(plans)) as advance:

        async def one(plan: RehearsalPlan) -> TaskRehearsal:
            try:
                # Another task must not meet what this script changes, or a stopped import.
                report = await run_in_worker(
                    rehearse_task, plan, timeout_s=_TASK_TIMEOUT_S, is_last=True
                )
            except Mind2Web2Error as error:
                reason = f"the rehearsal of {plan.script.name} was stopped: {error}"
                finding = Finding("script fails", reason)
                report = TaskRehearsal(plan.task_id, "faulty", findings=(finding,), error=reason)
            advance()
            return replace(report, question=plan.question)

        reports += await asyncio.gather(*map(one, plans))
    return 0
