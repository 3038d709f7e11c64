"""The process of a script: it evaluates one answer; questions to judge and pages go to the run.

The run has the keys, the judgment store and the rate limiter.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import socket
import sys
import weakref
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from mind2web2.api_tools.surroundings import (
    downloads_from,
    refused_downloads_reported,
    services_answered_by,
)
from mind2web2.capture.models import NetworkSettings
from mind2web2.errors import EvalScriptError, MachineError, Mind2Web2Error
from mind2web2.judge.answer_client import AnswerClient
from mind2web2.judge.permit import AnswerLimits
from mind2web2.judge.protocol import QuestionContext
from mind2web2.judge.services import AskService, ServiceRequest
from mind2web2.judge.settings import JudgeSettings
from mind2web2.judge.store import Judgment
from mind2web2.llm_client.chat import ChatRequest, Usage
from mind2web2.llm_client.prices import OwnPrice, price_usd, set_own_prices
from mind2web2.llm_client.structured_output import InvalidOutputError, read_template
from mind2web2.llm_client.transport import Completion
from mind2web2.pages.answer_cache import AnswerCache
from mind2web2.pages.cache import CacheFileSys
from mind2web2.pages.captures import PageCapture, SharedCaptures
from mind2web2.pages.library import PageLibrary, PageRequest
from mind2web2.pages.page_cache import PageCache
from mind2web2.pages.prepared_page import PreparedPage
from mind2web2.prompts import address_flags
from mind2web2.scheduling.deferral import guard_access
from mind2web2.scheduling.listeners import guard_listeners
from mind2web2.scheduling.options import ExecutionOptions, execution_options
from mind2web2.scripts.aliases import set_script_aliases
from mind2web2.scripts.clock import ScriptClock
from mind2web2.scripts.input_recorder import InputRecorder, record_inputs
from mind2web2.scripts.isolation.processes import ForkLoop, ScriptLimits
from mind2web2.scripts.isolation.rpc import Done, Message, PageText, RpcClient
from mind2web2.scripts.run import (
    LoopGuard,
    ScriptCall,
    log_unseen_errors,
    script_result,
)
from mind2web2.storage.mirror import Mirror, use_mirror
from mind2web2.utils.deep_trees import allow_deep_trees
from mind2web2.utils.logging_setup import extra_fields, message_of, trace_of
from mind2web2.verification.messages import OWN_TEMPLATES

# Modules that scripts import (eval-scripts.md) or that others import late: loaded once for all scripts.
_PRELOADED = (
    "mind2web2.evaluator",
    "mind2web2.eval_runner",
    "mind2web2.eval_toolkit",
    "mind2web2.llm_client.base_client",
    "mind2web2.capture.browser_manager",
    "filelock",
    "importlib.readers",
)
# Captures by a browser of the script's own, which the run's limit does not count.
_OWN_CAPTURES = 5
# The package's log, and the beginning of its loggers' names.
PACKAGE = "mind2web2"
_SENT_AS_THEY_ARE = ("name", "levelno", "levelname", "created", "msecs", "stack_info")


@dataclass(frozen=True)
class ScriptJob:
    """The answer to evaluate, with the settings of the run.

    Args:
        variables: of the run's environment that are passed on.
        folder: the working directory.
        import_paths: ``sys.path``.
        logger_name: of the answer's logger.
        package_level: the least level of the package's own log.
        cache_is_mirrored: pages of the cache may be in an object store only.
        with_captures: the run captures pages that are not stored.
        stored_at_first: addresses of the pages that were stored before the run (``PageLibrary``).
        as_of: where the script's clock stands still; ``None`` for the real time.
        zone: of the script's local time; ``None`` for that of the process.
        prices: the user's own, by model.
        aliases: of packages that scripts import, beside those that are built in.
    """

    call: ScriptCall
    task_id: str
    settings: JudgeSettings
    endpoint: str
    cache_dir: Path
    cache_is_mirrored: bool
    execution: ExecutionOptions
    limits: ScriptLimits
    variables: dict[str, str]
    folder: Path
    import_paths: list[str]
    logger_name: str
    package_level: int
    with_captures: bool
    stored_at_first: frozenset[str] | None
    prices: dict[str, OwnPrice]
    aliases: dict[str, str]
    network: NetworkSettings
    as_of: datetime | None = None
    zone: str | None = None


# Number, name and schema of a template of the script's; without a number, of a verification.
TemplateName = tuple[int | None, str, dict[str, Any]]


def serve(control_fd: int) -> None:
    """Load the modules that scripts need, and be the fork server of a run."""
    _load_all()
    gc.enable()
    # Pages of memory that the collector does not touch stay shared with the children. Nothing is collected
    # first: that takes longer than any child would need for the little garbage of loading.
    gc.freeze()
    ForkLoop(socket.socket(fileno=control_fd), run).run()


def _load_all() -> None:
    for name in _PRELOADED:
        import_module(name)
    price_usd(Usage(), "o4-mini")  # reads the price list
    address_flags(
        ""
    )  # compiles the signs, which takes a third of a short script's time
    # time_machine loads pytest where it is installed, which takes longer than all the rest.
    sys.modules.setdefault("pytest", None)  # type: ignore[arg-type]  # as the import system has it
    import_module("time_machine")
    if sys.modules["pytest"] is None:
        del sys.modules["pytest"]


def run(connection_fd: int) -> None:
    """Evaluate the answer of the first message, and send the result message."""
    client = RpcClient(connection_fd)
    job: ScriptJob = client.receive().content
    job.limits.apply_to_this_process()
    set_own_prices(job.prices)
    set_script_aliases(job.aliases)
    # The lines that a script printed before a crash are kept.
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # typeshed: any TextIO
    os.environ.update(job.variables)
    os.chdir(job.folder)
    sys.path[:] = job.import_paths
    clock = ScriptClock(job.as_of, job.zone)
    clock.install()
    guard_listeners(guard_access)
    allow_deep_trees()
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    evaluation = loop.create_task(_run_script(job, client, clock))
    while not evaluation.done():
        # asyncio stops the whole loop at one of these in any task of the script's.
        with suppress(SystemExit, KeyboardInterrupt):
            loop.run_until_complete(asyncio.wait({evaluation}))
    evaluation.result()
    # If this process ended with replies unread, the run could lose the result message.
    client.wait_until_closed()


async def _run_script(job: ScriptJob, client: RpcClient, clock: ScriptClock) -> None:
    judge = RunJudge(client, job.settings, job.endpoint)
    client.listen(judge.check)
    try:
        done = await _outcome(job, client, judge, clock)
    except Mind2Web2Error as error:
        done = Done(error=error)
    with suppress(
        OSError, ValueError, AttributeError
    ):  # the script may have replaced or closed it
        sys.stdout.flush()
    # After the last message, the run may end the process at any moment.
    try:
        client.send(Message("done", done))
    except Exception as error:  # whatever keeps a script's result from being sent
        failure = EvalScriptError(
            f"script {job.call.script_path.name} returned an unusable result: {error}"
        )
        client.send(Message("done", Done(error=failure)))


async def _outcome(
    job: ScriptJob, client: RpcClient, run_judge: RunJudge, clock: ScriptClock
) -> Done:
    judge = AnswerClient(run_judge, job.task_id, job.call.answer_name)
    if job.cache_is_mirrored:
        use_mirror(job.cache_dir, RunMirror(client))
    captures = captured_by_run() if job.with_captures else None
    pages = RunPages(client, captures, job.stored_at_first)
    cache = AnswerCache(
        CacheFileSys(job.cache_dir), pages, asyncio.Semaphore(_OWN_CAPTURES), captures
    )
    logger = _logger(job, client)
    log_unseen_errors(logger)

    async def ask_run(request: ServiceRequest, _ask: AskService) -> Any:
        answer, record = await client.ask("service", request=request)
        judge.note_service(record)
        return answer

    recorder = InputRecorder(job.call.script_path)
    record_inputs(recorder)
    with (
        execution_options(job.execution),
        downloads_from(job.network),
        refused_downloads_reported(partial(judge.note, "refused_downloads")),
        services_answered_by(ask_run),
    ):
        async with LoopGuard(job.limits.block_s):
            result = await script_result(job.call, judge, cache, logger)
    return Done(
        result=result,
        ledger=judge.ledger,
        looked_up=cache.looked_up,
        captured=cache.captured,
        is_listed=cache.is_listed,
        inputs=recorder.inputs(clock.reading(recorder.sources())),
    )


def _logger(job: ScriptJob, client: RpcClient) -> logging.Logger:
    """Return the answer's logger; records of the package are sent to the run as well."""
    package = logging.getLogger(PACKAGE)
    package.setLevel(job.package_level)
    package.propagate = False
    package.addHandler(RelayHandler(client.note, PACKAGE))
    # A manager of its own, as the run's loggers have.
    logger = logging.Manager(logging.RootLogger(logging.DEBUG)).getLogger(
        job.logger_name
    )
    logger.propagate = False
    logger.setLevel(logging.DEBUG)
    logger.addHandler(RelayHandler(client.note, "answer"))
    return logger


