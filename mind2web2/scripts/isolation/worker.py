"""What runs in the process of a script: one evaluation, from its description to the last word."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from mind2web2.api_tools.download import downloads_from, refusals_told
from mind2web2.capture.settings import NetworkSettings
from mind2web2.errors import EvalScriptError, Mind2Web2Error
from mind2web2.judge.caching import JudgeSettings
from mind2web2.judge.protocol import note_refused_download
from mind2web2.judge.services import (
    AskService,
    ServiceAnswer,
    ServiceRequest,
    services_answered_by,
)
from mind2web2.llm_client.chat import Usage
from mind2web2.llm_client.prices import OwnPrice, price_usd, set_own_prices
from mind2web2.pages.answer_view import AnswerCache
from mind2web2.pages.cache import CacheFileSys
from mind2web2.scheduling.options import Pace, pace_kept
from mind2web2.scripts.clock import ScriptClock
from mind2web2.scripts.inputs import InputRecorder, inputs_recorded
from mind2web2.scripts.isolation.limits import ScriptLimits
from mind2web2.scripts.isolation.logs import PACKAGE, RelayHandler
from mind2web2.scripts.isolation.remote import RunJudge, RunPages, ScriptJudge, captured_by_run
from mind2web2.scripts.isolation.rpc import (
    Channel,
    Message,
    UnusableMessageError,
    error_as_json,
    ledger_as_json,
)
from mind2web2.scripts.run import ScriptCall, script_result
from mind2web2.scripts.watchdog import LoopGuard

# What scripts import (eval-scripts.md), and what is imported late elsewhere: once for all of them.
_PRELOADED = (
    "mind2web2.evaluator",
    "mind2web2.eval_runner",
    "mind2web2.eval_toolkit",
    "mind2web2.llm_client.base_client",
    "mind2web2.capture.browser_manager",
    "filelock",
)
# Captures by a browser of the script's own, of which the run's limit knows nothing.
_OWN_CAPTURES = 5
_BEATS_A_SILENCE = 6


class ScriptJob(BaseModel):
    """Which answer to evaluate, and what of the run that takes.

    Args:
        variables: of the run's environment that are handed on.
        folder: where relative paths lead from.
        import_paths: ``sys.path``.
        logger_name: of the answer's logger.
        package_level: the least level of the package's own log.
        with_captures: the run captures pages that are not stored.
        stored_at_first: addresses of the pages that were stored before the run (``PageLibrary``).
        as_of: where the script's clock stands still; ``None`` for the real time.
        zone: of the script's local time; ``None`` for that of the process.
        prices: the user's own, by model.
    """

    call: ScriptCall
    task_id: str
    settings: JudgeSettings
    endpoint: str
    cache_dir: Path
    pace: Pace
    limits: ScriptLimits
    variables: dict[str, str]
    folder: Path
    import_paths: list[str]
    logger_name: str
    package_level: int
    with_captures: bool
    stored_at_first: frozenset[str] | None
    prices: dict[str, OwnPrice]
    allow_private_network: bool
    as_of: datetime | None = None
    zone: str | None = None


def load_all() -> None:
    """Load what scripts' processes need, to be done before the first is forked."""
    for name in _PRELOADED:
        import_module(name)
    price_usd(Usage(), "o4-mini")  # reads the price list
    # The library loads pytest where it is installed, which takes longer than all the rest.
    sys.modules.setdefault("pytest", None)  # type: ignore[arg-type]  # as the import system has it
    import_module("time_machine")
    if sys.modules["pytest"] is None:
        del sys.modules["pytest"]


