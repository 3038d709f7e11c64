"""One answer's evaluation in a process of its own, as the run sees it: start, serve, watch, end.

Also: the reason in one line where a process ends without a result.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from mind2web2.capture.settings import NetworkSettings
from mind2web2.errors import EvalScriptError, MachineError, Mind2Web2Error
from mind2web2.judge.caching import RecordedJudge
from mind2web2.judge.protocol import DualSemaphore, JudgeLedger
from mind2web2.llm_client.prices import own_prices
from mind2web2.pages.answer_view import AnswerCache
from mind2web2.scheduling.scheduler import ExecutionOptions
from mind2web2.scripts.inputs import ScriptInputs
from mind2web2.scripts.isolation.fork_server import HANG_STATUS, MAX_FILE_BYTES, ScriptLimits
from mind2web2.scripts.isolation.processes import Exit, ForkServer, ScriptProcess, fork_server, script_process
from mind2web2.scripts.isolation.rpc import Done, error_from, ledger_from
from mind2web2.scripts.isolation.rpc_server import RpcConnection, RpcServer, log_printed
from mind2web2.scripts.isolation.worker import PACKAGE, ScriptJob
from mind2web2.scripts.run import ScriptCall, checked_result, ended_in_time, out_of_time
from mind2web2.utils.files import mirror

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
    server = RpcServer(run.judge, (task_id, call.answer_name), cache, run.limits, logger)
    job = _job(call, task_id, cache, run, isolation, logger)
    async with script_process(isolation.server, isolation.limits.memory_bytes) as process:
        connection = RpcConnection(process.reader, process.writer, server, logger)
        printing = asyncio.create_task(log_printed(process.output, logger))
        try:
            connection.send({"kind": "job", "job": job.model_dump(mode="json")})
            done = await _served(connection, process, call.script_path, run, isolation.limits)
        except Mind2Web2Error:
            # If the judge failed, that is the reason, even if the script raised something else.
            if server.latch.failure is not None:
                raise server.latch.failure from None
            raise
        finally:
            await connection.close()
            await process.end(_EXIT_GRACE_S)
            await _printed_to_the_end(printing)
    if server.latch.failure is not None:
        raise server.latch.failure
    if done.error is not None:
        raise error_from(done.error)
    cache.note_lookups(done.looked_up, done.captured, is_listed=done.is_listed)
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
            raise _exit_reason(process.exit, path, limits)
        return Done.model_validate(message)
    except (ValueError, KeyError, TypeError) as error:
        raise EvalScriptError(
            f"script {path.name}: its process sent an invalid message ({type(error).__name__}); "
            "does it change modules that the evaluation uses?"
        ) from error
    finally:
        await _finished(serving)


async def _printed_to_the_end(printing: asyncio.Task[None]) -> None:
    # The processes have ended: the rest of their output is in the pipe.
    await asyncio.wait({printing}, timeout=_EXIT_GRACE_S)
    await _finished(printing)


async def _finished(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()  # retrieved, so that asyncio does not log it


def _exit_reason(ended: Exit | None, path: Path, limits: ScriptLimits) -> EvalScriptError | MachineError:
    """Return why there is no result; ``None`` where the fork server has ended as well."""
    if ended is None:
        return MachineError("the process that starts scripts has ended: run the same command again")
    if ended.was_too_large:
        return EvalScriptError(
            f"script {path.name} took more than {limits.memory_bytes // 1024**2} MB of memory "
            "(--script_memory)"
        )
    if os.WIFEXITED(ended.status):
        status = os.WEXITSTATUS(ended.status)
        cause = "change modules that the evaluation uses"
        if status == HANG_STATUS:
            cause = (
                f"block for {limits.hang_s:g} s in a call that cannot be interrupted (the log shows where)"
            )
        return EvalScriptError(
            f"script {path.name} ended its process without a result (status {status}): "
            f"does it call os._exit, or {cause}?"
        )
    return _signal_reason(os.WTERMSIG(ended.status), path, limits)


def _signal_reason(number: int, path: Path, limits: ScriptLimits) -> EvalScriptError:
    """Return the reason that a signal stands for; its sender is not known."""
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    if name == "SIGXCPU":
        why = f"which the system sends after {limits.processor_s} s of processor time: an endless loop?"
    elif name == "SIGXFSZ":
        why = f"which the system sends for a file of more than {MAX_FILE_BYTES // 1024**2} MB"
    elif name == "SIGKILL":
        why = (
            "which the system sends where the machine has no memory left (try fewer at once: "
            f"--max_concurrent_answers) or processor time is used up ({limits.last_processor_s} s at most); "
            "or does it call os.kill or os.killpg, or did another program?"
        )
    elif name in _CRASHES:
        why = "a crash: check the compiled code that it calls"
    else:
        why = "not by the evaluation: does it call os.kill or os.killpg, or did another program?"
    return EvalScriptError(f"script {path.name}: its process was ended by {name}, {why}")
