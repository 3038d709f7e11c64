"""The passes of one answer's script, each in a process of its own: what the run starts, serves and ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from pydantic_core import to_jsonable_python

from mind2web2.errors import (
    EvalScriptError,
    MachineError,
    Mind2Web2Error,
)
from mind2web2.judge.protocol import Noted
from mind2web2.judge.session import STOPPED
from mind2web2.llm_client.chat import ReplyCheck
from mind2web2.scripts.isolation.answer_client import SentLedger
from mind2web2.scripts.isolation.homes import ScriptHome, ScriptHomes
from mind2web2.scripts.isolation.log_records import SentRecord
from mind2web2.scripts.isolation.processes import (
    ScriptLimits,
    ScriptProcess,
    script_process,
)
from mind2web2.scripts.isolation.questions import Ahead
from mind2web2.scripts.isolation.rpc import (
    MAX_REASON_CHARS,
    PACKAGE,
    Done,
    Failure,
    Message,
    Question,
    Reply,
    RpcConnection,
    encoded_value,
    served,
)
from mind2web2.scripts.isolation.worker import HomeJob, PassJob
from mind2web2.scripts.passes import ScriptAnswers, ScriptPasses
from mind2web2.utils.shown_text import one_line

log = logging.getLogger(__name__)

# For a pass, which waits for nothing; a script that takes longer runs in program order.
_PASS_TIMEOUT_S = 60.0
# For a process to end by itself after its last message, or after its connection closed.
_EXIT_GRACE_S = 1.0
_MAX_PRINTED_PIECE = 10_000
_LONGEST_LINE = 10_000
_MAX_PRINTED_BYTES = 1024**2
# For a script's own template, which only its process has.
_CHECK_TIMEOUT_S = 60.0


@dataclass
class PassService:
    """Serves the process of one pass: its ``served`` methods are what the process may ask and note.

    Args:
        noted: the questions that the pass goes on without.
        works: on those of them whose replies the process has to check.
    """

    passes: ScriptPasses
    answers: ScriptAnswers
    cache_dir: Path
    logger: logging.Logger
    connection: RpcConnection
    noted: list[Question] = field(default_factory=list)
    works: set[asyncio.Task[None]] = field(default_factory=set)

    def begin_noted(self, *, can_check: bool) -> None:
        """Begin to answer the questions of a pass: those on one page one after another, for prefix caches.

        Args:
            can_check: the process is there to check replies.
        """
        for question in sorted(self.noted, key=_page_of):
            if question.template is not None and not can_check:
                continue
            work = self.passes.begin(question, self._check(question))
            if work is not None and question.template is not None:
                self.works.add(work)

    def failure_of(self, question: str, error: Exception) -> Mind2Web2Error:
        """Return the failure that an unforeseen error is: it costs the answer its result."""
        self.logger.error("the run failed at %r", question, exc_info=error)
        text = f"the run failed at {question!r}: {type(error).__name__}: {error}"
        return self.answers.judge.fail(MachineError(one_line(text)))

    @served
    def missing(self, question: Question) -> None:
        """Note a question of a script that goes on with a stand-in."""
        self.noted.append(question)

    @served
    async def reply(self, question: Question) -> object:
        """Return the reply to a question of a script that waits for it."""
        reply = await self.passes.reply(question, self._check(question))
        if reply.failure is not None:
            raise reply.failure.of_run()
        return reply.value

    @served
    def note(self, kind: Noted, text: str) -> None:
        """Add a note to the answer's ledger."""
        self.answers.judge.note(kind, text[:MAX_REASON_CHARS])

    @served
    def fail(self, failure: Failure) -> None:
        """Ask nothing more for the answer, which has no result."""
        self.answers.fail(failure.of_script())

    @served
    def forget(self) -> None:
        """Drop the pages prepared from the cache."""
        self.answers.forget_pages()

    @served
    def log(self, to: Literal["answer", "package"], record: SentRecord) -> None:
        """Log a record: the answer's by its logger, the package's by its own."""
        logger = self.logger
        if to == "package":
            # Each name that is asked for stays in ``logging``'s registry.
            is_known = record.name in logging.Logger.manager.loggerDict
            is_ours = is_known and record.name.partition(".")[0] == PACKAGE
            logger = logging.getLogger(record.name if is_ours else PACKAGE)
        if logger.isEnabledFor(record.level):
            logger.handle(record.record())

    @served
    async def ledger(self, used: list[str]) -> SentLedger:
        """Return usage and notes of the questions whose replies the script has got."""
        return SentLedger.of(self.answers.ledger(used))

    def _check(self, question: Question) -> ReplyCheck | None:
        """Return the check of a reply by the script's own class, which only this process has."""
        if question.template is None:
            return None

        async def check(text: str) -> str | None:
            try:
                async with asyncio.timeout(_CHECK_TIMEOUT_S):
                    problem: str | None = await self.connection.ask(
                        "check", str | None, template=question.template, text=text
                    )
            except TimeoutError as error:
                raise EvalScriptError(
                    f"the script's process did not answer within {_CHECK_TIMEOUT_S:g} s"
                ) from error
            except ValueError as error:
                raise EvalScriptError(
                    "the script's process sent no proper reply about its template"
                ) from error
            return None if problem is None else problem[:MAX_REASON_CHARS]

        return check


