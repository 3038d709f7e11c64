"""One answer's evaluation in a process of its own, as the run sees it: start, serve, watch, end.

The run serves judge, pages, map and paper services, and logs. Messages are validated. Where a process ends
without a result, the reason is one line.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from pydantic import BaseModel, TypeAdapter, validate_call

from mind2web2.api_tools.tool_arxiv import ArxivTool
from mind2web2.api_tools.tool_googlemap import GoogleMapsTool
from mind2web2.capture.models import NetworkSettings
from mind2web2.errors import (
    EvalScriptError,
    JudgeError,
    JudgmentMissingError,
    MachineError,
    Mind2Web2Error,
    StorageError,
)
from mind2web2.judge.caching import RecordedJudge
from mind2web2.judge.protocol import (
    CheckedLimit,
    DualSemaphore,
    FailureLatch,
    JudgeLedger,
    Subject,
    unexpected,
)
from mind2web2.judge.services import ServiceRequest
from mind2web2.llm_client.chat import ChatRequest
from mind2web2.llm_client.prices import own_prices
from mind2web2.pages.cache_files import is_page_file, is_sidecar
from mind2web2.pages.captures import PageSettings
from mind2web2.pages.library import AnswerCache, PageRequest
from mind2web2.prompts import HashedText
from mind2web2.scheduling import ExecutionOptions
from mind2web2.scripts.inputs import ScriptInputs
from mind2web2.scripts.isolation.processes import (
    MAX_FILE_BYTES,
    ForkServer,
    ScriptLimits,
    ScriptProcess,
    fork_server,
    script_process,
)
from mind2web2.scripts.isolation.rpc import (
    MAX_REASON_CHARS,
    AskScript,
    Done,
    Message,
    RpcConnection,
    error_from,
    fields_of,
    ledger_from,
    schema_proxy,
    with_texts,
)
from mind2web2.scripts.isolation.worker import PACKAGE, ScriptJob
from mind2web2.scripts.run import ScriptCall, checked_result, ended_in_time, out_of_time
from mind2web2.utils.files import mirror
from mind2web2.verification.claims import BinaryEvalResult

# For a script's own template, which only its process has.
_CHECK_TIMEOUT_S = 60.0
# Of captured output.
_PRINTED_BYTES = 1024**2
_LONGEST_LINE = 10_000
# For a process to end by itself after its last message, or after its connection closed.
_EXIT_GRACE_S = 1.0
# Signals of a fault in compiled code, or of abort().
_CRASHES = frozenset({"SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT"})


@dataclass(frozen=True)
class Isolation:
    """How scripts are run in processes of their own.

    Args:
        limits: of each.
        network: what a script may download from.
        server: starts the processes.
        variables: of the environment that are passed on, beside those that any program needs.
    """

    limits: ScriptLimits = field(default_factory=ScriptLimits)
    network: NetworkSettings = field(default_factory=NetworkSettings)
    server: ForkServer = fork_server
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RunSide:
    """The run's settings and parts for one answer.

    Args:
        timeout_s: for the script; ``None`` for no limit.
        clock: tells the seconds that count towards it.
        as_of: where the script's own clock stands still; ``None`` for the real time.
        zone: of the script's local time; ``None`` for that of the run.
    """

    judge: RecordedJudge
    limits: DualSemaphore
    execution: ExecutionOptions
    timeout_s: float | None
    clock: Callable[[], float] = time.monotonic
    as_of: datetime | None = None
    zone: str | None = None


async def isolated_result(
    call: ScriptCall,
    task_id: str,
    cache: AnswerCache,
    run: RunSide,
    isolation: Isolation,
    logger: logging.Logger,
) -> tuple[dict[str, Any], JudgeLedger, ScriptInputs]:
    """Return a script's result on one answer, the usage of its questions, and its inputs.

    Args:
        cache: the answer's; afterwards it contains which pages were looked up.

    Raises:
        EvalScriptError: the script failed, or ended its process; the text names script and cure.
        JudgeError: the judge failed for good, even if the script caught that.
        MachineError: no process can be started.
    """
    service = RunService(run.judge, (task_id, call.answer_name), cache, run.limits, logger)
    job = ScriptJob(
        call=call,
        task_id=task_id,
        settings=run.judge.settings,
        endpoint=run.judge.endpoint,
        cache_dir=cache.task_cache.task_dir,
        cache_is_mirrored=mirror(cache.task_cache.task_dir).is_remote,
        execution=run.execution,
        limits=isolation.limits,
        variables=dict(isolation.variables),
        folder=Path.cwd(),
        import_paths=sys.path,
        logger_name=logger.name,
        package_level=logging.getLogger(PACKAGE).getEffectiveLevel(),
        with_captures=cache.captures is not None,
        stored_at_first=cache.page_library.stored_at_first(cache),
        prices=own_prices(),
        network=isolation.network,
        as_of=run.as_of,
        zone=run.zone,
    )
    async with script_process(isolation.server, isolation.limits.memory_bytes) as process:
        connection = RpcConnection(process.reader, process.writer, service)
        printing = asyncio.create_task(log_printed(process.output, logger))
        try:
            connection.send({"kind": "job", "job": job.model_dump(mode="json")})
            done = await _served(connection, process, call.script_path, run, isolation.limits)
        except Mind2Web2Error:
            # If the judge failed, that is the reason, even if the script raised something else.
            if service.latch.failure is not None:
                raise service.latch.failure from None
            raise
        finally:
            await connection.close()
            await process.end(_EXIT_GRACE_S)
            # The processes have ended: the rest of their output is in the pipe.
            await asyncio.wait({printing}, timeout=_EXIT_GRACE_S)
            await _finished(printing)
    if service.latch.failure is not None:
        raise service.latch.failure
    if done.error is not None:
        raise error_from(done.error)
    cache.note_lookups(done.looked_up, done.captured, is_listed=done.is_listed)
    return checked_result(done.result, call.script_path), ledger_from(done.ledger), done.inputs


async def _served(
    connection: RpcConnection, process: ScriptProcess, path: Path, run: RunSide, limits: ScriptLimits
) -> Done:
    """Serve a process until it is done, or has to be ended."""
    serving = asyncio.create_task(connection.result_message())
    try:
        if not await ended_in_time(serving, run.timeout_s, run.clock) and run.timeout_s is not None:
            raise out_of_time(path, run.timeout_s)
        message = serving.result()
        if message is None:
            await process.end(_EXIT_GRACE_S)
            raise _exit_reason(process, path, limits)
        return Done.model_validate(message)
    except (ValueError, KeyError, TypeError) as error:
        raise EvalScriptError(
            f"script {path.name}: its process sent an invalid message ({type(error).__name__}); "
            "does it change modules that the evaluation uses?"
        ) from error
    finally:
        await _finished(serving)


async def _finished(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()  # retrieved, so that asyncio does not log it


def _exit_reason(process: ScriptProcess, path: Path, limits: ScriptLimits) -> EvalScriptError | MachineError:
    """Return why a process ended without a result; the sender of a signal is not known."""
    if process.status is None:
        return MachineError("the process that starts scripts has ended: run the same command again")
    if process.was_too_large:
        return EvalScriptError(
            f"script {path.name} took more than {limits.memory_bytes // 1024**2} MB of memory "
            "(--script_memory)"
        )
    if os.WIFEXITED(process.status):
        return EvalScriptError(
            f"script {path.name} ended its process without a result (status "
            f"{os.WEXITSTATUS(process.status)}): does it call os._exit, or change modules that the "
            "evaluation uses?"
        )
    number = os.WTERMSIG(process.status)
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    why = "not by the evaluation: does it call os.kill or os.killpg, or did another program?"
    if name == "SIGXCPU":
        why = f"which the system sends after {limits.processor_s} s of processor time: an endless loop?"
    elif name == "SIGXFSZ":
        why = f"which the system sends for a file of more than {MAX_FILE_BYTES // 1024**2} MB"
    elif name == "SIGKILL":
        why = (
            "which the system sends where the machine has no memory left (try fewer at once: "
            "--max_concurrent_answers); or does it call os.kill or os.killpg, or did another program?"
        )
    elif name in _CRASHES:
        why = "a crash: check the compiled code that it calls"
    return EvalScriptError(f"script {path.name}: its process was ended by {name}, {why}")


class BlobStore:
    """Keeps texts and images of pages while the script's process uses them."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._pages: dict[int, dict[str, HashedText]] = {}
        # A page that is prepared twice has its texts in memory once.
        self._texts: WeakValueDictionary[str, HashedText] = WeakValueDictionary()

    def hold(self, texts: Sequence[HashedText]) -> int:
        """Keep the texts of a page, and return the number by which they are released."""
        number = next(self._numbers)
        self._pages[number] = {text.sha256: self._texts.setdefault(text.sha256, text) for text in texts}
        return number

    def release(self, number: int) -> None:
        """Drop the texts of a page."""
        self._pages.pop(number, None)

    def text(self, reference: Mapping[str, Any]) -> HashedText:
        """Return the text that a message refers to. Raises KeyError: there is none."""
        return self._pages[reference["blob"]][reference["sha256"]]


