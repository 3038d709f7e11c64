"""An agent's batch jobs on disk: inputs, records of jobs, and results until they are used."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
)
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, ValidationError

from mind2web2.errors import ResultWriteError, UsageError
from mind2web2.llm_client.failures import RequestFailedError, failure_from_body
from mind2web2.llm_client.http_pool import MAX_REPLY_BYTES
from mind2web2.llm_client.openai_protocol import read_completion
from mind2web2.llm_client.transport import Completion, JsonBody, ReplyPart
from mind2web2.utils.aio import to_the_end
from mind2web2.utils.files import read_regular_file, write_whole
from mind2web2.utils.shown_text import one_line

log = logging.getLogger(__name__)

Value = TypeVar("Value")

# The judgment's key, and the hash of the request's body: a repair has the same key and another
# body.
Question = tuple[str, str]
# Tells whether the judgment with a key is stored.
IsStored = Callable[[str], Awaitable[bool]]
# Tells whether a script may come to ask more.
IsAtWork = Callable[[], bool]


class JobRecord(BaseModel):
    """A job and its questions.

    Args:
        name: our own, in the job's metadata at the provider, to find it by.
        questions: body hashes by judgment key; after the job's end, those with an unused reply.
        batch_id: the provider's name; ``None`` until the provider has confirmed the job.
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


class BatchError(ReplyPart):
    """An error of a job or of one of its requests, in the provider's words."""

    code: str | None = None
    message: str | None = None


class _LineResponse(ReplyPart):
    status_code: int
    body: Any = None


class _Line(ReplyPart):
    custom_id: str
    response: _LineResponse | None = None
    error: BatchError | None = None


@dataclass(frozen=True, slots=True)
class ResultLine:
    """A line of a job's results, which holds a reply or an error."""

    content: bytes
    is_reply: bool

    def completion(self, secrets: tuple[str, ...] = ()) -> Completion:
        """Return the completion.

        Raises:
            RequestFailedError: the line holds an error, the same as for a direct request.
        """
        line = _Line.model_validate_json(self.content)
        if line.response is not None:
            body = json.dumps(line.response.body, ensure_ascii=False)
            if line.response.status_code == 200:
                return read_completion(body.encode("utf-8", "replace"), secrets)
            raise failure_from_body(line.response.status_code, body, secrets=secrets)
        error = line.error or BatchError(message="neither a response nor an error")
        codes = (error.code,) if error.code else ()
        raise RequestFailedError(
            one_line(f"{error.code or ''} {error.message or ''}", secrets), codes=codes
        )


def result_line(content: bytes) -> tuple[str, ResultLine] | None:
    """Return the key of a line's question and the line, ``None`` if it is damaged."""
    try:
        line = _Line.model_validate_json(content)
    except ValidationError:
        return None
    is_reply = line.response is not None and line.response.status_code == 200
    return line.custom_id, ResultLine(content, is_reply)


def line_frame(custom_id: str, url: str) -> tuple[bytes, bytes]:
    """Return the start and the end of an input line, between which the request's body stands."""
    head = json.dumps({"custom_id": custom_id, "method": "POST", "url": url}).encode()
    return head[:-1] + b', "body": ', b"}\n"


class JobInput:
    """The input file of a job, written as questions arrive."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.questions: dict[Question, None] = {}  # in their order
        self.size_bytes = 0

    def write(self, question: Question, line: Iterable[bytes]) -> None:
        """Append a question's line, piece by piece."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            # A full disk may have left half a line.
            file.truncate(self.size_bytes)
            length_bytes = sum(file.write(piece) for piece in line)
        self.size_bytes += length_bytes
        self.questions[question] = None

    def remove(self) -> None:
        """Delete the file."""
        self.path.unlink(missing_ok=True)


