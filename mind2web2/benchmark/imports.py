"""Import answers from JSON lines or CSV into the folder of an agent."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import IO, Any

from mind2web2.benchmark.answering import RunPlace, write_run
from mind2web2.benchmark.tasks import Task, csv_rows
from mind2web2.errors import AnswerError, UsageError
from mind2web2.runs.answers import MAX_ANSWER_BYTES, RunRecord, read_answer, read_run_record
from mind2web2.runs.score_matrix import is_time_s
from mind2web2.utils.files import ProcessLock
from mind2web2.utils.text import check_name, name_list

MAX_LINE_CHARS = 8_000_000
MAX_RUN = 10_000
# The names under which files give a field; the first is ours.
_NAMES = {
    "task_id": ("task_id", "task", "id"),
    "question": ("question", "task_description", "prompt"),
    "answer": ("answer", "response", "output"),
    "run": ("run", "run_number"),
    "seconds": ("seconds", "time_seconds"),
    "cost_usd": ("cost_usd", "cost"),
    "status": ("status",),
}
# The likeness of a field's name and a misspelling of it.
_SAME_WORD = 0.82
_STATUSES = {"answered", "empty", "error", "out_of_budget"}


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """One row of a file."""

    place: RunPlace
    text: str | None
    record: RunRecord


def read_answers(path: Path, tasks: list[Task], agent_folder: Path) -> list[ImportedRun]:
    """Return the runs of a file; rows without a run number are numbered by task in their order.

    Raises:
        UsageError: names the first line that is wrong.
    """
    known = {task.task_id for task in tasks}
    by_question: dict[str, str] = {}
    for task in tasks:
        if task.question:
            by_question[_words(task.question)] = task.task_id
    found: dict[RunPlace, int] = {}
    runs = []
    rows_of_task: Counter[str] = Counter()
    for line, row in _rows(path):
        where = f"{path}, line {line}"
        _check_names(row, where)
        fields = {
            field: next((row[name] for name in names if row.get(name) not in (None, "")), None)
            for field, names in _NAMES.items()
        }
        task_id = _task_id(fields, known, by_question, where)
        if fields["status"] is None and not row.keys() & set(_NAMES["answer"]):
            raise UsageError(f"{where}: it has neither an answer nor a status")
        rows_of_task[task_id] += 1
        place = RunPlace(agent_folder / task_id, _run_number(fields["run"], rows_of_task[task_id], where))
        if place in found:
            raise UsageError(
                f"{where}: {place.name} is also in line {found[place]}: give each row a run number"
            )
        found[place] = line
        runs.append(_imported(place, fields, where))
    if not runs:
        raise UsageError(f"{path} has no answers: expected JSON lines or CSV with task_id and answer")
    return runs


def import_answers(runs: list[ImportedRun], agent_folder: Path, *, overwrite: bool = False) -> int:
    """Write the runs and return how many were new; those that are there already stay.

    Raises:
        UsageError: the agent has another answer in a run.
        ResultWriteError: the folder cannot be written.
    """
    lock = ProcessLock(agent_folder / ".answering.lock")
    if not lock.take():
        raise UsageError(f"another command writes to {agent_folder}: wait until it ends")
    try:
        new = [run for run in runs if not _is_there(run)]
        # A killed import may have left an answer without its record.
        other = [run.place.name for run in new if run.place.answer.exists() and not _has_same_text(run)]
        if other and not overwrite:
            raise UsageError(
                f"{agent_folder} has other answers at {name_list(other)}: give run numbers, or --overwrite"
            )
        for run in new:
            if run.text is None:
                run.place.answer.unlink(missing_ok=True)
            seconds = run.record.seconds
            write_run(run.place, run.record, run.text, {} if seconds is None else {"time_seconds": seconds})
        return len(new)
    finally:
        lock.give_back()


def _is_there(run: ImportedRun) -> bool:
    is_same = not run.place.answer.exists() if run.text is None else _has_same_text(run)
    return is_same and read_run_record(run.place.record) == run.record


def _has_same_text(run: ImportedRun) -> bool:
    try:
        text = read_answer(run.place.answer)
    except AnswerError:
        return False
    return run.text is not None and text == run.text.replace("\r\n", "\n").replace("\r", "\n")


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = _limited_lines(file, path)
            if path.suffix.lower() == ".csv":
                yield from csv_rows((line for _, line in lines), path, [])
                return
            for number, line in lines:
                if line.strip():
                    yield number, _json_row(line, f"{path}, line {number}")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"cannot read {path}: it is not UTF-8 text") from error


def _limited_lines(file: IO[str], path: Path) -> Iterator[tuple[int, str]]:
    number = 0
    while line := file.readline(MAX_LINE_CHARS + 1):
        number += 1
        if len(line) > MAX_LINE_CHARS:
            raise UsageError(f"{path}, line {number}: it has more than {MAX_LINE_CHARS:,} characters")
        yield number, line


def _json_row(line: str, where: str) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where}: it is not JSON ({error}): write one object a line") from error
    if not isinstance(row, dict):
        raise UsageError(f"{where}: it is not a JSON object with task_id and answer")
    return row


def _check_names(row: Mapping[str, Any], where: str) -> None:
    """Refuse a row with a misspelled field."""
    missing = {name: names[0] for names in _NAMES.values() if not row.keys() & set(names) for name in names}
    for given in row.keys() - {name for names in _NAMES.values() for name in names}:
        near = get_close_matches(given, missing, n=1, cutoff=_SAME_WORD)
        if near and not given.startswith(f"{near[0]}_"):  # question_id is a field of its own
            raise UsageError(f"{where}: unknown field {given[:40]!r}: did you mean {near[0]}?")


def _words(text: str) -> str:
    return " ".join(text.split())


def _task_id(fields: Mapping[str, Any], known: set[str], by_question: Mapping[str, str], where: str) -> str:
    if fields["task_id"] is not None:
        task_id = str(fields["task_id"])
        if task_id not in known:
            raise UsageError(f"{where}: unknown task {task_id[:200]!r}: mind2web2 tasks lists the known ones")
        return check_name("task", task_id)
    if fields["question"] is None:
        raise UsageError(f"{where}: it has neither task_id nor question")
    question = _words(str(fields["question"]))
    if question not in by_question:
        raise UsageError(f"{where}: no task has this question: {question[:80]!r}")
    return by_question[question]


def _run_number(given: object, position: int, where: str) -> int:
    if given is None:
        return position
    text = str(given)
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text[:9]) <= MAX_RUN or len(text) > 9:
        raise UsageError(f"{where}: run {text[:40]!r} is not a number from 1 to {MAX_RUN:,}")
    return int(text)


def _number(value: object, name: str, where: str) -> float | None:
    try:
        number = None if value is None or isinstance(value, bool) else float(str(value))
    except ValueError:
        number = -1.0
    if (value is not None and number is None) or (number is not None and not is_time_s(number)):
        raise UsageError(f"{where}: {name} {str(value)[:40]!r} is not a number of at least 0")
    return number


def _imported(place: RunPlace, fields: Mapping[str, Any], where: str) -> ImportedRun:
    text = fields["answer"]
    if text is not None and not isinstance(text, str):
        raise UsageError(f"{where}: the answer is not a text")
    if text is not None and len(text.encode("utf-8", "replace")) > MAX_ANSWER_BYTES:
        raise UsageError(f"{where}: the answer has more than {MAX_ANSWER_BYTES:,} bytes")
    has_text = text is not None and bool(text.strip())
    status = fields["status"] or ("answered" if has_text else "empty")
    if status not in _STATUSES:
        raise UsageError(f"{where}: status {str(status)[:40]!r} is none of {', '.join(sorted(_STATUSES))}")
    if (status == "answered") != has_text:
        raise UsageError(f"{where}: status {status} does not go with {'an' if has_text else 'no'} answer")
    record = RunRecord(
        status=str(status),
        reason="as the imported file states" if status == "error" else None,
        seconds=_number(fields["seconds"], "seconds", where),
        cost_usd=_number(fields["cost_usd"], "cost_usd", where),
        agent="imported",
    )
    return ImportedRun(place, text if has_text else None, record)
