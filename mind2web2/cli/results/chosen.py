"""The agents and tasks that a command on results works on."""

from __future__ import annotations

from mind2web2.benchmark.task_lists import Task, read_task_list
from mind2web2.runs.settings import RunSettings
from mind2web2.utils.names import check_name


def chosen_tasks(settings: RunSettings) -> list[str] | None:
    """Return the tasks of ``--task_list`` and ``--task_id``, ``None`` without either."""
    named = [check_name("task", task_id) for task_id in settings.task_ids]
    listed = [task.task_id for task in _listed(settings)]
    return list(dict.fromkeys(listed + named)) or None


def domains_of(settings: RunSettings) -> dict[str, str]:
    """Return the domains that ``--task_list`` names, by task."""
    return {task.task_id: task.domain for task in _listed(settings) if task.domain}


def _listed(settings: RunSettings) -> list[Task]:
    return [] if settings.task_list is None else read_task_list(settings.task_list)
