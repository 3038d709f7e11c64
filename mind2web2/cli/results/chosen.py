"""The agents and tasks that a command on results works on."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from mind2web2.benchmark.tasks import read_task_list
from mind2web2.errors import UsageError
from mind2web2.runs.settings import RunSettings
from mind2web2.utils.names import check_name, name_list
from mind2web2.utils.near_names import nearest_name
from mind2web2.utils.program import command_line


def chosen_tasks(settings: RunSettings) -> list[str] | None:
    """Return the tasks of ``--task_list`` and ``--task_id``, ``None`` without either."""
    named = [check_name("task", task_id) for task_id in settings.task_ids]
    tasks = [] if settings.task_list is None else read_task_list(settings.task_list)
    listed = [task.task_id for task in tasks]
    return list(dict.fromkeys(listed + named)) or None


def domains_of(settings: RunSettings) -> dict[str, str]:
    """Return the domains that ``--task_list`` names, by task."""
    tasks = [] if settings.task_list is None else read_task_list(settings.task_list)
    return {task.task_id: task.domain for task in tasks if task.domain}


def check_record(eval_results_root: Path, agent_name: str) -> None:
    """Make sure that a run has left results of an agent, or the reasons why there are none.

    Raises:
        UsageError: no run has.
    """
    folder = eval_results_root / agent_name
    if not any(any(folder.glob(files)) for files in ("*/*/results/*.md.json", "*/summary.json")):
        raise no_results(eval_results_root, agent_name)


def no_results(eval_results_root: Path, agent_name: str) -> UsageError:
    """Return the error for an agent without results, with the name that was probably meant."""
    others = {path.parts[-5] for path in eval_results_root.glob("*/*/*/results/*.md.json")} - {
        agent_name
    }
    command = command_line("evaluate", agent_name)
    near = nearest_name(agent_name, others)
    meant = "" if near is None else f"did you mean {near}? Otherwise "
    known = f". There are results of {name_list(others)}" if others else ""
    return UsageError(
        f"no results of agent {agent_name} under {eval_results_root}: {meant}run {command} "
        f"first{known}"
    )


def removed_tasks_text(agent_results: Path, task_ids: Iterable[str]) -> str:
    """Return which folders hold results of tasks that have no answers any more."""
    folders = ", ".join(str(agent_results / task_id) for task_id in task_ids)
    return (
        "these tasks have no answers, but their stored results still count: to leave them out, "
        f"delete {folders}"
    )
