"""Lists of tasks: which tasks, in which domains, with which questions."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mind2web2.errors import UsageError
from mind2web2.utils.files import read_text_file
from mind2web2.utils.names import check_name, natural_key
from mind2web2.utils.path_config import SCRIPT_SUFFIXES

MAX_FIELD_CHARS = 1_000_000


_COLUMNS = ("task_id", "domain", "task_description")


@dataclass(frozen=True, slots=True)
class Task:
    """One task of a benchmark.

    Args:
        question: the text that agents get.
        script_problem: why its eval script cannot run, with file and line, as far as its text
            shows.
    """

    task_id: str
    domain: str = ""

    script_version: str | None = None
    question: str | None = None
    script_problem: str | None = None


def read_task_list(path: Path) -> list[Task]:
    """Return the tasks of a list in its order: one id a line, or CSV with a column ``task_id``.

    A folder of scripts is a list of their tasks.

    Raises:
        UsageError: it cannot be read, names no task, names one twice, or has other columns.
    """
    shown = f"the task list {path}"
    with UsageError.unable_to(f"read {shown}"):
        text = "\n".join(script_ids([path])) if path.is_dir() else read_text_file(path, shown)
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


def script_ids(folders: Sequence[Path]) -> list[str]:
    """Return the tasks that have a script or a rubric file in the folders, in natural order."""
    ids: set[str] = set()
    for folder in folders:
        if folder.is_dir():
            scripts = (path for path in folder.iterdir() if path.suffix in SCRIPT_SUFFIXES)
            ids |= {path.stem for path in scripts}
    return sorted(ids, key=natural_key)


def _csv_tasks(text: str, path: Path) -> Iterator[tuple[int, Task]]:
    for number, row in csv_rows(text.splitlines(keepends=True), path, ["task_id"]):
        fields = {name: (row.get(name) or "").strip() for name in _COLUMNS}
        question = fields["task_description"] or None
        yield number, Task(fields["task_id"], fields["domain"], question=question)


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
            if None in row or None in row.values():
                which = "more" if None in row else "fewer"
                raise UsageError(f"{path}, line {reader.line_num}: {which} fields than columns")
            yield reader.line_num, row
    except csv.Error as error:
        raise UsageError(f"{path}, line {reader.reader.line_num}: {error}") from error
