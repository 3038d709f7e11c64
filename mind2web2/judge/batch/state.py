"""What is known of an agent's batch jobs, on disk: which questions are with the provider, what came back."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, ValidationError

from mind2web2.errors import ResultWriteError, UsageError
from mind2web2.judge.batch.endpoints import line_head
from mind2web2.utils.files import read_regular_file, write_whole

if TYPE_CHECKING:
    from filelock import FileLock

log = logging.getLogger(__name__)

# The judgment's key, and the hash of the request's body: a repair asks otherwise about the same thing.
Question = tuple[str, str]


class JobRecord(BaseModel):
    """A job and the questions in it.

    Args:
        number: counts the agent's jobs.
        name: of ours, in the job's metadata at the provider, to find it by.
        endpoint: which server has it.
        created_s: seconds since the epoch.
        questions: body hashes by judgment key; of a job that is over, those whose reply was not used yet.
        batch_id: the provider's name; ``None`` while it is not known whether the job has reached it.
        is_over: its results are on disk.
    """

    model_config = ConfigDict(frozen=True)

    number: int
    name: str
    endpoint: str
    created_s: float
    questions: dict[str, str]
    batch_id: str | None = None
    is_over: bool = False


@dataclass(frozen=True, slots=True)
class LinePlace:
    """Where a line of results is; ``is_reply`` tells it from one that reports an error."""

    path: Path
    offset: int
    length: int
    is_reply: bool

    def read(self) -> bytes:
        """Return the line."""
        with self.path.open("rb") as file:
            file.seek(self.offset)
            return file.read(self.length)


class Gathering:
    """The input of a job that is being gathered, written as questions come in; safe to use from threads.

    Args:
        path: the file, made with the first line.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lengths: dict[Question, int] = {}
        self._bytes = 0
        self._is_finished = False
        self._lock = threading.Lock()

    @property
    def questions(self) -> list[Question]:
        """Return whose lines are in the file."""
        return list(self._lengths)

    def write(self, question: Question, line: Iterable[bytes]) -> None:
        """Append a question's line, piece by piece."""
        with self._lock:
            # A question that was given up may be asked once more before the job goes out.
            if self._is_finished or question in self._lengths:
                return
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab") as file:
                # The disk may have been full halfway through a line.
                file.truncate(self._bytes)
                length = sum(file.write(piece) for piece in line)
            self._lengths[question] = length
            self._bytes += length

    def finish(self, unwanted: Collection[Question]) -> None:
        """Take no more lines, and drop those that nobody waits for any more."""
        with self._lock:
            self._is_finished = True
            if self.path.exists():
                os.truncate(self.path, self._bytes)
            if not unwanted:
                return
            kept = self.path.with_suffix(".kept")
            with self.path.open("rb") as source, kept.open("wb") as target:
                for question, length in self._lengths.items():
                    line = source.read(length)
                    if question not in unwanted:
                        target.write(line)
            kept.replace(self.path)
            self._lengths = {
                question: length for question, length in self._lengths.items() if question not in unwanted
            }

    def remove(self) -> None:
        """Delete the file."""
        self.path.unlink(missing_ok=True)


class BatchFolder:
    """The folder of an agent's batch jobs; one run at a time works in it.

    Args:
        path: made when first written to.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock: FileLock | None = None
        self._gatherings = 0

    def lock(self) -> None:
        """Keep other runs out until ``unlock``.

        Raises:
            UsageError: another run is at work here; two would pay for the same questions twice.
            ResultWriteError: the folder cannot be written.
        """
        from filelock import FileLock, Timeout

        try:
            self._path.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self._path / ".lock")
            lock.acquire(timeout=0)
        except Timeout as error:
            raise UsageError(
                f"another run with --batch is at work in {self._path}: wait for it or stop it"
            ) from error
        except OSError as error:
            raise ResultWriteError(f"cannot write to {self._path}: {error.strerror}") from error
        self._lock = lock
        try:
            self._remove_leftovers()
        except OSError as error:
            self.unlock()
            raise ResultWriteError(f"cannot write to {self._path}: {error.strerror}") from error

    def _remove_leftovers(self) -> None:
        for left in [*self._path.glob("*.input"), *self._path.glob("*.kept"), *self._path.glob("*.part")]:
            left.unlink(missing_ok=True)

    def unlock(self) -> None:
        """Let other runs in."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def records(self) -> list[JobRecord]:
        """Return the jobs that are known here, oldest first.

        Raises:
            UsageError: one of their records cannot be read.
        """
        found = []
        for path in sorted(self._path.glob("*.json")):
            try:
                found.append(JobRecord.model_validate_json(read_regular_file(path)))
            except ValidationError as error:
                log.warning("damaged record of a batch job ignored path=%s problem=%s", path, error)
            except OSError as error:
                # What is not known to be asked would be asked, and paid, once more.
                raise UsageError(
                    f"cannot read the record of a batch job {path}: {error.strerror}; "
                    "make it readable or remove it"
                ) from error
        return found

    def save(self, record: JobRecord) -> None:
        """Write a job down, in place of what was known of it."""
        write_whole(self._record_path(record), record.model_dump_json(indent=1))

    def keep_only(self, record: JobRecord, left: Collection[Question]) -> None:
        """Forget what was asked in a job but these questions, and the job itself with the last of them."""
        if left:
            self.save(record.model_copy(update={"questions": dict(left)}))
        else:
            self.remove(record)

    def remove(self, record: JobRecord) -> None:
        """Forget a job and its results."""
        self._record_path(record).unlink(missing_ok=True)
        self.results_path(record).unlink(missing_ok=True)

    def results_path(self, record: JobRecord) -> Path:
        """Return the file of what a job brought."""
        return self._path / f"{record.number:05d}.results.jsonl"

    def gathering(self) -> Gathering:
        """Return a new, empty input."""
        self._gatherings += 1
        return Gathering(self._path / f"{self._gatherings:05d}.input")

    def places(self, record: JobRecord) -> dict[str, LinePlace]:
        """Return where the line to each of a job's questions is; damaged lines are none."""
        path, offset = self.results_path(record), 0
        found: dict[str, LinePlace] = {}
        if not path.is_file():
            return found
        with path.open("rb") as file:
            for line in file:
                head = line_head(line) if line.strip() else None
                if head is None and line.strip():
                    log.warning("batch %d: a damaged line of its results is ignored", record.number)
                if head is not None and head.custom_id in record.questions:
                    place = LinePlace(path, offset, len(line), head.is_reply)
                    found.setdefault(head.custom_id, place)
                offset += len(line)
        return found

    def _record_path(self, record: JobRecord) -> Path:
        return self._path / f"{record.number:05d}.json"
