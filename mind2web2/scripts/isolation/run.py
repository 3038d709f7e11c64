"""One answer's evaluation in a process of its own, as the run sees it: start, serve, watch, end.

The run serves judge, pages, map and paper services, and logs. Where a process ends without a result, the
reason is one line.
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

from pydantic_core import to_jsonable_python

from mind2web2.capture.models import NetworkSettings
from mind2web2.errors import (
    EvalScriptError,
    MachineError,
    Mind2Web2Error,
)
from mind2web2.judge.admission import DualSemaphore
from mind2web2.judge.answer_judge import AnswerJudge
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.protocol import JudgeLedger
from mind2web2.llm_client.prices import OwnPrice, own_prices
from mind2web2.pages.answer_cache import AnswerCache
from mind2web2.scheduling.options import ExecutionOptions, execution_options
from mind2web2.scripts.aliases import own_script_aliases
from mind2web2.scripts.inputs import ClockReading
from mind2web2.scripts.isolation.processes import (
    MAX_FILE_BYTES,
    ForkServer,
    ScriptLimits,
    ScriptProcess,
    fork_server,
    script_process,
)
from mind2web2.scripts.isolation.rpc import PACKAGE, Done, Message, RpcConnection
from mind2web2.scripts.isolation.service import RunService
from mind2web2.scripts.isolation.worker import ScriptJob
from mind2web2.scripts.run import ScriptCall, checked_result, ended_in_time, out_of_time
from mind2web2.utils.deep_trees import allow_deep_trees

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
    if judge.first is None:
        judges = [judge]
    else:
        judges = [judge, judge.first]
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
) -> tuple[dict[str, Any], JudgeLedger, ClockReading | None]:
    """Return a script's result on one answer, the usage of its questions, and when it ran.

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
        settings=run.judge.settings,
        endpoint=run.judge.endpoint,
        cache_dir=cache.task_cache.task_dir,
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
        judge = AnswerJudge(run.judge, task_id, call.answer_name, run.limits.llm)
        service = RunService(
            judge,
            run.judge.services,
            (task_id, call.answer_name),
            cache,
            logger,
            connection,
        )
        printing = asyncio.create_task(log_printed(process.output, logger))
        try:
            connection.send(Message("job", to_jsonable_python(job)))
            with execution_options(run.execution):
                done = await _served(
                    service, process, call.script_path, run, isolation.limits
                )
        except Mind2Web2Error:
            # If the judge failed, that is the reason, even if the script raised something else.
            if judge.failure is not None:
                raise judge.failure from None
            raise
        finally:
            await connection.close()
            await process.end(_EXIT_GRACE_S)
            # The processes have ended: the rest of their output is in the pipe.
            await asyncio.wait({printing}, timeout=_EXIT_GRACE_S)
            await _finished(printing)
    if judge.failure is not None:
        raise judge.failure
    if done.failure is not None:
        raise done.failure.of_script()
    cache.note_lookups(done.looked_up, done.captured, is_listed=done.is_listed)
    return checked_result(done.result, call.script_path), judge.ledger, done.clock


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
        failure = serving.exception()
        if isinstance(failure, EvalScriptError):
            raise EvalScriptError(f"script {path.name} {failure}") from failure
        if failure is not None:
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
            "(script_memory in mind2web2.toml)"
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
