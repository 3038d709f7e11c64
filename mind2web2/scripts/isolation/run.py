"""One answer's evaluation in a process of its own, as the run sees it: started, served, watched, ended."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mind2web2.capture.settings import NetworkSettings
from mind2web2.errors import EvalScriptError, Mind2Web2Error, StarterGoneError
from mind2web2.judge.caching import RecordedJudge
from mind2web2.judge.protocol import DualSemaphore
from mind2web2.judge.usage import JudgeLedger
from mind2web2.llm_client.prices import own_prices
from mind2web2.pages.answer_view import AnswerCache
from mind2web2.scheduling.options import Pace
from mind2web2.scripts.inputs import ScriptInputs
from mind2web2.scripts.isolation.exit_reasons import cut_off, why_it_ended
from mind2web2.scripts.isolation.host import ScriptHost, ScriptLink
from mind2web2.scripts.isolation.limits import ScriptLimits
from mind2web2.scripts.isolation.logs import PACKAGE, LogRelay, log_printed
from mind2web2.scripts.isolation.processes import ForkServer, ScriptProcess, fork_server, script_process
from mind2web2.scripts.isolation.rpc import Done, Message, UnusableMessageError, error_from, ledger_from
from mind2web2.scripts.isolation.worker import ScriptJob
from mind2web2.scripts.run import ScriptCall, checked_result, ended_in_time, out_of_time

_LOOK_EVERY_S = 1.0
# To leave by itself, after its last word, what a process has of the run's.
_EXIT_GRACE_S = 1.0
# Each is some 100 MB, and is needed where a script has ended the one that all share.
_MOST_OWN_SERVERS = 3


@dataclass(frozen=True)
class Isolation:
    """How scripts are run in processes of their own.

    Args:
        limits: of each.
        network: what a script may download from.
        server: starts the processes.
        variables: of the environment that are handed on, beside those that any program needs.
        own_servers: bounds how many more there are at a time, each for one script.
    """

    limits: ScriptLimits = field(default_factory=ScriptLimits)
    network: NetworkSettings = field(default_factory=NetworkSettings)
    server: ForkServer = fork_server
    variables: Mapping[str, str] = field(default_factory=dict)
    own_servers: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_MOST_OWN_SERVERS))


@dataclass(frozen=True)
class RunSide:
    """What a run has for one answer.

    Args:
        timeout_s: for the script; ``None`` for no limit.
        clock: tells the seconds that count towards it.
        as_of: where the script's own clock stands still; ``None`` for the real time.
        zone: of the script's local time; ``None`` for that of the run.
    """

    judge: RecordedJudge
    limits: DualSemaphore
    pace: Pace
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
    """Return a script's result on one answer, what its questions came to, and what it read.

    Where the process that starts scripts ends, which any of them may have done, each of those under way runs
    once more with one of its own: that costs the others their time, and tells which of them it was.

    Args:
        cache: the answer's; it knows in the end which pages were looked up.

    Raises:
        EvalScriptError: the script failed, or took its process down; the text names script and cure.
        JudgeError: the judge failed for good, whatever the script made of it.
        MachineError: no process can be started.
    """
    try:
        return await _attempt(call, task_id, cache, run, isolation, logger)
    except StarterGoneError as error:
        logger.warning("the script runs once more, with a process of its own to start it: %s", error)
    cache.start_over()
    async with isolation.own_servers:
        server = ForkServer()
        try:
            alone = replace(isolation, server=server)
            return await _attempt(call, task_id, cache, run, alone, logger, is_alone=True)
        finally:
            await asyncio.to_thread(server.close)


async def _attempt(
    call: ScriptCall,
    task_id: str,
    cache: AnswerCache,
    run: RunSide,
    isolation: Isolation,
    logger: logging.Logger,
    *,
    is_alone: bool = False,
) -> tuple[dict[str, Any], JudgeLedger, ScriptInputs]:
    host = ScriptHost(run.judge, (task_id, call.answer_name), cache, run.limits, logger)
    job = _job(call, task_id, cache, run, isolation, logger)
    async with script_process(isolation.server, isolation.limits.memory_bytes) as process:
        link = ScriptLink(process.reader, process.writer, host, LogRelay(logger))
        printing = asyncio.create_task(log_printed(process.output, logger))
        started_s = run.clock()
        try:
            link.send({"kind": "job", "job": job.model_dump(mode="json")})
            done = await _served(link, process, call.script_path, run, isolation.limits, is_alone=is_alone)
            await link.close()
            await process.end(_EXIT_GRACE_S)
            if not process.is_given_up and process.ending is None:
                # A script may be done before its parent, which it has ended, takes it along.
                raise why_it_ended(None, call.script_path, isolation.limits, is_alone=is_alone)
        except StarterGoneError:
            has_time = await _rest_answered(link, run, started_s)
            if host.latch.failure is not None:
                raise host.latch.failure from None
            if not has_time and run.timeout_s is not None:
                raise out_of_time(call.script_path, run.timeout_s) from None
            raise
        except Mind2Web2Error:
            # Whatever the script made of a judge that failed, the judge is what failed.
            if host.latch.failure is not None:
                raise host.latch.failure from None
            raise
        finally:
            await link.close()
            await process.end()
            await _printed_to_the_end(printing)
    if host.latch.failure is not None:
        raise host.latch.failure
    if done.error is not None:
        raise error_from(done.error)
    cache.note_lookups(done.looked_up, done.brought, is_listed=done.is_listed)
    return checked_result(done.result, call.script_path), ledger_from(done.ledger), done.inputs


def _job(
    call: ScriptCall,
    task_id: str,
    cache: AnswerCache,
    run: RunSide,
    isolation: Isolation,
    logger: logging.Logger,
) -> ScriptJob:
    return ScriptJob(
        call=call,
        task_id=task_id,
        settings=run.judge.settings,
        endpoint=run.judge.endpoint,
        cache_dir=cache.task_cache.task_dir,
        pace=replace(run.pace, in_own_process=True),
        limits=isolation.limits,
        variables=dict(isolation.variables),
        folder=Path.cwd(),
        import_paths=sys.path,
        logger_name=logger.name,
        package_level=logging.getLogger(PACKAGE).getEffectiveLevel(),
        with_captures=cache.captures is not None,
        stored_at_first=cache.page_library.stored_at_first(cache),
        prices=own_prices(),
        allow_private_network=isolation.network.allow_private_network,
        as_of=run.as_of,
        zone=run.zone,
    )


async def _served(
    link: ScriptLink,
    process: ScriptProcess,
    path: Path,
    run: RunSide,
    limits: ScriptLimits,
    *,
    is_alone: bool,
) -> Done:
    """Serve a process until it is done, or has to be ended."""
    serving = asyncio.create_task(link.until_done())
    try:
        await _watch(serving, link, path, run, limits)
        message = serving.result()
        if message is None:
            if not await process.ends():
                raise cut_off(path)
            raise why_it_ended(process.ending, path, limits, is_alone=is_alone)
        return _checked(message)
    except (UnusableMessageError, ValidationError) as error:
        reason = error if isinstance(error, UnusableMessageError) else "its last word makes no sense"
        raise EvalScriptError(
            f"script {path.name}: its process {reason}; does it change what the evaluation itself uses?"
        ) from error
    finally:
        await _finished(serving)


async def _watch(
    serving: asyncio.Task[Message | None], link: ScriptLink, path: Path, run: RunSide, limits: ScriptLimits
) -> None:
    """Wait for the end; a process that takes too long, or of which nothing is heard, is not waited for.

    Silence is counted in looks rather than by the clock: a run that was suspended has heard nothing either.
    """
    started_s, silent_looks, heard = run.clock(), 0, 0
    while not serving.done():
        left_s = _LOOK_EVERY_S
        if run.timeout_s is not None:
            left_s = min(left_s, run.timeout_s - (run.clock() - started_s))
            if left_s <= 0:
                raise out_of_time(path, run.timeout_s)
        done, _ = await asyncio.wait({serving}, timeout=left_s)
        silent_looks = 0 if link.messages > heard else silent_looks + 1
        heard = link.messages
        if not done and silent_looks * _LOOK_EVERY_S > limits.silence_s:
            raise EvalScriptError(
                f"script {path.name} was stopped: nothing was heard of its process for "
                f"{limits.silence_s:g} s (a call that never ends and cannot be interrupted?)"
            )


async def _rest_answered(link: ScriptLink, run: RunSide, started_s: float) -> bool:
    """Let the judge answer what is asked already, and tell whether it did in the script's time."""
    left_s = None if run.timeout_s is None else run.timeout_s - (run.clock() - started_s)
    answering = asyncio.create_task(link.answer_rest())
    try:
        return await ended_in_time(answering, left_s, run.clock)
    finally:
        await _finished(answering)


def _checked(message: Message) -> Done:
    done = Done.model_validate(message)
    ledger_from(done.ledger)
    return done


async def _printed_to_the_end(printing: asyncio.Task[None]) -> None:
    # Nobody is left who could print; what is on its way is read at once.
    await asyncio.wait({printing}, timeout=_LOOK_EVERY_S)
    await _finished(printing)


async def _finished(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()  # looked at: it has been raised, or concerns nobody any more