class _Template(BaseModel):
    number: int | None
    name: str = "BinaryEvalResult"
    form: dict[str, Any] = {}


_STRINGS = TypeAdapter(list[str])


@dataclass
class RunService:
    """Answers the questions of one answer's process.

    Args:
        source: task id and answer name.
        cache: the answer's; it records which pages were looked up.
        logger: the answer's.
        latch: keeps the first failure of the judge, after which there is no result.
    """

    judge: RecordedJudge
    source: tuple[str, str]
    cache: AnswerCache
    limits: DualSemaphore
    logger: logging.Logger
    latch: FailureLatch = field(default_factory=FailureLatch)
    _maps: GoogleMapsTool = field(default_factory=GoogleMapsTool)
    _blobs: BlobStore = field(default_factory=BlobStore)

    async def answered(  # noqa: PLR0911 (one a kind of question)
        self, message: Message, ask_script: AskScript
    ) -> Any:
        """Return the reply to a question; the script's process raises the same errors."""
        content = {name: value for name, value in message.items() if name not in ("kind", "number")}
        match message["kind"]:
            case "judgment":
                return await self._judgment(**content, ask_script=ask_script)
            case "gate":
                return await self._gate(**content)
            case "page":
                return await self._page(**content)
            case "image":
                return str(self._blobs.text(message["image"]))
            case "cached":
                urls = _STRINGS.validate_python(message["urls"])
                return await self.cache.page_library.cached(self.cache, urls)
            case "stored_names":
                folder = self.cache.task_cache.task_dir
                return sorted(mirror(folder).names_in(folder))
            case "fetch":
                return await self._fetched(_STRINGS.validate_python(message["names"]))
            case "service":
                return await self._service(**content)
        raise ValueError(f"unknown kind of question {message['kind'][:100]!r}")

    def note(self, message: Message) -> None:
        """Handle a message that needs no reply."""
        match message["kind"]:
            case "log":
                relay_record(message, self.logger)
            case "failed":
                error = error_from(message["error"])
                self.latch.fail(error if isinstance(error, Mind2Web2Error) else unexpected(error))
            case "forget":
                self.cache.page_library.forget(self.cache.task_cache)
            case "release":
                self._blobs.release(message["blob"])

    @validate_call
    async def _judgment(
        self,
        messages: list[dict[str, Any]],
        template: _Template | None,
        extra: dict[str, Any],
        subject: Subject,
        ask_script: AskScript,
    ) -> Any:
        self.latch.check()
        settings = self.judge.settings
        request = ChatRequest(
            model=settings.model,
            messages=[with_texts(message, self._own_text) for message in messages],
            temperature=settings.temperature,
            reasoning_effort=settings.reasoning_effort,
            extra=extra,
            **_template_fields(template, ask_script),
        )
        limit = CheckedLimit(self.limits.llm, self.latch.check)
        try:
            judgment = await self.judge.judgment(request, subject, self.source, limit)
        except JudgmentMissingError:
            raise
        except JudgeError as error:
            # Even if the script catches it, there will be no result.
            raise self.latch.fail(error) from error.__cause__
        except Exception as error:
            self.latch.fail(unexpected(error))
            raise
        return judgment.model_dump(mode="json")

    @validate_call
    async def _gate(self, subject: Subject, ordinal: int, skip_reason: str | None) -> str | None:
        try:
            return await self.judge.gate(subject, self.source, ordinal, skip_reason)
        except JudgeError as error:
            raise self.latch.fail(error) from error.__cause__

    @validate_call
    async def _service(self, request: ServiceRequest) -> Message:
        async def ask() -> Any:
            if request.name in ("geocode", "distance_matrix"):
                return await self._maps.request(request.name, *request.arguments, **request.keywords)
            papers = ArxivTool(int(request.keywords.get("page_size", 100)))
            if request.name == "by_id":
                return await papers.search_arxiv_by_id(*request.arguments)
            return await papers.search_arxiv_by_title(*request.arguments)

        try:
            answer, record = await self.judge.services.answer(request, ask, self.source)
        except JudgeError as error:
            raise self.latch.fail(error) from error.__cause__
        return {"answer": answer, "record": record.model_dump()}

    async def _fetched(self, names: Sequence[str]) -> bool:
        folder = self.cache.task_cache.task_dir
        paths = [folder / name for name in names if is_page_file(name) or is_sidecar(name)]
        try:
            return await asyncio.to_thread(mirror(folder).fetch, *paths)
        except StorageError as error:
            # Even if the script takes the page for missing, there will be no result.
            raise self.latch.fail(error) from error.__cause__

    @validate_call
    async def _page(
        self, url: str, settings: PageSettings, with_images: bool, with_capture: bool, is_noted: bool
    ) -> Message:
        request = PageRequest(
            cache=self.cache if is_noted else self.cache.task_cache,
            url=url,
            settings=settings,
            with_images=with_images,
            capture=self.cache.captures if with_capture else None,
            limit=self.cache.page_limit or nullcontext(),
            logger=self.logger,
        )
        try:
            page = await self.cache.page_library.page(request)
        except (OSError, MemoryError) as error:
            raise MachineError(f"page {url} cannot be prepared: {type(error).__name__}: {error}") from error
        if is_noted:
            self.cache.note_shown(url, page.sha256)
        return {
            "blob": self._blobs.hold((page.text, *page.images)),
            "fields": fields_of(page),
            "text": str(page.text),
            "text_sha256": page.text.sha256,
            "images": [image.sha256 for image in page.images],
        }

    def _own_text(self, value: Any) -> Any:
        """Return the run's own text in the place of a reference to it."""
        return self._blobs.text(value) if isinstance(value, dict) else value


