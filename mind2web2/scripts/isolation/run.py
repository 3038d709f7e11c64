"""One answer's evaluation in a process of its own, as the run sees it: start, serve, watch, end.

The run serves judge, pages, map and paper services, and logs. Where a process ends without a result, the
reason is one line.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

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
from mind2web2.judge.admission import DualSemaphore
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.permit import AnswerLimits
from mind2web2.judge.protocol import JudgeLedger, QuestionContext
from mind2web2.judge.services import ServiceRequest
from mind2web2.judge.session import FailureLatch, unexpected
from mind2web2.judge.settings import JudgeSettings
from mind2web2.judge.store import Judgment, ServiceAnswer
from mind2web2.llm_client.chat import ChatRequest
from mind2web2.llm_client.prices import OwnPrice, own_prices
from mind2web2.pages.answer_cache import AnswerCache
from mind2web2.pages.cache_files import is_page_file, is_sidecar
from mind2web2.pages.library import PageRequest
from mind2web2.pages.prepared_page import PageSettings, PreparedPage
from mind2web2.pages.stored_files import fetch_files, names_in_store
from mind2web2.prompts import HashedText
from mind2web2.scheduling.options import ExecutionOptions
from mind2web2.scripts.aliases import own_script_aliases
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
    Done,
    Message,
    RpcConnection,
    schema_proxy,
)
from mind2web2.scripts.isolation.worker import PACKAGE, ScriptJob, TemplateName
from mind2web2.scripts.run import ScriptCall, checked_result, ended_in_time, out_of_time
from mind2web2.storage.publication import is_in_object_store
from mind2web2.utils.deep_trees import allow_deep_trees
from mind2web2.verification.messages import OWN_TEMPLATES

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
        network: for a script's downloads.
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

    judge: CachingJudge
    limits: DualSemaphore
    execution: ExecutionOptions
    timeout_s: float | None
    clock: Callable[[], float] = time.monotonic
    as_of: datetime | None = None
    zone: str | None = None


def prices_of(judge: CachingJudge) -> dict[str, OwnPrice]:
    """Return the run's own prices of its judges, by model."""
    judges = [judge] if judge.first is None else [judge, judge.first]
    return {
        each.settings.model: each.price for each in judges if each.price is not None
    }


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
    allow_deep_trees()
    job = ScriptJob(
        call=call,
        task_id=task_id,
        settings=run.judge.settings,
        endpoint=run.judge.endpoint,
        cache_dir=cache.task_cache.task_dir,
        cache_is_mirrored=is_in_object_store(cache.task_cache.task_dir),
        execution=run.execution,
        limits=isolation.limits,
        variables=dict(isolation.variables),
        folder=Path.cwd(),
        import_paths=sys.path,
        logger_name=logger.name,
        package_level=logging.getLogger(PACKAGE).getEffectiveLevel(),
        with_captures=cache.captures is not None,
        stored_at_first=cache.page_library.stored_at_first(cache),
        prices=own_prices() | prices_of(run.judge),
        aliases=own_script_aliases(),
        network=isolation.network,
        as_of=run.as_of,
        zone=run.zone,
    )
    async with script_process(
        isolation.server, isolation.limits.memory_bytes
    ) as process:
        connection = RpcConnection(process.reader, process.writer)
        service = RunService(
            run.judge,
            (task_id, call.answer_name),
            cache,
            run.limits,
            logger,
            connection,
        )
        printing = asyncio.create_task(log_printed(process.output, logger))
        try:
            connection.send(Message("job", job))
            done = await _served(
                service, process, call.script_path, run, isolation.limits
            )
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
        raise done.error
    cache.note_lookups(done.looked_up, done.captured, is_listed=done.is_listed)
    return checked_result(done.result, call.script_path), done.ledger, done.inputs


async def _served(
    service: RunService,
    process: ScriptProcess,
    path: Path,
    run: RunSide,
    limits: ScriptLimits,
) -> Done:
    """Serve a process until it is done, or has to be ended."""
    serving = asyncio.create_task(service.connection.served(service))
    try:
        if (
            not await ended_in_time(serving, run.timeout_s, run.clock)
            and run.timeout_s is not None
        ):
            raise out_of_time(path, run.timeout_s)
        if (failure := serving.exception()) is not None:
            raise EvalScriptError(
                f"script {path.name}: its process sent an invalid message ({type(failure).__name__}); "
                "does it change modules that the evaluation uses?"
            ) from failure
        done = serving.result()
        if done is None:
            await process.end(_EXIT_GRACE_S)
            raise _exit_reason(process, path, limits)
        return done
    finally:
        await _finished(serving)