class BatchFolder:
    """The folder of an agent's batch jobs; one run at a time uses it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock: FileLock | None = None
        self._inputs = 0

    def lock(self) -> None:
        """Keep other runs out until ``unlock``.

        Raises:
            UsageError: another run uses the folder; two would pay for the same questions twice.
            ResultWriteError: the folder cannot be written.
        """
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self._path / ".lock")
            lock.acquire(timeout=0)
        except Timeout as error:
            raise UsageError(
                f"another run with --batch is at work in {self._path}: wait for it or stop it"
            ) from error
        except OSError as error:
            raise ResultWriteError.at(self._path, error) from error
        self._lock = lock
        try:
            # Files of a run that was killed.
            for left in [*self._path.glob("*.input"), *self._path.glob("*.part")]:
                left.unlink(missing_ok=True)
        except OSError as error:
            self.unlock()
            raise ResultWriteError.at(self._path, error) from error

    def unlock(self) -> None:
        """Release the folder for other runs."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def records(self) -> list[JobRecord]:
        """Return the known jobs, oldest first.

        Raises UsageError: one of their records cannot be read.
        """
        found = []
        for path in sorted(self._path.glob("*.json")):
            try:
                found.append(JobRecord.model_validate_json(read_regular_file(path)))
            except ValidationError as error:
                log.warning(
                    "damaged record of a batch job ignored path=%s problem=%s",
                    path,
                    error,
                )
            except OSError as error:
                # Without the record its questions would be sent, and paid, a second time.
                raise UsageError(
                    f"cannot read the record of a batch job {path}: {error.strerror}; "
                    "make it readable or remove it"
                ) from error
        return found

    def save(self, record: JobRecord) -> None:
        """Write a job's record."""
        write_whole(self._record_path(record), record.model_dump_json(indent=1))

    def keep_only(self, record: JobRecord, left: Collection[Question]) -> None:
        """Remove all of a job's questions but these, and the job itself if none is left."""
        if left:
            self.save(record.model_copy(update={"questions": dict(left)}))
        else:
            self.remove(record)

    def remove(self, record: JobRecord) -> None:
        """Delete a job's record and its results."""
        self._record_path(record).unlink(missing_ok=True)
        self.results_path(record).unlink(missing_ok=True)

    def results_path(self, record: JobRecord) -> Path:
        """Return the file of a job's results."""
        return self._path / f"{record.number:05d}.results.jsonl"

    def new_input(self) -> JobInput:
        """Return an empty input."""
        self._inputs += 1
        return JobInput(self._path / f"{self._inputs:05d}.input")

    def results(self, record: JobRecord) -> dict[str, ResultLine]:
        """Return a job's results by judgment key, without damaged lines."""
        path = self.results_path(record)
        found: dict[str, ResultLine] = {}
        if not path.is_file():
            return found
        # Line by line: the file may have hundreds of megabytes.
        with path.open("rb") as file:
            for content in filter(bytes.strip, _lines(file)):
                if (read := result_line(content)) is None:
                    log.warning(
                        "batch %d: a damaged line of its results is ignored",
                        record.number,
                    )
                elif read[0] in record.questions:
                    found.setdefault(*read)
        return found

    def _record_path(self, record: JobRecord) -> Path:
        return self._path / f"{record.number:05d}.json"


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a file, and only a part of one that is larger than any reply."""
    while line := file.readline(MAX_REPLY_BYTES):
        rest = line
        while rest and not rest.endswith(b"\n"):
            rest = file.readline(MAX_REPLY_BYTES)
            line = line[:1] if rest else line
        yield line


class Collector:
    """Collects questions into inputs that keep to the limits of a file."""

    def __init__(self, folder: BatchFolder, url: str, most_requests: int, most_bytes: int) -> None:
        self.most_requests = most_requests
        self._most_bytes = most_bytes
        self._folder = folder
        self._url = url
        self._input = folder.new_input()
        self._full: list[JobInput] = []
        self._arrivals = self._arriving = 0
        # Bodies have megabytes: one at a time is encoded.
        self._encoding = asyncio.Lock()
        self._changed = asyncio.Event()

    async def identify(self, custom_id: str, make_body: Callable[[], JsonBody]) -> Question:
        """Return the identity of a question."""
        sha256 = await self._encode(asyncio.to_thread(lambda: make_body().sha256()))
        return custom_id or sha256, sha256

    async def add(self, question: Question, make_body: Callable[[], JsonBody]) -> None:
        """Write a question into the input of the next job; its body is not kept in memory."""
        self._arrivals += 1
        await self._encode(self._write(question, make_body))

    async def _encode(self, work: Coroutine[Any, Any, Value]) -> Value:
        self._arriving += 1
        try:
            async with self._encoding:
                # A thread goes on after its caller is cancelled.
                return await to_the_end(work)
        finally:
            work.close()
            self._arriving -= 1
            self._changed.set()

    async def _write(self, question: Question, make_body: Callable[[], JsonBody]) -> None:
        # A question whose caller was cancelled may come again.
        if question in self._input.questions:
            return
        body = make_body()
        opening, closing = line_frame(question[0], self._url)
        size_bytes = len(opening) + body.size_bytes + len(closing)
        count = len(self._input.questions)
        is_full = (
            count + 1 > self.most_requests or self._input.size_bytes + size_bytes > self._most_bytes
        )
        if count and is_full:
            self._close_input()
        line = chain((opening,), body.pieces(), (closing,))
        await asyncio.to_thread(self._input.write, question, line)

    def _close_input(self) -> None:
        self._full.append(self._input)
        self._input = self._folder.new_input()

    async def due(self, pause_s: float, is_at_work: IsAtWork) -> list[JobInput]:
        """Return the inputs to send.

        These are full ones, and the current one when nobody has another question.

        Args:
            pause_s: in which questions of ended passes arrive.
        """
        while not self._full:
            await self._changed.wait()
            self._changed.clear()
            if self._input.questions and await self._is_complete(pause_s, is_at_work):
                self._close_input()
        due, self._full = self._full, []
        return due

    async def _is_complete(self, pause_s: float, is_at_work: IsAtWork) -> bool:
        """Wait until no question can come; ``False`` if an input is full before."""
        loop = asyncio.get_running_loop()
        while not self._full:
            before, started_s = self._arrivals, loop.time()
            await asyncio.sleep(pause_s)
            # A late loop was busy, so that questions could not arrive.
            is_idle = loop.time() - started_s < 1.5 * pause_s and not is_at_work()
            if is_idle and self._arrivals == before and not self._arriving:
                return bool(self._input.questions)
        return False

    def remove(self) -> None:
        """Delete the inputs that were not sent."""
        for each in (*self._full, self._input):
            each.remove()


class WaitingReplies:
    """The results of jobs until they are used.

    Args:
        is_stored: replies to stored judgments are not needed any more.
    """

    def __init__(self, folder: BatchFolder, is_stored: IsStored | None) -> None:
        self._folder = folder
        self._is_stored = is_stored
        self._lines: dict[Question, list[ResultLine]] = {}
        self._over: list[JobRecord] = []

    def take(self, question: Question) -> ResultLine | None:
        """Return a result and remove it, ``None`` if there is none."""
        lines = self._lines.get(question)
        return lines.pop(0) if lines else None

    def add(self, record: JobRecord, results: Mapping[str, ResultLine]) -> None:
        """Keep the results of a job."""
        for question in record.questions.items():
            if question[0] in results:
                self._lines.setdefault(question, []).append(results[question[0]])
        self._over.append(record)

    async def recall(self, record: JobRecord) -> None:
        """Keep the useful results of an earlier run's job."""
        found = await asyncio.to_thread(self._folder.results, record)
        # Errors cost nothing, and the same request may succeed today.
        replies = {key: line for key, line in found.items() if line.is_reply}
        if self._is_stored is not None:
            # A run that was killed may have stored some.
            replies = {key: line for key, line in replies.items() if not await self._is_stored(key)}
        self.add(record, replies)
        await asyncio.to_thread(self._keep_only_unused, record)

    def forget_used(self) -> None:
        """Remove used replies from disk."""
        for record in self._over:
            self._keep_only_unused(record)

    def _keep_only_unused(self, record: JobRecord) -> None:
        left = {question for question in record.questions.items() if self._lines.get(question)}
        if left != set(record.questions.items()):
            self._folder.keep_only(record, left)
