"""Answers of an agent as files, imported from JSON lines or CSV."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, AliasChoices, BaseModel, Field, ValidationError

from mind2web2.benchmark.task_lists import Task, csv_rows
from mind2web2.errors import ResultWriteError, UsageError
from mind2web2.results.answers import (
    MAX_ANSWER_BYTES,
    answer_file,
    uniform_text,
)
from mind2web2.results.result_file import MAX_TIME_S
from mind2web2.utils.files import read_regular_file, write_whole
from mind2web2.utils.json_text import JsonObject
from mind2web2.utils.names import check_name, did_you_mean, name_list
from mind2web2.utils.process_lock import ProcessLock
from mind2web2.utils.program import program
from mind2web2.utils.text import counted

MAX_RUN = 10_000
_MAX_PROBLEMS = 10
_ANSWER_NAMES = ("answer", "response", "output")


def _whole(text: str) -> str:
    """Return a text. Raises UnicodeEncodeError: it has half a character."""
    text.encode()
    return text


class _Row(BaseModel):
    """The fields of a row, each by the first of its names that has a value; others are ignored."""

    task_id: Annotated[str, Field(coerce_numbers_to_str=True)] | None = Field(
        None, validation_alias=AliasChoices("task_id", "task", "id")
    )
    question: str | None = Field(
        None, validation_alias=AliasChoices("question", "task_description", "prompt")
    )
    answer: Annotated[str, AfterValidator(_whole)] = Field(
        "", validation_alias=AliasChoices(*_ANSWER_NAMES)
    )
    run: int | None = Field(
        None, ge=1, le=MAX_RUN, validation_alias=AliasChoices("run", "run_number")
    )
    seconds: float | None = Field(
        None, ge=0, le=MAX_TIME_S, validation_alias=AliasChoices("seconds", "time_seconds")
    )
    model: str | None = Field(None, validation_alias=AliasChoices("model", "agent"))
    # A run that failed is an empty answer: whatever text it has is not to be judged.
    status: Literal["answered"] = "answered"


@dataclass(frozen=True, slots=True)
class RunPlace:
    """One run on one task, and its files."""

    folder: Path
    number: int

    @property
    def answer(self) -> Path:
        """Return the path of the answer."""
        return self.folder / f"answer_{self.number}.md"

    @property
    def name(self) -> str:
        """Return task and answer for messages."""
        return f"{self.folder.name}/{self.answer.stem}"


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """One row of a file: an answer, empty where the agent gave none, and its meta file."""

    place: RunPlace
    text: str
    meta: JsonObject

    def is_stored(self) -> bool:
        """Tell whether the folder has this answer, with this meta file."""
        if not self.place.answer.exists():
            return False
        stored = answer_file(self.place.answer)
        if (stored.time_s, stored.model) != (self.meta.get("time_seconds"), self.meta.get("model")):
            return False
        content = read_regular_file(self.place.answer)
        return uniform_text(content.decode("utf-8", "replace")) == uniform_text(self.text)

    def write(self) -> None:
        """Write answer and meta file. Raises ResultWriteError: the folder cannot be written."""
        with ResultWriteError.unable_to(f"write to {self.place.folder}"):
            meta = (json.dumps(self.meta) + "\n").encode()
            write_whole(self.place.answer.with_suffix(".meta.json"), meta)
            # Last: an answer that is there is not imported again.
            write_whole(self.place.answer, self.text.encode())


def read_answers(path: Path, tasks: list[Task], agent_folder: Path) -> list[ImportedRun]:
    """Return the runs of a file; rows without a run number are numbered by task in their order.

    Raises:
        UsageError: names the lines that are wrong, the first of them if there are many.
        OSError: the file cannot be read.
    """
    rows = _ImportedRows(path, tasks, agent_folder)
    problems: list[str] = []
    for line, row in _rows(path):
        try:
            rows.add(line, row)
        except UsageError as error:
            problems.append(str(error))
    if problems:
        raise UsageError(_problems_text(problems, path))
    if not rows.runs:
        raise UsageError(
            f"{path} has no answers: expected JSON lines or CSV with task_id and answer"
        )
    return rows.runs


def _problems_text(problems: Sequence[str], path: Path) -> str:
    """Return the wrong lines in one text, which names the file once."""
    first, *others = problems[:_MAX_PROBLEMS]
    shown = [first, *(other.removeprefix(f"{path}, ") for other in others)]
    if len(problems) > len(shown):
        left = counted(len(problems) - len(shown), "more wrong line")
        shown.append(f"and {left}")
    return f"{'; '.join(shown)}. Nothing was imported"


class _ImportedRows:
    """The runs of a file's rows; ``add`` raises ``UsageError`` for a row that is wrong."""

    def __init__(self, path: Path, tasks: list[Task], agent_folder: Path) -> None:
        self.runs: list[ImportedRun] = []
        self._path = path
        self._agent_folder = agent_folder
        self._known = {task.task_id for task in tasks}
        self._by_question = {_words(task.question): task.task_id for task in tasks if task.question}
        self._lines: dict[RunPlace, int] = {}
        self._rows_of_task: Counter[str] = Counter()

    def add(self, line: int, row_or_line: str | JsonObject) -> None:
        """Add a row, as text of JSON or as the fields of a CSV row."""
        where = f"{self._path}, line {line}"
        content = _json_row(row_or_line, where) if isinstance(row_or_line, str) else row_or_line
        row = _parsed(content, where)
        task_id = self._task_id(row, where)
        self._rows_of_task[task_id] += 1
        if not content.keys() & set(_ANSWER_NAMES):
            raise UsageError(f"{where}: it has no answer: give an empty one where the agent failed")
        place = RunPlace(self._agent_folder / task_id, row.run or self._rows_of_task[task_id])
        if place in self._lines:
            raise UsageError(
                f"{where}: {place.name} is also in line {self._lines[place]}: give each row a run "
                "number"
            )
        self._lines[place] = line
        self.runs.append(_run_of(place, row, where))

    def _task_id(self, row: _Row, where: str) -> str:
        if row.task_id is not None:
            if row.task_id not in self._known:
                cure = did_you_mean(row.task_id, self._known, f"see {program()} rehearse")
                raise UsageError(f"{where}: unknown task {row.task_id[:200]!r}: {cure}")
            return check_name("task", row.task_id)
        if row.question is None:
            raise UsageError(
                f"{where}: it has neither task_id nor question (a comma separates columns of CSV)"
            )
        question = _words(row.question)
        if question not in self._by_question:
            raise UsageError(f"{where}: no task has this question: {question[:80]!r}")
        return self._by_question[question]