def run(connection_fd: int) -> None:
    """Evaluate what the first message asks for, and say what came of it."""
    channel = Channel(socket.socket(fileno=connection_fd))
    job = ScriptJob.model_validate(channel.first_message()["job"])
    job.limits.apply_to_this_process()
    set_own_prices(job.prices)
    # A script that takes its process down has said before what it had to say.
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # typeshed: any TextIO
    os.environ.update(job.variables)
    os.chdir(job.folder)
    sys.path[:] = job.import_paths
    clock = ScriptClock(job.as_of, job.zone)
    clock.install()
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    evaluation = loop.create_task(_told_outcome(job, channel, clock))
    while not evaluation.done():
        # asyncio stops the whole loop at one of these in any task of the script's.
        with suppress(SystemExit, KeyboardInterrupt):
            loop.run_until_complete(asyncio.wait({evaluation}))
    evaluation.result()
    # With a reply unread, to what a script has left behind, ending would cut off the last word on its way.
    channel.wait_until_closed()


async def _told_outcome(job: ScriptJob, channel: Channel, clock: ScriptClock) -> None:
    judge = RunJudge(channel, job.settings, job.endpoint)
    channel.listen(judge.check)
    beating = asyncio.create_task(_beat(channel, job.limits.silence_s / _BEATS_A_SILENCE))
    try:
        done = await _outcome(job, channel, judge, clock)
    except Mind2Web2Error as error:
        done = {"error": error_as_json(error)}
    finally:
        beating.cancel()
    with suppress(OSError, ValueError, AttributeError):  # whatever the script has put there
        sys.stdout.flush()
    # With the last word said, the process may be ended at any moment.
    try:
        channel.note("done", **done)
    except (UnusableMessageError, ValueError, TypeError, RecursionError) as error:
        failure = EvalScriptError(f"script {job.call.script_path.name} returned what cannot be used: {error}")
        channel.note("done", error=error_as_json(failure))


async def _outcome(job: ScriptJob, channel: Channel, run_judge: RunJudge, clock: ScriptClock) -> Message:
    judge = ScriptJudge(channel, run_judge, job.task_id, job.call.answer_name)
    captures = captured_by_run() if job.with_captures else None
    pages = RunPages(channel, captures, job.stored_at_first)
    cache = AnswerCache(CacheFileSys(job.cache_dir), pages, asyncio.Semaphore(_OWN_CAPTURES), captures)
    logger = _logger(job, channel)

    async def ask_run(request: ServiceRequest, _ask: AskService) -> Any:
        reply = await channel.ask("service", **asdict(request))
        judge.note_service(ServiceAnswer.model_validate(reply["record"]))
        return reply["answer"]

    recorder = InputRecorder(job.call.script_path, is_only_one=True)
    with (
        inputs_recorded(recorder),
        pace_kept(job.pace),
        downloads_from(NetworkSettings(allow_private_network=job.allow_private_network)),
        refusals_told(partial(note_refused_download, judge)),
        services_answered_by(ask_run),
    ):
        async with LoopGuard(job.limits.block_s):
            # How long it may take in all is for the run to see to.
            result = await script_result(job.call, judge, cache, logger, timeout_s=None)
    return {
        "result": result,
        "ledger": ledger_as_json(judge.ledger),
        "looked_up": cache.looked_up,
        "brought": cache.brought,
        "is_listed": cache.is_listed,
        "inputs": recorder.inputs(clock.reading(recorder.sources())).model_dump(mode="json"),
    }


async def _beat(channel: Channel, every_s: float) -> None:
    while True:
        channel.note("beat")
        await asyncio.sleep(every_s)


def _logger(job: ScriptJob, channel: Channel) -> logging.Logger:
    """Return the answer's logger, and let the package's own log go the same way."""
    package = logging.getLogger(PACKAGE)
    package.setLevel(job.package_level)
    package.propagate = False
    package.addHandler(RelayHandler(channel.note, PACKAGE))
    # A manager of its own, as the run's loggers have.
    logger = logging.Manager(logging.RootLogger(logging.DEBUG)).getLogger(job.logger_name)
    logger.propagate = False
    logger.setLevel(logging.DEBUG)
    logger.addHandler(RelayHandler(channel.note, "answer"))
    return logger
