"""One answer's evaluation in processes of its own: the result, or the reason in one line."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mind2web2.capture.models import NetworkSettings
from mind2web2.errors import EvalScriptError, JudgeError, MachineError
from mind2web2.judge.protocol import JudgeLedger
from mind2web2.judge.spec import JudgeSpec
from mind2web2.llm_client.chat import OwnPrice
from mind2web2.llm_client.prices import own_prices
from mind2web2.scripts.isolation.homes import ScriptHomes, script_homes
from mind2web2.scripts.isolation.messages import HomeJob, PassJob, ScriptCall, checked_result
from mind2web2.scripts.isolation.pass_process import AnswerProcesses, answer_processes
from mind2web2.scripts.isolation.rpc import PACKAGE, Done, allow_deep_trees
from mind2web2.scripts.isolation.service import RunAnswers, RunSide
from mind2web2.scripts.limits import (
    MAX_FILE_BYTES,
    ScriptLimits,
)
from mind2web2.scripts.passes import ScriptPasses
from mind2web2.utils.aio import end_all
from mind2web2.utils.moments import ClockReading
from mind2web2.utils.processes import ProcessEnd, not_started

_WHO_KILLS = "does it call os.kill or os.killpg, or did another program?"
_CRASH = "a crash: check the compiled code that it calls"
# Why a process was ended by a signal.
_WHY_ENDED = {
    "SIGXCPU": "which the system sends after {processor_s} s of processor time: an endless loop?",
    "SIGXFSZ": "which the system sends for a file of more than {file_mb} MB",
    "SIGKILL": "which the system sends where the machine has no memory left (try fewer at once: "
    f"--max_concurrent_answers); or {_WHO_KILLS}",
    **dict.fromkeys(("SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT"), _CRASH),
}


@dataclass(frozen=True)
class Isolation:
    """How scripts are run in processes of their own.

    Args:
        limits: of each.
        network: for a script's downloads.
        homes: the processes with loaded scripts.
    """

    limits: ScriptLimits = field(default_factory=ScriptLimits)
    network: NetworkSettings = field(default_factory=NetworkSettings)
    homes: ScriptHomes = script_homes


def _price_of(judge: JudgeSpec) -> dict[str, OwnPrice]:
    return {} if judge.own_price is None else {judge.model: judge.own_price}


async def isolated_result(
    run: RunSide, isolation: Isolation
) -> tuple[dict[str, Any], JudgeLedger, ClockReading | None]:
    """Return a script's result on one answer, the usage of its questions, and when it ran.

    Raises:
        EvalScriptError: the script failed, or ended its process; the text names script and cure.
        JudgeError: the judge failed for good, even if the script caught that.
        MachineError: no process can be started.
    """
    allow_deep_trees()
    call, cache, logger = run.call, run.cache, run.logger
    answers = RunAnswers(run)
    job = PassJob(
        call=call,
        ahead=None,
        moment=datetime.now(UTC),
        shows_images=run.judge.shows_images,
        endpoint=run.judge.endpoint,
        cache_dir=cache.task_cache.task_dir,
        logger_name=logger.name,
        package_level=logging.getLogger(PACKAGE).getEffectiveLevel(),
        with_captures=run.captures is not None,
        stored_at_first=cache.at_first,
        network=isolation.network,
        known={},
        has_all_replies=run.judge.is_replay,
    )
    home_job = replace(
        home_of(call, isolation),
        prices=own_prices() | _price_of(run.judge.settings),
        as_of=run.as_of,
        zone=run.zone,
    )
    async with answer_processes(isolation.homes, home_job, job, answers, logger) as starter:
        passes = ScriptPasses(
            answers,
            starter.run,
            run.ahead,
        )
        done = await done_in_time(passes, starter, call, isolation.limits, run.timeout_s)
    cache.note_lookups(done.looked_up, done.captured, is_listed=done.is_listed)
    answers.settle(done.used)
    result = checked_result(done.result, call.script_path)
    return result, answers.ledger(done.used), done.clock


def home_of(call: ScriptCall, isolation: Isolation) -> HomeJob:
    """Return what the process that loads a script gets."""
    return HomeJob(
        script_path=call.script_path,
        script_sha256=call.script_sha256,
        limits=isolation.limits,
        folder=Path.cwd(),
        # Last of all, Python looks in the script's own folder.
        import_paths=[*sys.path, str(call.script_path.parent.absolute())],
        prices=own_prices(),
    )


async def done_in_time(
    passes: ScriptPasses,
    starter: AnswerProcesses,
    call: ScriptCall,
    limits: ScriptLimits,
    timeout_s: float | None,
) -> Done:
    """Return the end of the pass that is the result.

    Raises:
        Mind2Web2Error: there is no result.
    """
    work = asyncio.create_task(passes.done())
    try:
        await asyncio.wait({work}, timeout=timeout_s)
        if not work.done():
            raise EvalScriptError(
                f"script {call.script_path.name} did not return within {timeout_s:g} s "
                "(--answer_timeout)"
            )
        done = work.result()
    finally:
        await end_all([work])
    if passes.failed is not None:
        raise starter.answers.error_of(passes.failed) or JudgeError("no reply")
    if starter.answers.judge.failure is not None:
        raise starter.answers.judge.failure
    if done is None:
        raise exit_reason(starter.last, call.script_path, limits)
    if done.failure is not None:
        # The judge's own failure is the reason, whatever the script makes of it.
        own = starter.answers.error_of(done.used[-1]) if done.used else None
        if own is not None and str(own) == done.failure.text:
            raise own
        raise done.failure.of_script()
    return done


def exit_reason(
    end: ProcessEnd, path: Path, limits: ScriptLimits
) -> EvalScriptError | MachineError:
    """Return why a process ended without a result; the sender of a signal is not known."""
    if end.not_started is not None:
        return not_started(end.not_started)
    if end.status is None:
        return MachineError("the process that starts scripts has ended: run the same command again")
    if end.was_too_large:
        return EvalScriptError(
            f"script {path.name} took more than {limits.memory_bytes // 1024**2} MB of memory"
        )
    if os.WIFEXITED(end.status):
        return EvalScriptError(
            f"script {path.name} ended its process without a result (status "
            f"{os.WEXITSTATUS(end.status)}): does it call os._exit, or change modules that the "
            "evaluation uses?"
        )
    number = os.WTERMSIG(end.status)
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    why = _WHY_ENDED.get(name, f"not by the evaluation: {_WHO_KILLS}")
    why = why.format(processor_s=limits.processor_s, file_mb=MAX_FILE_BYTES // 1024**2)
    return EvalScriptError(f"script {path.name}: its process was ended by {name}, {why}")