def import_answers(runs: list[ImportedRun], agent_folder: Path, *, overwrite: bool = False) -> int:
    """Write the runs and return how many were new; those that are there already stay.

    Raises:
        UsageError: the agent has another answer in a run.
        ResultWriteError: the folder cannot be written.
    """
    lock = ProcessLock(agent_folder / ".answering.lock")
    with lock.hold(f"another command writes to {agent_folder}: wait until it ends"):
        new = [run for run in runs if not run.is_stored()]
        other = [run.place.name for run in new if run.place.answer.exists()]
        if other and not overwrite:
            raise UsageError(
                f"{agent_folder} has other answers at {name_list(other)}: give run numbers, or "
                "--overwrite"
            )
        for run in new:
            run.write()
    return len(new)


def _rows(path: Path) -> Iterator[tuple[int, str | JsonObject]]:
    """Yield each line's number with its JSON text or its CSV fields."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            if path.suffix.lower() == ".csv":
                yield from csv_rows(file, path, [])
                return
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, line
    except UnicodeDecodeError as error:
        raise UsageError(f"cannot read {path}: it is not UTF-8 text") from error


def _json_row(line: str, where: str) -> JsonObject:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where}: it is not JSON: write one object a line") from error
    if not isinstance(row, dict):
        raise UsageError(f"{where}: it is not a JSON object with task_id and answer")
    return row


def _parsed(content: JsonObject, where: str) -> _Row:
    try:
        return _Row(**{name: value for name, value in content.items() if value not in (None, "")})
    except ValidationError as error:
        first = error.errors()[0]
        fault = first["msg"].replace("Input should", "it should")
        raise UsageError(f"{where}: {first['loc'][0]}: {fault}") from error


def _words(text: str) -> str:
    return " ".join(text.split())


def _run_of(place: RunPlace, row: _Row, where: str) -> ImportedRun:
    if len(row.answer.encode()) > MAX_ANSWER_BYTES:
        raise UsageError(f"{where}: the answer has more than {MAX_ANSWER_BYTES:,} bytes")
    stated = {"time_seconds": row.seconds, "model": row.model}
    meta = {name: value for name, value in stated.items() if value is not None}
    return ImportedRun(place, row.answer if row.answer.strip() else "", meta)
