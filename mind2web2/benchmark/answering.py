"""The answers of an agent: ask it the questions of a benchmark, or import its answers from a file."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from mind2web2.benchmark.agents import (
    Agent,
    AgentFailedError,
    AgentUnavailableError,
    Question,
)
from mind2web2.benchmark.tasks import Task, csv_rows
from mind2web2.errors import AnswerError, ResultWriteError, UsageError
from mind2web2.runs.answers import (
    MAX_ANSWER_BYTES,
    RunRecord,
    is_empty_answer,
    read_answer,
    read_run_record,
    run_record_path,
)
from mind2web2.runs.result_file import is_time_s
from mind2web2.utils.aio import all_or_first_error
from mind2web2.utils.files import remove_leftovers, write_whole
from mind2web2.utils.json_fields import JsonObject
from mind2web2.utils.names import check_name, name_list
from mind2web2.utils.near_names import nearest_name
from mind2web2.utils.process_lock import ProcessLock
from mind2web2.utils.program import program
from mind2web2.utils.text import counted

_LONGEST_WAIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Plan:
    """How to ask.

    Args:
        runs: answers to each question.
        parallel: questions at once.
        max_cost: dollars for all runs of the agent, earlier ones included.
        retry_failed: ask again where earlier runs ended with an error or an empty answer.
    """

    runs: int = 1
    parallel: int = 4
    timeout_s: float = 3600.0
    retries: int = 2
    max_cost: float | None = None
    retry_failed: bool = False


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
    def record(self) -> Path:
        """Return the path of the record."""
        return run_record_path(self.folder, self.number)

    @property
    def name(self) -> str:
        """Return task and answer for messages."""
        return f"{self.folder.name}/{self.answer.stem}"


def write_run(
    place: RunPlace, record: RunRecord, text: str | None, meta: JsonObject
) -> None:
    """Write an answer with its meta file and record.

    Raises:
        ResultWriteError: the folder cannot be written.
    """
    content = {
        name: value for name, value in asdict(record).items() if value is not None
    }
    files: dict[Path, str] = {}
    if text is not None:
        if meta:
            files[place.answer.with_suffix(".meta.json")] = json.dumps(meta) + "\n"
        files[place.answer] = text
    # Last: a run without a record is asked again, unless its answer is there.
    files[place.record] = json.dumps(content, ensure_ascii=False) + "\n"
    try:
        for path, written in files.items():
            write_whole(path, written.encode("utf-8", "replace"))
    except OSError as error:
        raise ResultWriteError.at(place.folder, error) from error


class _Budget:
    """Lets a run start as long as the dearest run so far still fits beside those that go on."""

    def __init__(self, limit: float | None, spent: Sequence[float]) -> None:
        self._limit = limit
        self._spent = sum(spent)
        self._dearest = max(spent, default=0.0)
        self._going = 0
        self._changed = asyncio.Condition()

    async def starts(self) -> bool:
        """Wait until it is known whether another run fits, and return whether it does."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._fits() or self._going == 0)
            if not self._fits():
                return False
            self._going += 1
            return True

    def _fits(self) -> bool:
        if self._limit is None:
            return True
        if self._dearest == 0 and self._going:
            return False  # one run shows what a run costs
        return (
            self._spent < self._limit
            and self._spent + self._dearest * (self._going + 1) <= self._limit
        )

    async def ends(self, cost_usd: float) -> None:
        """Count a run's cost."""
        async with self._changed:
            self._going -= 1
            self._spent += cost_usd
            self._dearest = max(self._dearest, cost_usd)
            self._changed.notify_all()


async def answer_questions(
    agent: Agent,
    questions: Mapping[str, str],
    agent_folder: Path,
    plan: Plan,
    on_run: Callable[[RunPlace, RunRecord], None] = lambda _place, _record: None,
) -> dict[str, RunRecord]:
    """Ask each question ``plan.runs`` times and return the records by task and answer.

    Raises:
        UsageError: another command answers for the agent, or no question can be answered.
        AgentUnavailableError: the agent's server fails; the same command continues.
    """
    if plan.max_cost is not None and not agent.reports_cost:
        raise UsageError(
            f"--max_cost: the cost of {agent.name} is not known: give {{meta_file}} in --command, or the "
            "model's price in mind2web2.toml"
        )
    lock = ProcessLock(agent_folder / ".answering.lock")
    with lock.held(
        f"another mind2web2 answer writes to {agent_folder}: wait until it ends"
    ):
        budget = _Budget(plan.max_cost, await asyncio.to_thread(_costs, agent_folder))
        asking = _Asking(agent, plan, budget, asyncio.Semaphore(plan.parallel), on_run)
        # Run by run, so that a budget that ends leaves whole runs.
        places = [
            RunPlace(agent_folder / task, k + 1)
            for k in range(plan.runs)
            for task in questions
        ]
        records = await all_or_first_error(
            asking.run(place, questions[place.folder.name]) for place in places
        )
    return {place.name: record for place, record in zip(places, records, strict=True)}