class RelayHandler(logging.Handler):
    """Sends log records to the run: ``to`` names whose they are, the answer's or the package's."""

    def __init__(self, note: Callable[..., None], to: str) -> None:
        super().__init__()
        self._note = note
        self._to = to

    def emit(self, record: logging.LogRecord) -> None:
        """Send a record, with its traceback as text."""
        fields = {name: getattr(record, name) for name in _SENT_AS_THEY_ARE}
        fields |= {"msg": message_of(record), "exc_text": trace_of(record)}
        extra = {name: str(value) for name, value in extra_fields(record).items()}
        try:
            self._note("log", to=self._to, record=fields, extra=extra)
        except (ValueError, TypeError, RecursionError):
            self.handleError(record)


class Blob:
    """A page's texts and images in the run, which keeps them while one of them is in use here."""

    def __init__(self, client: RpcClient, number: int) -> None:
        self._number = number
        weakref.finalize(self, client.note_later, "release", blob=number)

    def text(self, text: str, sha256: str) -> PageText:
        """Return one of them: its content, or a name for an image."""
        made = PageText(text)
        made._sha256 = sha256
        made.reference = (self._number, sha256)
        made.owner = self
        return made


class RunPages(PageLibrary):
    """Stands for the run's page library; ``captured_by_run`` marks requests whose pages the run captures."""

    def __init__(
        self,
        client: RpcClient,
        captured_by_run: SharedCaptures | None,
        stored_at_first: frozenset[str] | None,
    ) -> None:
        super().__init__()
        self._client = client
        self._captured_by_run = captured_by_run
        self._stored_at_first = stored_at_first

    async def page(self, request: PageRequest) -> PreparedPage:
        """Return what ``PageLibrary.page`` returns."""
        is_captured_by_run = (
            request.capture is not None and request.capture is self._captured_by_run
        )
        if request.capture is not None and not is_captured_by_run:
            await _capture(request, request.capture)
        page, number, text, digests = await self._client.ask(
            "page",
            url=request.url,
            settings=request.settings,
            with_images=request.with_images,
            with_capture=is_captured_by_run,
            is_noted=request.cache is not request.shared_cache,
        )
        blob = Blob(self._client, number)
        images = tuple(blob.text(f"image {sha256}", sha256) for sha256 in digests[1:])
        with_texts: PreparedPage = replace(
            page, text=blob.text(text, digests[0]), images=images
        )
        return with_texts

    async def images_of(self, page: PreparedPage) -> list[str]:
        """Return a page's images, which only the run has."""
        return [await self._client.ask("image", image=image) for image in page.images]

    async def note_stored(self, cache: PageCache) -> None:
        """Do nothing: the run has noted it."""

    def stored_at_first(self, cache: PageCache) -> frozenset[str] | None:  # noqa: ARG002 (the task's)
        """Return what ``PageLibrary.stored_at_first`` returns."""
        return self._stored_at_first

    async def cached(self, cache: PageCache, urls: Sequence[str]) -> list[bool]:  # noqa: ARG002 (the task's)
        """Return what ``PageLibrary.cached`` returns."""
        reply: list[bool] = await self._client.ask("cached", urls=list(urls))
        return reply

    def forget(self, cache: PageCache) -> None:  # noqa: ARG002 (the task's)
        """Have the run drop the pages prepared from the cache."""
        self._client.note("forget")


