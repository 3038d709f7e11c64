"""The tasks that a command's options name."""

from __future__ import annotations

from pathlib import Path

from mind2web2.benchmark.task_lists import Task
from mind2web2.benchmark.tasks import find_tasks
from mind2web2.cli.task_options import TASKS_ROOT
from mind2web2.errors import UsageError
from mind2web2.runs.settings import RunSettings


def tasks_of(settings: RunSettings, tasks_root: Path) -> list[Task]:
    """Return the tasks that are there, or those of ``--task_list``.

    Raises:
        UsageError: there is no such folder.
    """
    if tasks_root != TASKS_ROOT and not tasks_root.is_dir():
        raise UsageError(f"--tasks_root: there is no folder {tasks_root}")
    return find_tasks(settings.paths, tasks_root, settings.task_list)