def _costs(agent_folder: Path) -> list[float]:
    records = [
        read_run_record(path) for path in agent_folder.glob("*/answer_*.run.json")
    ]
    return [record.cost_usd or 0.0 for record in records if record is not None]


@dataclass(frozen=True, slots=True)
class _Asking:
    agent: Agent
    plan: Plan
    budget: _Budget
    places: asyncio.Semaphore
    on_run: Callable[[RunPlace, RunRecord], None]

    async def run(self, place: RunPlace, text: str) -> RunRecord:
        """Return the record of a run, after asking the agent unless the run is complete."""
        earlier = read_run_record(place.record)
        if is_empty_answer(place.answer):  # a file of the user's own, or edited since
            earlier = replace(earlier or RunRecord("empty"), status="empty")
        elif place.answer.exists():
            return (
                earlier
                if earlier and earlier.status == "answered"
                else RunRecord("answered")
            )
        if (
            earlier
            and earlier.status in ("empty", "error")
            and not self.plan.retry_failed
        ):
            return earlier
        async with self.places:
            before = 0.0 if earlier is None else earlier.cost_usd or 0.0
            record = RunRecord(
                "running", cost_usd=before or None, agent=self.agent.name
            )
            if earlier is not None and earlier.agent == self.agent.name:
                record = replace(record, response_id=earlier.response_id)
            if not await self.budget.starts():
                record = replace(record, status="out_of_budget")
                write_run(place, record, None, {})
            else:
                remove_leftovers(place.folder)
                record = await self._asked(place, text, record)
        self.on_run(place, record)
        return record

    async def _asked(self, place: RunPlace, text: str, record: RunRecord) -> RunRecord:
        before = record.cost_usd or 0.0
        try:
            for attempt in range(1, self.plan.retries + 2):
                record = replace(
                    record, status="running", reason=None, attempts=attempt
                )
                write_run(place, record, None, {})
                try:
                    record = await self._attempt(place, text, record)
                except AgentUnavailableError as error:
                    if attempt > self.plan.retries:
                        raise AgentUnavailableError(
                            f"{place.name}: {error} ({counted(attempt, 'attempt')}); the same "
                            "command continues"
                        ) from error
                    wait_s = 2.0**attempt if error.wait_s is None else error.wait_s
                    await asyncio.sleep(min(wait_s, _LONGEST_WAIT_S))
                    record = read_run_record(place.record) or record
                if record.status in ("answered", "empty"):
                    break
            return record
        finally:
            await self.budget.ends((record.cost_usd or 0.0) - before)

    async def _attempt(
        self, place: RunPlace, text: str, record: RunRecord
    ) -> RunRecord:
        """Ask once and return the record, which is stored."""
        scratch = Path(tempfile.mkdtemp(prefix="mind2web2-"))
        started_s = time.monotonic()
        created = datetime.now(UTC).isoformat(timespec="seconds")

        def keep_response_id(response_id: str | None) -> None:
            write_run(place, replace(record, response_id=response_id), None, {})

        question = Question(
            task_id=place.folder.name,
            run=place.number,
            text=text,
            scratch=scratch,
            log=place.folder / f"answer_{place.number}.run.log",
            timeout_s=self.plan.timeout_s,
            response_id=record.response_id,
            keep_response_id=keep_response_id,
        )
        answer, reason, cost_usd = None, None, None
        try:
            reply = await self.agent.ask(question)
            answer, cost_usd = reply.text, reply.cost_usd
            if len(answer.encode("utf-8", "replace")) > MAX_ANSWER_BYTES:
                answer = None
                reason = f"its answer has more than {MAX_ANSWER_BYTES:,} bytes"
        except TimeoutError:
            reason = f"no answer within {self.plan.timeout_s:g} s"
        except AgentFailedError as error:
            reason, cost_usd = " ".join(str(error).split()), error.cost_usd
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        seconds = round(time.monotonic() - started_s, 3)
        if answer is None:
            status = "error"
        else:
            status = "answered" if answer.strip() else "empty"
        costs = [cost for cost in (record.cost_usd, cost_usd) if cost is not None]
        record = replace(
            record,
            status=status,
            reason=reason,
            seconds=seconds,
            cost_usd=sum(costs) if costs else None,
            response_id=None,
        )
        stored = answer if status == "answered" else None
        write_run(place, record, stored, {"time_seconds": seconds, "created": created})
        return record


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
_MOST_PROBLEMS = 10
# The likeness of a field's name and a misspelling of it.
_SAME_WORD = 0.82
_STATUSES = {"answered", "empty", "error", "out_of_budget"}


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """One row of a file."""

    place: RunPlace
    text: str | None
    record: RunRecord