def _template_fields(template: _Template | None, ask_script: AskScript) -> dict[str, Any]:
    """Return the fields of a request for a template of the script's process."""
    if template is None:
        return {}
    if template.number is None:
        return {"template": BinaryEvalResult}

    async def check(text: str) -> str | None:
        try:
            async with asyncio.timeout(_CHECK_TIMEOUT_S):
                problem = await ask_script("check", template=template.number, text=text)
        except TimeoutError as error:
            raise EvalScriptError(
                f"the script's process did not answer within {_CHECK_TIMEOUT_S:g} s"
            ) from error
        return None if problem is None else str(problem)[:MAX_REASON_CHARS]

    return {"template": schema_proxy(template.name, template.form), "check": check}


def relay_record(message: Message, logger: logging.Logger) -> None:
    """Log a record of a script's process: the answer's by this logger, the package's by its own."""
    record = logging.makeLogRecord({**message["extra"], **message["record"]})
    if message["to"] == PACKAGE:
        logger = logging.getLogger(record.name)
    if logger.isEnabledFor(record.levelno):
        logger.handle(record)


async def log_printed(output: asyncio.StreamReader, logger: logging.Logger) -> None:
    """Log the captured output of a process, line by line, up to a megabyte."""
    printed_bytes, rest = 0, b""
    while piece := await output.read(_LONGEST_LINE):
        printed_bytes += len(piece)
        if printed_bytes > _PRINTED_BYTES:
            if printed_bytes - len(piece) <= _PRINTED_BYTES:
                logger.warning("script prints more than %d bytes; the rest is left out", _PRINTED_BYTES)
            continue
        *lines, rest = (rest + piece).split(b"\n")
        if len(rest) > _LONGEST_LINE:
            lines, rest = [*lines, rest], b""
        for line in lines:
            logger.info("script printed: %s", line.decode(errors="replace"))
    if rest and printed_bytes <= _PRINTED_BYTES:
        logger.info("script printed: %s", rest.decode(errors="replace"))
