"""Tasks: their lists, and the question of each task."""

from __future__ import annotations

import ast
import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mind2web2.errors import UsageError
from mind2web2.scripts.load import parsed_script, script_problem
from mind2web2.scripts.rubric_file import RUBRIC_SUFFIX
from mind2web2.scripts.rubric_reading import read_rubric
from mind2web2.scripts.yaml_lines import YamlFileError
from mind2web2.utils.files import read_regular_file
from mind2web2.utils.names import check_name, name_list, natural_key
from mind2web2.utils.path_config import SCRIPT_SUFFIXES, PathConfig
from mind2web2.utils.program import program

MAX_FIELD_CHARS = 1_000_000
_COLUMNS = ("task_id", "domain", "subdomain", "task_description")


@dataclass(frozen=True, slots=True)
class Task:
    """One task of a benchmark.

    Args:
        listed_in: names of the task lists that name it.
        question: the text that agents get.
        script_problem: why its eval script cannot run, with file and line, as far as its text
            shows.
    """

    task_id: str
    domain: str = ""
    subdomain: str = ""
    listed_in: tuple[str, ...] = ()
    script_version: str | None = None
    question: str | None = None
    script_problem: str | None = None


def read_task_list(path: Path) -> list[Task]:
    """Return the tasks of a list in its order: one id a line, or CSV with a column ``task_id``.

    A folder of scripts is a list of their tasks.

    Raises:
        UsageError: it cannot be read, names no task, names one twice, or has other columns.
    """
    try:
        if path.is_dir():
            text = "\n".join(_script_ids([path]))
        else:
            text = read_regular_file(path).decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"cannot read the task list {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"cannot read the task list {path}: it is not UTF-8 text") from error
    if path.suffix.lower() == ".csv":
        rows = list(_csv_tasks(text, path))
    else:
        lines = [(number, line.strip()) for number, line in enumerate(text.split("\n"), start=1)]
        rows = [(number, Task(line)) for number, line in lines if line and not line.startswith("#")]
    if not rows:
        raise UsageError(f"the task list {path} names no task: write one task id a line")
    seen: dict[str, int] = {}
    for number, task in rows:
        try:
            check_name("task", task.task_id)
        except UsageError as error:
            raise UsageError(f"{path}, line {number}: {error}") from error
        if first := seen.get(task.task_id):
            raise UsageError(f"{path}, line {number}: task {task.task_id} is also in line {first}")
        seen[task.task_id] = number
    return [task for _, task in rows]


def _script_ids(folders: Sequence[Path]) -> list[str]:
    """Return the tasks that have a script or a rubric file in the folders, in natural order."""
    found: set[str] = set()
    for folder in folders:
        if folder.is_dir():
            scripts = (path for path in folder.iterdir() if path.suffix in SCRIPT_SUFFIXES)
            found |= {path.stem for path in scripts}
    return sorted(found, key=natural_key)


def _csv_tasks(text: str, path: Path) -> Iterator[tuple[int, Task]]:
    for number, row in csv_rows(text.splitlines(keepends=True), path, ["task_id"]):
        fields = {name: (row.get(name) or "").strip() for name in _COLUMNS}
        yield (
            number,
            Task(
                fields["task_id"],
                fields["domain"],
                fields["subdomain"],
                (),
                None,
                fields["task_description"] or None,
            ),
        )


def csv_rows(
    lines: Iterable[str], path: Path, required: Sequence[str]
) -> Iterator[tuple[int, dict[str, str | None]]]:
    """Yield the rows of a CSV file by column, with the number of the line in which each ends.

    Raises:
        UsageError: a column is missing, or a row is not CSV or has more fields than columns.
    """
    csv.field_size_limit(MAX_FIELD_CHARS)
    reader = csv.DictReader(lines, strict=True)
    try:
        columns = [name.strip() for name in reader.fieldnames or ()]
        reader.fieldnames = columns
        if missing := [name for name in required if name not in columns]:
            raise UsageError(
                f"{path}, line 1: no column {' and '.join(missing)}: "
                f"the columns, separated by commas, are {', '.join(columns) or 'none'}"
            )
        for row in reader:
            if None in row:
                raise UsageError(f"{path}, line {reader.line_num}: more fields than columns")
            yield reader.line_num, row
    except csv.Error as error:
        raise UsageError(f"{path}, line {reader.reader.line_num}: {error}") from error


def find_tasks(paths: PathConfig, tasks_root: Path, task_list: Path | None = None) -> list[Task]:
    """Return the tasks of the lists under ``tasks_root`` and of the eval scripts, or of one list.

    Raises:
        UsageError: there is no task, or a list cannot be read.
    """
    lists = sorted(tasks_root.glob("*.csv")) if task_list is None else [task_list]
    found: dict[str, Task] = {}
    for path in lists:
        for task in read_task_list(path):
            known = found.get(task.task_id, task)
            found[task.task_id] = replace(
                known,
                listed_in=(*known.listed_in, path.stem),
                question=known.question or task.question,
            )
    versions = paths.script_versions() if paths.eval_scripts_root.is_dir() else []
    if task_list is None:
        folders = [paths.eval_scripts_root / version for version in versions]
        for task_id in _script_ids(folders or [paths.eval_scripts_root]):
            found.setdefault(task_id, Task(task_id))
    if not found:
        raise UsageError(
            f"no tasks under {tasks_root} and {paths.eval_scripts_root}: download them by "
            f"{program()} get"
        )
    has_scripts = paths.eval_scripts_root.is_dir()
    return [_with_script(task, paths) if has_scripts else task for task in found.values()]


def questions_of(tasks: Iterable[Task]) -> dict[str, str]:
    """Return the question of each task.

    One whose eval script is broken may have none and is left out.

    Raises:
        UsageError: another task has none, or all scripts are broken.
    """
    tasks = list(tasks)
    asked = [task for task in tasks if task.question or not task.script_problem]
    if not asked:
        raise UsageError("; ".join(task.script_problem or "" for task in tasks))
    questions = {task.task_id: task.question or "" for task in asked}
    if unknown := [task_id for task_id, question in questions.items() if not question.strip()]:
        raise UsageError(
            f"no question for {name_list(unknown)}: give a task list with a column "
            "task_description, or "
            "an eval script with TASK_DESCRIPTION"
        )
    return questions


def select_tasks(tasks: Sequence[Task], task_ids: Sequence[str]) -> list[Task]:
    """Return the named tasks, or all if none is named. Raises UsageError: a task is unknown."""
    for name in task_ids:
        check_name("task", name)
    known = {task.task_id for task in tasks}
    if unknown := [name for name in task_ids if name not in known]:
        raise UsageError(f"unknown task {name_list(unknown)}. Found: {name_list(known)}")
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
        if script.suffix == RUBRIC_SUFFIX:
            return read_rubric(script).rubric.question.strip()
        tree = parsed_script(read_regular_file(script), script)
    except (OSError, ValueError, SyntaxError, RecursionError, YamlFileError):
        return None  # ``script_problem`` says so
    for statement in tree.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if any(
            isinstance(target, ast.Name) and target.id == "TASK_DESCRIPTION" for target in targets
        ):
            value = statement.value  # type: ignore[attr-defined]  # an assignment, as it has targets
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                return value.value.strip()
    return None