def read_answers(
    path: Path, tasks: list[Task], agent_folder: Path
) -> list[ImportedRun]:
    """Return the runs of a file; rows without a run number are numbered by task in their order.

    Raises:
        UsageError: names the lines that are wrong, the first of them if there are many.
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
    first, *others = problems[:_MOST_PROBLEMS]
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
        self._by_question = {
            _words(task.question): task.task_id for task in tasks if task.question
        }
        self._lines: dict[RunPlace, int] = {}
        self._rows_of_task: Counter[str] = Counter()

    def add(self, line: int, given: str | JsonObject) -> None:
        """Add a row, as text of JSON or as the fields of a CSV row."""
        where = f"{self._path}, line {line}"
        row = _json_row(given, where) if isinstance(given, str) else given
        _check_names(row, where)
        fields = _row_fields(row)
        task_id = _task_id(fields, self._known, self._by_question, where)
        self._rows_of_task[task_id] += 1
        if fields.status is None and not row.keys() & set(_NAMES["answer"]):
            raise UsageError(f"{where}: it has neither an answer nor a status")
        number = _run_number(fields.run, self._rows_of_task[task_id], where)
        place = RunPlace(self._agent_folder / task_id, number)
        if place in self._lines:
            raise UsageError(
                f"{where}: {place.name} is also in line {self._lines[place]}: give each row a run number"
            )
        self._lines[place] = line
        self.runs.append(_imported(place, fields, where))


def import_answers(
    runs: list[ImportedRun], agent_folder: Path, *, overwrite: bool = False
) -> int:
    """Write the runs and return how many were new; those that are there already stay.

    Raises:
        UsageError: the agent has another answer in a run.
        ResultWriteError: the folder cannot be written.
    """
    lock = ProcessLock(agent_folder / ".answering.lock")
    with lock.held(f"another command writes to {agent_folder}: wait until it ends"):
        new = [run for run in runs if not _is_there(run)]
        # A killed import may have left an answer without its record.
        other = [
            run.place.name
            for run in new
            if run.place.answer.exists() and not _has_same_text(run)
        ]
        if other and not overwrite:
            raise UsageError(
                f"{agent_folder} has other answers at {name_list(other)}: give run numbers, or --overwrite"
            )
        for run in new:
            if run.text is None:
                run.place.answer.unlink(missing_ok=True)
            seconds = run.record.seconds
            meta: JsonObject = {} if seconds is None else {"time_seconds": seconds}
            write_run(run.place, run.record, run.text, meta)
    return len(new)


def _is_there(run: ImportedRun) -> bool:
    if run.text is None:
        is_same = not run.place.answer.exists()
    else:
        is_same = _has_same_text(run)
    return is_same and read_run_record(run.place.record) == run.record


def _has_same_text(run: ImportedRun) -> bool:
    try:
        text = read_answer(run.place.answer)
    except AnswerError:
        return False
    return run.text is not None and text == run.text.replace("\r\n", "\n").replace(
        "\r", "\n"
    )


def _rows(path: Path) -> Iterator[tuple[int, str | JsonObject]]:
    """Yield each line's number with its text, which is JSON, or with its fields, which are of a CSV file."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = _limited_lines(file, path)
            if path.suffix.lower() == ".csv":
                yield from csv_rows((line for _, line in lines), path, [])
                return
            for number, line in lines:
                if line.strip():
                    yield number, line
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"cannot read {path}: it is not UTF-8 text") from error


def _limited_lines(file: IO[str], path: Path) -> Iterator[tuple[int, str]]:
    number = 0
    while line := file.readline(MAX_LINE_CHARS + 1):
        number += 1
        if len(line) > MAX_LINE_CHARS:
            raise UsageError(
                f"{path}, line {number}: it has more than {MAX_LINE_CHARS:,} characters"
            )
        yield number, line


