"""The agents and tasks that a command on results works on."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from mind2web2.benchmark.task_lists import Task, read_task_list
from mind2web2.errors import UsageError
from mind2web2.runs.settings import RunSettings
from mind2web2.utils.names import check_name, did_you_mean, name_list


def named_agents(options: argparse.Namespace) -> list[str]:
    """Return the agents that a command line names. Raises UsageError: one is named twice."""
    names = [check_name("agent", name.rstrip("/")) for name in options.agents]
    if len(set(names)) < len(names):
        raise UsageError("an agent is named twice: name each one once")
    return names


def chosen_tasks(settings: RunSettings, agents: Iterable[Path]) -> list[str] | None:
    """Return the tasks of ``--task_list`` and ``--task_id``, ``None`` without either.

    Args:
        agents: the folders of the agents' results.

    Raises:
        UsageError: no agent has results of a task that ``--task_id`` names.
    """
    named = [check_name("task", task_id) for task_id in settings.task_ids]
    listed = [task.task_id for task in _listed(settings)]
    known = {path.name for folder in agents for path in folder.glob("[!.]*/")}
    if unknown := sorted(set(named) - known):
        cure = did_you_mean(unknown[0], known, f"found: {name_list(known)}")
        raise UsageError(f"no results of task {unknown[0]}; {cure}")
    return list(dict.fromkeys(listed + named)) or None


def domains_of(settings: RunSettings) -> dict[str, str]:
    """Return the domains that ``--task_list`` names, by task."""
    return {task.task_id: task.domain for task in _listed(settings) if task.domain}


def _listed(settings: RunSettings) -> list[Task]:
    return [] if settings.task_list is None else read_task_list(settings.task_list)
