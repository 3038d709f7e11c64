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
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from mind2web2.api_tools.surroundings import (
    downloads_from,
    downloads_reported,
    services_answered_by,
)
from mind2web2.capture.models import NetworkSettings
from mind2web2.errors import EvalScriptError, MachineError, Mind2Web2Error
from mind2web2.judge.services import AskService, ServiceRequest
from mind2web2.judge.settings import JudgeSettings
from mind2web2.llm_client.chat import Usage
from mind2web2.llm_client.prices import OwnPrice, price_usd, set_own_prices
from mind2web2.pages.answer_cache import AnswerCache
from mind2web2.pages.cache import CacheFileSys
from mind2web2.pages.captures import PageCapture, SharedCaptures
from mind2web2.pages.library import PageLibrary
from mind2web2.pages.page_cache import PageCache
from mind2web2.prompts import address_flags
from mind2web2.scheduling.deferral import guard_access
from mind2web2.scheduling.listeners import guard_listeners
from mind2web2.scheduling.options import ExecutionOptions, execution_options
from mind2web2.scripts.aliases import set_script_aliases
from mind2web2.scripts.clock import ScriptClock
from mind2web2.scripts.isolation.answer_client import REPLIES, AnswerClient
from mind2web2.scripts.isolation.log_records import SentRecord
from mind2web2.scripts.isolation.processes import ForkLoop, ScriptLimits
from mind2web2.scripts.isolation.rpc import (
    PACKAGE,
    Done,
    Failure,
    Message,
    RpcClient,
    prepare,
    validated,
)
from mind2web2.scripts.run import (
    LoopGuard,
    ScriptCall,
    log_unseen_errors,
    script_result,
)
from mind2web2.scripts.side_effects import settle_before_side_effects
from mind2web2.utils.deep_trees import allow_deep_trees

# Modules that scripts import (eval-scripts.md) or that others import late: loaded once for all scripts.
_PRELOADED = (
    "mind2web2.evaluator",
    "mind2web2.eval_runner",
    "mind2web2.eval_toolkit",
    "mind2web2.llm_client.base_client",
    "mind2web2.capture.browser_manager",
    "mind2web2.scripts.rubric_script",
    "filelock",
    "importlib.readers",
)
# Captures by a browser of the script's own, which the run's limit does not count.
_OWN_CAPTURES = 5


@dataclass(frozen=True)
class ScriptJob:
    """The answer to evaluate, with the settings of the run.

    Args:
        variables: of the run's environment that are passed on.
        folder: the working directory.
        import_paths: ``sys.path``.
        logger_name: of the answer's logger.
        package_level: the least level of the package's own log.
        with_captures: the run captures pages that are not stored.
        stored_at_first: addresses of the pages that were stored before the run (``PageLibrary``).
        as_of: where the script's clock stands still; ``None`` for the real time.
        zone: of the script's local time; ``None`` for that of the process.
        prices: the user's own, by model.
        aliases: of packages that scripts import, beside those that are built in.
    """

    call: ScriptCall
    settings: JudgeSettings
    endpoint: str
    cache_dir: Path
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
    prepare(ScriptJob, *REPLIES)
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
    job = validated(ScriptJob, client.receive().content)
    job.limits.apply_to_this_process()
    set_own_prices(job.prices)
    set_script_aliases(job.aliases)
    # The lines that a script printed before a crash are kept.
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # typeshed: any TextIO
    os.environ.update(job.variables)
    os.chdir(job.folder)
    # Last, so that a helper file hides no installed package (scripts/sources.py).
    sys.path[:] = [*job.import_paths, str(job.call.script_path.parent.absolute())]
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
    judge = AnswerClient(client, job.settings, job.endpoint)
    client.listen(judge.check)
    try:
        done = await _outcome(job, client, judge, clock)
    except Mind2Web2Error as error:
        done = Done(failure=Failure.of(error))
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
        client.send(Message("done", Done(failure=Failure.of(failure))))


async def _outcome(
    job: ScriptJob, client: RpcClient, judge: AnswerClient, clock: ScriptClock
) -> Done:
    captures = captured_by_run() if job.with_captures else None
    task_cache, pages = CacheFileSys(job.cache_dir), RunPages(client)
    pages.set_stored_at_first(task_cache, job.stored_at_first)
    cache = AnswerCache(task_cache, pages, asyncio.Semaphore(_OWN_CAPTURES), captures)
    logger = _logger(job, client)
    log_unseen_errors(logger)

    async def ask_run(request: ServiceRequest, _ask: AskService) -> Any:
        return await client.ask("service", Any, request=request)

    settle_before_side_effects()
    with (
        execution_options(job.execution),
        downloads_from(job.network),
        downloads_reported(
            refused=partial(judge.note, "refused_downloads"),
            doubt=partial(judge.note, "doubts"),
        ),
        services_answered_by(ask_run),
    ):
        async with LoopGuard(job.limits.block_s):
            result = await script_result(job.call, judge, cache, logger)
    return Done(
        result=result,
        looked_up=sorted(cache.looked_up),
        captured=cache.captured,
        is_listed=cache.is_listed,
        clock=clock.reading(),
    )


def _logger(job: ScriptJob, client: RpcClient) -> logging.Logger:
    """Return the answer's logger; records of the package are sent to the run as well."""
    package = logging.getLogger(PACKAGE)
    package.setLevel(job.package_level)
    package.propagate = False
    package.addHandler(RelayHandler(client.note, "package"))
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
        try:
            self._note("log", to=self._to, record=SentRecord.of(record))
        except Exception:  # the text of a value is its own code
            self.handleError(record)


class RunPages(PageLibrary):
    """The pages that this process prepares itself, of caches and browsers of the script's own."""

    def __init__(self, client: RpcClient) -> None:
        super().__init__()
        self._client = client

    def forget(self, cache: PageCache) -> None:
        """Drop the pages prepared from the cache, here and in the run."""
        super().forget(cache)
        self._client.note("forget")


def captured_by_run() -> SharedCaptures:
    """Return the stand-in for the run's captures."""

    def open_browser() -> AbstractAsyncContextManager[PageCapture]:
        raise MachineError("pages of a run are captured in its own process")

    return SharedCaptures(open_browser)