def _json_row(line: str, where: str) -> JsonObject:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{where}: it is not JSON ({error}): write one object a line"
        ) from error
    if not isinstance(row, dict):
        raise UsageError(f"{where}: it is not a JSON object with task_id and answer")
    return row


def _check_names(row: JsonObject, where: str) -> None:
    """Refuse a row with a misspelled field."""
    missing = {
        name: names[0]
        for names in _NAMES.values()
        if not row.keys() & set(names)
        for name in names
    }
    for given in row.keys() - {name for names in _NAMES.values() for name in names}:
        near = nearest_name(given, missing, _SAME_WORD)
        # question_id is a field of its own
        if near is not None and not given.startswith(f"{near}_"):
            raise UsageError(
                f"{where}: unknown field {given[:40]!r}: did you mean {near}?"
            )


@dataclass(frozen=True)
class _RowFields:
    """The fields of a row, by the first of their names that has a value."""

    task_id: object
    question: object
    answer: object
    run: object
    status: object
    seconds: object
    cost_usd: object


def _row_fields(row: JsonObject) -> _RowFields:
    return _RowFields(
        **{field: _first_given(row, names) for field, names in _NAMES.items()}
    )


def _first_given(row: JsonObject, names: Sequence[str]) -> object:
    for name in names:
        if name in row and row[name] not in (None, ""):
            return row[name]
    return None


def _words(text: str) -> str:
    return " ".join(text.split())


def _task_id(
    fields: _RowFields,
    known: set[str],
    by_question: Mapping[str, str],
    where: str,
) -> str:
    if fields.task_id is not None:
        task_id = str(fields.task_id)
        if task_id not in known:
            raise UsageError(
                f"{where}: unknown task {task_id[:200]!r}: see {program()} tasks"
            )
        return check_name("task", task_id)
    if fields.question is None:
        raise UsageError(f"{where}: it has neither task_id nor question")
    question = _words(str(fields.question))
    if question not in by_question:
        raise UsageError(f"{where}: no task has this question: {question[:80]!r}")
    return by_question[question]


def _run_number(given: object, position: int, where: str) -> int:
    if given is None:
        return position
    text = str(given)
    if (
        not text.isascii()
        or not text.isdecimal()
        or not 1 <= int(text[:9]) <= MAX_RUN
        or len(text) > 9
    ):
        raise UsageError(
            f"{where}: run {text[:40]!r} is not a number from 1 to {MAX_RUN:,}"
        )
    return int(text)


def _number(value: object, name: str, where: str) -> float | None:
    try:
        if value is None or isinstance(value, bool):
            number = None
        else:
            number = float(str(value))
    except ValueError:
        number = -1.0
    if (value is not None and number is None) or (
        number is not None and not is_time_s(number)
    ):
        raise UsageError(
            f"{where}: {name} {str(value)[:40]!r} is not a number of at least 0"
        )
    return number


def _check_text(text: str, where: str) -> None:
    try:
        encoded = text.encode()
    except UnicodeEncodeError as error:
        half = ascii(text[error.start])
        raise UsageError(
            f"{where}: the answer has half a character, {half}, after {text[: error.start][-20:]!r}: write "
            "the whole character, or remove it"
        ) from error
    if len(encoded) > MAX_ANSWER_BYTES:
        raise UsageError(
            f"{where}: the answer has more than {MAX_ANSWER_BYTES:,} bytes"
        )


def _imported(place: RunPlace, fields: _RowFields, where: str) -> ImportedRun:
    text = fields.answer
    if text is not None and not isinstance(text, str):
        raise UsageError(f"{where}: the answer is not a text")
    if text is not None:
        _check_text(text, where)
    has_text = text is not None and bool(text.strip())
    status = fields.status or ("answered" if has_text else "empty")
    if status not in _STATUSES:
        raise UsageError(
            f"{where}: status {str(status)[:40]!r} is none of {', '.join(sorted(_STATUSES))}"
        )
    if (status == "answered") != has_text:
        raise UsageError(
            f"{where}: status {status} does not go with {'an' if has_text else 'no'} answer"
        )
    record = RunRecord(
        status=str(status),
        reason="as the imported file states" if status == "error" else None,
        seconds=_number(fields.seconds, "seconds", where),
        cost_usd=_number(fields.cost_usd, "cost_usd", where),
        agent="imported",
    )
    return ImportedRun(place, text if has_text else None, record)
