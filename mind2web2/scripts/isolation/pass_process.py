"""The passes of one answer's script, each in a process of its own.

The run starts, serves and ends the processes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic_core import to_jsonable_python

from mind2web2.errors import (
    EvalScriptError,
    Mind2Web2Error,
)
from mind2web2.judge.permit import Turn
from mind2web2.judge.protocol import STOPPED, JudgeLedger, Noted
from mind2web2.llm_client.chat import ReplyCheck
from mind2web2.scripts.isolation.homes import ScriptHome, ScriptHomes
from mind2web2.scripts.isolation.messages import Ahead, HomeJob, PassJob
from mind2web2.scripts.isolation.rpc import (
    MAX_REASON_CHARS,
    PACKAGE,
    Done,
    Failure,
    Message,
    Question,
    Reply,
    RpcConnection,
    encode_value,
    served,
    take_note,
)
from mind2web2.scripts.isolation.service import RunAnswers, unforeseen
from mind2web2.scripts.limits import ScriptLimits
from mind2web2.scripts.passes import ScriptPasses
from mind2web2.utils.aio import end_all
from mind2web2.utils.log_records import SentRecord
from mind2web2.utils.processes import MAX_PRINTED_BYTES, ChildProcess, ProcessEnd, output_file

log = logging.getLogger(__name__)

# For a pass, which waits for nothing; a script that takes longer runs in program order.
_PASS_TIMEOUT_S = 60.0
# For a process to end by itself after its connection closed.
_EXIT_GRACE_S = 1.0
_LONGEST_LINE = 10_000
# For a script's own template, which only its process has.
_CHECK_TIMEOUT_S = 60.0


@dataclass
class PassService:
    """Serves the process of one pass.

    Its ``served`` methods are what the process may ask and note.
    """

    passes: ScriptPasses
    answers: RunAnswers
    logger: logging.Logger
    connection: RpcConnection

    def begin(self, done: Done) -> list[asyncio.Task[None]]:
        """Begin to answer the questions that a pass has met.

        Those on one page are answered one after another, for prefix caches.

        Returns:
            The work on the questions whose replies the process has to check.
        """
        checked = []
        is_asked = self.passes.first_asked(done)
        for question in sorted(done.missing, key=_page_of):
            turn = None if is_asked is None else Turn(question.key == done.first_open, is_asked)
            work = self.passes.begin(question, self._check(question), turn)
            if work is not None and question.template is not None:
                checked.append(work)
        return checked

    def failure_of(self, question: str, error: Exception) -> Mind2Web2Error:
        """Return the failure that an unforeseen error is: it costs the answer its result."""
        return self.answers.judge.fail(unforeseen(question, error, self.logger))

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
    async def ledger(self, used: list[str]) -> JudgeLedger:
        """Return usage and notes of the questions whose replies the script has got."""
        return self.answers.ledger(used)

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
        last: how the process of the last pass ended, where it ended without a word.
    """

    def __init__(
        self,
        home: ScriptHome,
        job: PassJob,
        answers: RunAnswers,
        limits: ScriptLimits,
        logger: logging.Logger,
    ) -> None:
        self.answers = answers
        self.last = ProcessEnd()
        self._home = home
        self._job = job
        self._limits = limits
        self._logger = logger
        self._checking: set[asyncio.Task[None]] = set()
        self._replies: dict[str, str] = {}

    async def run(self, passes: ScriptPasses, ahead: Ahead | None) -> Done | None:
        """Return how a pass ended; ``None`` where its process ended without a word."""
        if passes.program_order is not None:
            self._logger.info("script runs in program order: %s", passes.program_order)
        known = self._encode_replies(passes.known) if ahead is not None else {}
        job = replace(self._job, ahead=ahead, known=known)
        with ExitStack() as ends:
            process = ChildProcess.start(self._home, self._limits.memory_bytes, output_file())
            ends.callback(process.close)
            connection = await RpcConnection.open(process.connection)
            ends.callback(connection.close)
            service = PassService(passes, self.answers, self._logger, connection)
            done = await self._served(service, job)
            if done is None:
                self.last = await asyncio.to_thread(process.end, _EXIT_GRACE_S)
            elif checked := service.begin(done):
                checking = asyncio.create_task(_check_replies(service, checked, ends.pop_all()))
                self._checking.add(checking)
                checking.add_done_callback(self._checking.discard)
            is_given_up = done is None or done.is_open or done.program_order is not None
            if ahead is None or not is_given_up:
                self._log_printed(process)
        return done

    async def _served(self, service: PassService, job: PassJob) -> Done | None:
        service.connection.send(Message("job", to_jsonable_python(job)))
        try:
            if job.ahead is None:
                return await self._in_program_order(service)
            return await self._pass(service)
        finally:
            await service.connection.cancel_questions()

    def _encode_replies(self, known: Mapping[str, Reply]) -> dict[str, str]:
        """Return the replies as they travel."""
        for key in known.keys() - self._replies.keys():
            self._replies[key] = encode_value(known[key])
        return dict(self._replies)

    def _log_printed(self, process: ChildProcess) -> None:
        printed = self._home.printed + process.printed(MAX_PRINTED_BYTES + 1)
        for line in _lines_of(printed[:MAX_PRINTED_BYTES]):
            self._logger.info("script printed: %s", line.decode(errors="replace"))
        if len(printed) > MAX_PRINTED_BYTES:
            text = "script prints more than %d bytes; the rest is left out"
            self._logger.warning(text, MAX_PRINTED_BYTES)

    async def _pass(self, service: PassService) -> Done | None:
        """Serve a pass; ``None`` where it ends, or has to be ended, without a word."""
        try:
            async with asyncio.timeout(min(_PASS_TIMEOUT_S, self._limits.block_s)):
                done = await service.connection.serve(service)
            for note in [] if done is None else done.notes:
                take_note(service, note)
        except Exception as error:
            log.debug("pass failed script=%s", self._job.call.script_path, exc_info=error)
            return None
        return done

    async def _in_program_order(self, service: PassService) -> Done | None:
        name = self._job.call.script_path.name
        try:
            return await service.connection.serve(service)
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
        await end_all(self._checking)


async def _check_replies(
    service: PassService, works: Sequence[asyncio.Task[None]], ends: ExitStack
) -> None:
    """Let the templates of an ended pass check the replies to its questions."""
    serving = asyncio.create_task(service.connection.serve(service))
    left: set[asyncio.Task[Any]] = set(works)
    with ends:
        try:
            while left and not serving.done():
                _, left = await asyncio.wait({serving, *left}, return_when=asyncio.FIRST_COMPLETED)
                left.discard(serving)
        finally:
            # Nobody is left to check the other replies.
            await end_all((serving, *left), STOPPED)


@asynccontextmanager
async def answer_processes(
    homes: ScriptHomes,
    home_job: HomeJob,
    job: PassJob,
    answers: RunAnswers,
    logger: logging.Logger,
) -> AsyncIterator[AnswerProcesses]:
    """Load a script, yield what starts its passes, and end them all.

    Raises:
        MachineError: no process can be started.
    """
    home = await asyncio.to_thread(homes.take, home_job)
    processes = AnswerProcesses(home, job, answers, home_job.limits, logger)
    try:
        yield processes
    finally:
        await processes.close()
        homes.give_back(home)