async def _finished(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()  # retrieved, so that asyncio does not log it


def _exit_reason(
    process: ScriptProcess, path: Path, limits: ScriptLimits
) -> EvalScriptError | MachineError:
    """Return why a process ended without a result; the sender of a signal is not known."""
    if process.status is None:
        return MachineError(
            "the process that starts scripts has ended: run the same command again"
        )
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
    name = (
        signal.Signals(number).name
        if number in set(signal.Signals)
        else f"signal {number}"
    )
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
    return EvalScriptError(
        f"script {path.name}: its process was ended by {name}, {why}"
    )


@dataclass
class RunService:
    """Serves one answer's process: its other methods are the kinds of questions and notes (``Service``).

    Args:
        source: task id and answer name.
        cache: the answer's; it records which pages were looked up.
        logger: the answer's.
        latch: keeps the first failure of the judge, after which there is no result.
    """

    judge: CachingJudge
    source: tuple[str, str]
    cache: AnswerCache
    limits: DualSemaphore
    logger: logging.Logger
    connection: RpcConnection
    latch: FailureLatch = field(default_factory=FailureLatch)
    _maps: GoogleMapsTool = field(default_factory=GoogleMapsTool)
    # Texts and images of the pages that the process uses, by digest.
    _blobs: dict[int, dict[str, HashedText]] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def text(self, blob: int, sha256: str) -> HashedText:
        """Return the text that a message refers to. Raises KeyError: there is none."""
        return self._blobs[blob][sha256]

    def release(self, blob: int) -> None:
        """Drop the texts of a page."""
        self._blobs.pop(blob, None)

    def forget(self) -> None:
        """Drop the pages prepared from the cache."""
        self.cache.page_library.forget(self.cache.task_cache)

    def log(self, to: str, record: dict[str, Any], extra: dict[str, str]) -> None:
        """Log a record: the answer's by its logger, the package's by its own."""
        made = logging.makeLogRecord({**extra, **record})
        logger = logging.getLogger(made.name) if to == PACKAGE else self.logger
        if logger.isEnabledFor(made.levelno):
            logger.handle(made)

    async def judgment(
        self,
        messages: list[dict[str, Any]],
        template: TemplateName | None,
        extra: dict[str, Any],
        subject: QuestionContext,
        is_first: bool,
    ) -> Judgment:
        """Return what ``CachingJudge.judgment`` returns."""
        self.latch.check()
        judge = self._judge(is_first)
        request = self._request(judge.settings, messages, template, extra)
        limits = AnswerLimits(self.limits.llm, self.latch.check)
        try:
            return await judge.judgment(request, subject, self.source, limits)
        except JudgmentMissingError:
            raise
        except JudgeError as error:
            # Even if the script catches it, there will be no result.
            raise self.latch.fail(error) from error.__cause__
        except Exception as error:
            self.latch.fail(unexpected(error))
            raise

    async def judgment_ahead(
        self,
        messages: list[dict[str, Any]],
        template: TemplateName | None,
        extra: dict[str, Any],
        subject: QuestionContext,
        is_first: bool,
    ) -> Judgment:
        """Return what ``CachingJudge.judgment_ahead`` returns; its failures do not count."""
        self.latch.check()
        limits = AnswerLimits(self.limits.llm, self.latch.check)
        judge = self._judge(is_first)
        request = self._request(judge.settings, messages, template, extra)
        return await judge.judgment_ahead(request, subject, self.source, limits)

    def _judge(self, is_first: bool) -> CachingJudge:
        first = self.judge.first
        return first if is_first and first is not None else self.judge

    def _request(
        self,
        settings: JudgeSettings,
        messages: list[dict[str, Any]],
        template: TemplateName | None,
        extra: dict[str, Any],
    ) -> ChatRequest:
        return ChatRequest(
            model=settings.model,
            messages=messages,
            temperature=settings.temperature,
            reasoning_effort=settings.reasoning_effort,
            extra=extra,
            **self._template_fields(template),
        )

    def _template_fields(self, template: TemplateName | None) -> dict[str, Any]:
        """Return the fields of a request for a template of the script's process."""
        if template is None:
            return {}
        number, name, form = template
        if number is None:
            return {"template": OWN_TEMPLATES[name]}

        async def check(text: str) -> str | None:
            try:
                async with asyncio.timeout(_CHECK_TIMEOUT_S):
                    problem: str | None = await self.connection.ask(
                        "check", template=number, text=text
                    )
            except TimeoutError as error:
                raise EvalScriptError(
                    f"the script's process did not answer within {_CHECK_TIMEOUT_S:g} s"
                ) from error
            return None if problem is None else problem[:MAX_REASON_CHARS]

        return {"template": schema_proxy(name, form), "check": check}

    async def record_skip_decision(
        self, subject: QuestionContext, ordinal: int, skip_reason: str | None
    ) -> str | None:
        """Return what ``CachingJudge.record_skip_decision`` returns."""
        try:
            return await self.judge.record_skip_decision(
                subject, self.source, ordinal, skip_reason
            )
        except JudgeError as error:
            raise self.latch.fail(error) from error.__cause__

    async def service(self, request: ServiceRequest) -> tuple[Any, ServiceAnswer]:
        """Return the answer of a map or paper service, and its record."""

        async def ask() -> Any:
            if request.name in ("geocode", "distance_matrix"):
                return await self._maps.request(
                    request.name, *request.arguments, **request.keywords
                )
            papers = ArxivTool(int(request.keywords.get("page_size", 100)))
            if request.name == "by_id":
                return await papers.search_arxiv_by_id(*request.arguments)
            return await papers.search_arxiv_by_title(*request.arguments)

        try:
            return await self.judge.services.answer(request, ask, self.source)
        except JudgeError as error:
            raise self.latch.fail(error) from error.__cause__

    async def page(
        self,
        url: str,
        settings: PageSettings,
        with_images: bool,
        with_capture: bool,
        is_noted: bool,
    ) -> tuple[PreparedPage, int, str, list[str]]:
        """Return a page without its texts, the number by which they are released, its text, and digests."""
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
            raise MachineError(
                f"page {url} cannot be prepared: {type(error).__name__}: {error}"
            ) from error
        if is_noted:
            self.cache.note_shown(url, page.sha256)
        blob, texts = next(self._numbers), (page.text, *page.images)
        self._blobs[blob] = {text.sha256: text for text in texts}
        bare = replace(page, text=HashedText(), images=())
        return bare, blob, str(page.text), [text.sha256 for text in texts]

    async def image(self, image: HashedText) -> str:
        """Return an image of a page."""
        return str(image)

    async def cached(self, urls: list[str]) -> list[bool]:
        """Return what ``PageLibrary.cached`` returns."""
        return await self.cache.page_library.cached(self.cache, urls)

    async def stored_names(self) -> list[str]:
        """Return the names of the files that the cache has in its object store."""
        return list(names_in_store(self.cache.task_cache.task_dir))

    async def fetch(self, names: list[str]) -> bool:
        """Bring files of pages into the cache's folder."""
        folder = self.cache.task_cache.task_dir
        paths = [
            folder / name for name in names if is_page_file(name) or is_sidecar(name)
        ]
        try:
            return await asyncio.to_thread(fetch_files, folder, *paths)
        except StorageError as error:
            # Even if the script takes the page for missing, there will be no result.
            raise self.latch.fail(error) from error.__cause__


async def log_printed(output: asyncio.StreamReader, logger: logging.Logger) -> None:
    """Log the captured output of a process, line by line, up to a megabyte."""
    printed_bytes, rest = 0, b""
    while piece := await output.read(_LONGEST_LINE):
        printed_bytes += len(piece)
        if printed_bytes > _PRINTED_BYTES:
            if printed_bytes - len(piece) <= _PRINTED_BYTES:
                logger.warning(
                    "script prints more than %d bytes; the rest is left out",
                    _PRINTED_BYTES,
                )
            continue
        *lines, rest = (rest + piece).split(b"\n")
        if len(rest) > _LONGEST_LINE:
            lines, rest = [*lines, rest], b""
        for line in lines:
            logger.info("script printed: %s", line.decode(errors="replace"))
    if rest and printed_bytes <= _PRINTED_BYTES:
        logger.info("script printed: %s", rest.decode(errors="replace"))
