"""Tasks: their lists, and the question of each task."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mind2web2.benchmark.task_lists import Task, read_task_list, script_ids
from mind2web2.errors import UsageError
from mind2web2.scripts.load import parsed_script, script_problem
from mind2web2.scripts.rubric_reading import ReadRubric
from mind2web2.scripts.yaml_lines import YamlFileError
from mind2web2.utils.files import read_regular_file
from mind2web2.utils.names import name_list
from mind2web2.utils.path_config import PathConfig
from mind2web2.utils.program import program


def find_tasks(
    paths: PathConfig,
    tasks_root: Path,
    task_list: Path | None = None,
    names: Sequence[str] = (),
    *,
    with_script: bool = False,
) -> list[Task]:
    """Return the tasks of the lists under ``tasks_root`` and of the eval scripts, or of one list.

    Args:
        names: of the tasks that are wanted; all if none is named.
        with_script: leave out tasks without a script.

    Raises:
        UsageError: there is no task, one of these names is unknown, or a list cannot be read.
    """
    lists = sorted(tasks_root.glob("*.csv")) if task_list is None else [task_list]
    by_id: dict[str, Task] = {}
    for path in lists:
        for task in read_task_list(path):
            known = by_id.get(task.task_id, task)
            by_id[task.task_id] = replace(known, question=known.question or task.question)
    if task_list is None:
        versions = paths.script_versions()
        folders = [paths.eval_scripts_root / version for version in versions]
        for task_id in script_ids(folders or [paths.eval_scripts_root]):
            by_id.setdefault(task_id, Task(task_id))
    if not by_id:
        raise UsageError(
            f"no tasks under {tasks_root} and {paths.eval_scripts_root} in {Path.cwd()}: run the "
            f"command in your project's folder, or download tasks by {program()} get"
        )
    tasks = [_with_script(task, paths) for task in by_id.values()]
    if with_script:
        tasks = [task for task in tasks if task.script_version is not None]
    return _select_tasks(tasks, names)


def _select_tasks(tasks: Sequence[Task], task_ids: Sequence[str]) -> list[Task]:
    """Return the named tasks, or all if none is named. Raises UsageError: a task is unknown."""
    known = {task.task_id for task in tasks}
    if unknown := [name for name in task_ids if name not in known]:
        raise UsageError(f"unknown task {name_list(map(repr, unknown))}. Found: {name_list(known)}")
    return [task for task in tasks if not task_ids or task.task_id in task_ids]


def _with_script(task: Task, paths: PathConfig) -> Task:
    script = paths.find_script(task.task_id)
    if script is None:
        return task
    return replace(
        task,
        script_version=script.version,
        question=task.question or _description(script.path),
        script_problem=script_problem(script.path),
    )


def _description(script: Path) -> str | None:
    """Return a script's ``TASK_DESCRIPTION`` without running it, or the question of a rubric file.

    ``None`` where it cannot be read.
    """
    try:
        read = ReadRubric.at(script)
        if read is not None:
            return read.rubric.question.strip()
        tree = parsed_script(read_regular_file(script), script)
    except (OSError, ValueError, SyntaxError, RecursionError, YamlFileError):
        return None  # ``script_problem`` says so
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name("TASK_DESCRIPTION")], value=ast.Constant(str(text))):
                return text.strip()
    return None