def _lines_of(printed: bytes) -> Iterator[bytes]:
    """Yield the lines of what a script printed, long ones in pieces."""
    *lines, last = printed.split(b"\n")
    for line in [*lines, last] if last else lines:
        for start in range(0, max(len(line), 1), _LONGEST_LINE):
            yield line[start : start + _LONGEST_LINE]


def _page_of(question: Question) -> str:
    """Return the first page that a question names, nothing where it is about the answer."""
    match question.arguments:
        case {"claim": {"urls": [str(url), *_]}} | {"form": {"url": str(url)}}:
            return url
    return ""


class AnswerProcesses:
    """Starts the passes of one answer.

    Attributes:
        last: the process of the pass that is the result.
    """

    def __init__(
        self,
        home: ScriptHome,
        job: PassJob,
        answers: ScriptAnswers,
        limits: ScriptLimits,
        logger: logging.Logger,
    ) -> None:
        self.answers = answers
        self.last: ScriptProcess | None = None
        self._home = home
        self._job = job
        self._limits = limits
        self._logger = logger
        self._tasks: set[asyncio.Task[None]] = set()
        self._replies: dict[str, str] = {}

    async def run(self, passes: ScriptPasses, ahead: Ahead | None) -> Done | None:
        """Return how a pass ended; ``None`` where its process ended without a word."""
        known = self._sent(passes.known) if ahead is not None else {}
        job = replace(self._job, ahead=ahead, known=known)
        ended: asyncio.Future[Done | None]
        ended = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._run(job, passes, ended))
        self._tasks.add(task)
        task.add_done_callback(lambda done: _pass_on_failure(done, ended))
        return await ended

    def _sent(self, known: Mapping[str, Reply]) -> dict[str, str]:
        """Return the replies as they travel."""
        for key in known.keys() - self._replies.keys():
            self._replies[key] = encoded_value(known[key])
        return dict(self._replies)

    async def _run(
        self, job: PassJob, passes: ScriptPasses, ended: asyncio.Future[Done | None]
    ) -> None:
        async with script_process(self._home, self._limits.memory_bytes) as process:
            connection = RpcConnection(process.reader, process.writer)
            service = PassService(passes, self.answers, job.cache_dir, self._logger, connection)
            pieces: list[bytes] = []
            printing = asyncio.create_task(_read_printed(process, pieces))
            try:
                connection.send(Message("job", to_jsonable_python(job)))
                if job.ahead is None:
                    done = await self._in_program_order(service, job)
                else:
                    done = await self._pass(service, job)
                    service.begin_noted(can_check=done is not None)
                if done is None:
                    await _give_up(service)
                elif not ended.done() and (done.is_open or done.program_order):
                    ended.set_result(done)
                    await _check_replies(service)
            finally:
                await connection.close()
                await process.end(0.0 if ended.done() else _EXIT_GRACE_S)
                # The processes have ended: the rest of their output is in the pipe.
                await asyncio.wait({printing}, timeout=_EXIT_GRACE_S)
                printing.cancel()
                await asyncio.wait({printing})
            if not ended.done():
                self.last = process
                if job.ahead is None or done is not None:
                    self._log_printed(pieces)
                ended.set_result(done)

    def _log_printed(self, pieces: list[bytes]) -> None:
        printed = self._home.printed + b"".join(pieces)
        for line in _lines_of(printed[:_MAX_PRINTED_BYTES]):
            self._logger.info("script printed: %s", line.decode(errors="replace"))
        if len(printed) > _MAX_PRINTED_BYTES:
            text = "script prints more than %d bytes; the rest is left out"
            self._logger.warning(text, _MAX_PRINTED_BYTES)

    async def _pass(self, service: PassService, job: PassJob) -> Done | None:
        """Serve a pass; ``None`` where it ends, or has to be ended, without a word."""
        try:
            async with asyncio.timeout(min(_PASS_TIMEOUT_S, self._limits.block_s)):
                return await service.connection.served(service)
        except Exception as error:
            log.debug("pass failed script=%s", job.call.script_path, exc_info=error)
            return None

    async def _in_program_order(self, service: PassService, job: PassJob) -> Done | None:
        name = job.call.script_path.name
        try:
            return await service.connection.served(service)
        except EvalScriptError as error:
            raise EvalScriptError(f"script {name} {error}") from error
        except Mind2Web2Error:
            raise
        except Exception as error:
            raise EvalScriptError(
                f"script {name}: its process sent an invalid message ({type(error).__name__}); "
                "does it change modules that the evaluation uses?"
            ) from error

    async def close(self) -> None:
        """End all processes."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        for task in self._tasks:
            if not task.cancelled():
                task.exception()  # retrieved, so that asyncio does not log it


def _pass_on_failure(task: asyncio.Task[None], ended: asyncio.Future[Done | None]) -> None:
    if ended.done():
        return
    failure = None if task.cancelled() else task.exception()
    if failure is None:
        ended.cancel()
    else:
        ended.set_exception(failure)


async def _read_printed(process: ScriptProcess, pieces: list[bytes]) -> None:
    count = 0
    while piece := await process.output.read(_MAX_PRINTED_PIECE):
        count += len(piece)
        if count <= _MAX_PRINTED_BYTES + _MAX_PRINTED_PIECE:
            pieces.append(piece)


async def _check_replies(service: PassService) -> None:
    """Let the templates of an ended pass check the replies to its questions."""
    serving = asyncio.create_task(service.connection.served(service))
    left: set[asyncio.Task[object]] = set(service.works)
    while left and not serving.done():
        _, left = await asyncio.wait({serving, *left}, return_when=asyncio.FIRST_COMPLETED)
        left.discard(serving)
    await _give_up(service)
    serving.cancel()
    await asyncio.wait({serving})
    if not serving.cancelled():
        serving.exception()


async def _give_up(service: PassService) -> None:
    """Stop work on questions whose replies the process, which has ended, would have to check."""
    for work in service.works:
        work.cancel(STOPPED)
    if service.works:
        await asyncio.wait(service.works)


@asynccontextmanager
async def answer_processes(
    homes: ScriptHomes,
    home_job: HomeJob,
    job: PassJob,
    answers: ScriptAnswers,
    logger: logging.Logger,
) -> AsyncIterator[AnswerProcesses]:
    """Load a script, yield what starts its passes, and end them all.

    Raises:
        MachineError: no process can be started.
    """
    try:
        home = await asyncio.to_thread(homes.take, home_job)
    except OSError as error:
        text = f"no process could be started for a script: {error}"
        raise MachineError(text) from error
    processes = AnswerProcesses(home, job, answers, home_job.limits, logger)
    try:
        yield processes
    finally:
        await processes.close()
        homes.give_back(home)