def captured_by_run() -> SharedCaptures:
    """Return the stand-in for the run's captures."""

    def open_browser() -> AbstractAsyncContextManager[PageCapture]:
        raise MachineError("pages of a run are captured in its own process")

    return SharedCaptures(open_browser)


async def _capture(request: PageRequest, browser: SharedCaptures) -> None:
    """Capture a page that is not stored by a browser of the script's own, which only this process has."""
    if await asyncio.to_thread(request.cache.has, request.url) is None:
        await browser.capture_into(
            request.url, request.shared_cache, request.limit, request.logger
        )


class RunMirror(Mirror):
    """Has the run fetch pages of the task's cache from its object store, for which scripts have no key."""

    def __init__(self, client: RpcClient) -> None:
        self._client = client

    def names_in(self, folder: Path) -> Collection[str]:  # noqa: ARG002 (the run knows it)
        """Return the names of the files that the cache has in its object store."""
        return frozenset(self._client.ask_now("stored_names"))

    def fetch(self, *paths: Path) -> bool:
        """Bring files of pages into the cache's folder."""
        missing = [path.name for path in paths if not path.exists()]
        return bool(missing) and bool(self._client.ask_now("fetch", names=missing))


class RunJudge:
    """Stands for the run's ``CachingJudge``."""

    def __init__(
        self,
        client: RpcClient,
        settings: JudgeSettings,
        endpoint: str,
        *,
        is_first: bool = False,
    ) -> None:
        self.settings = settings
        self.endpoint = endpoint
        self._is_first = is_first
        self.first: RunJudge | None = None
        if settings.first is not None:
            # Scripts see the endpoint of the judge that decides.
            self.first = RunJudge(client, settings.first, endpoint, is_first=True)
        # Set for this whole process.
        self.price = None
        self._client = client
        self._templates: list[type[BaseModel]] = []
        self._names: list[TemplateName] = []

    async def judgment(
        self,
        request: ChatRequest,
        subject: QuestionContext,
        source: tuple[str, str],  # noqa: ARG002 (the run knows it)
        limits: AnswerLimits,  # noqa: ARG002 (the run enters its own)
    ) -> Judgment:
        """Return what ``CachingJudge.judgment`` returns."""
        return await self._judgment("judgment", request, subject)

    async def judgment_ahead(
        self,
        request: ChatRequest,
        subject: QuestionContext,
        source: tuple[str, str],  # noqa: ARG002 (likewise)
        limits: AnswerLimits,  # noqa: ARG002 (likewise)
    ) -> Judgment:
        """Return what ``CachingJudge.judgment_ahead`` returns."""
        return await self._judgment("judgment_ahead", request, subject)

    async def _judgment(
        self, kind: str, request: ChatRequest, subject: QuestionContext
    ) -> Judgment:
        judgment: Judgment = await self._client.ask(
            kind,
            messages=list(request.messages),
            template=self._name_of(request.template),
            extra=dict(request.extra),
            subject=subject,
            is_first=self._is_first,
        )
        return judgment

    async def record_skip_decision(
        self,
        subject: QuestionContext,
        source: tuple[str, str],  # noqa: ARG002 (likewise)
        ordinal: int,
        skip_reason: str | None,
    ) -> str | None:
        """Return what ``CachingJudge.record_skip_decision`` returns."""
        reason: str | None = await self._client.ask(
            "record_skip_decision",
            subject=subject,
            ordinal=ordinal,
            skip_reason=skip_reason,
        )
        return reason

    def check(self, template: int, text: str) -> str | None:
        """Return why a judge's reply does not fill the script's own template, which only this process has."""
        try:
            read_template(Completion(text=text), self._templates[template])
        except InvalidOutputError as problem:
            return str(problem)
        return None

    def _name_of(self, template: type[BaseModel] | None) -> TemplateName | None:
        if template is None:
            return None
        if template in OWN_TEMPLATES.values():
            return None, template.__name__, {}
        if template not in self._templates:
            self._names.append(
                (len(self._templates), template.__name__, template.model_json_schema())
            )
            self._templates.append(template)
        return self._names[self._templates.index(template)]
