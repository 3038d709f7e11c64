"""What the end of a script's process without a last word says about the script, and what to do."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from mind2web2.errors import EvalScriptError, MachineError
from mind2web2.isolation.channel import NO_MEMORY_STATUS
from mind2web2.isolation.limits import MAX_FILE_BYTES, ScriptLimits
from mind2web2.isolation.processes import Ending


def why_it_ended(ending: Ending | None, path: Path, limits: ScriptLimits) -> EvalScriptError | MachineError:
    """Return why there is no result; ``None`` for an end of which nobody was left to tell."""
    if ending is None:
        return MachineError("the process that starts scripts has ended: run the same command again")
    if ending.was_too_large:
        return EvalScriptError(
            f"script {path.name} took more than {limits.memory_bytes // 1024**2} MB of memory "
            "(--script_memory)"
        )
    if os.WIFEXITED(ending.status):
        return _left(os.WEXITSTATUS(ending.status), path)
    return _killed(os.WTERMSIG(ending.status), path, limits)


def _left(status: int, path: Path) -> EvalScriptError | MachineError:
    if status == NO_MEMORY_STATUS:
        return MachineError(
            f"no memory was left for the process of script {path.name}: try fewer at once "
            "(--max_concurrent_answers)"
        )
    return EvalScriptError(
        f"script {path.name} ended its process without a result (status {status}): does it call os._exit, "
        "or change what the evaluation itself uses?"
    )


def _killed(number: int, path: Path, limits: ScriptLimits) -> EvalScriptError:
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    whys: dict[int, str] = {
        signal.SIGXCPU: f" used more than {limits.processor_s} s of processor time: an endless loop?",
        signal.SIGXFSZ: f" wrote a file of more than {MAX_FILE_BYTES // 1024**2} MB, which no script may",
        signal.SIGKILL: f": its process was killed ({name}), by itself or as the machine ran out of memory: "
        "try fewer at once (--max_concurrent_answers)",
    }
    crashed = f" crashed its process ({name}): look for what it calls that is not Python"
    return EvalScriptError(f"script {path.name}{whys.get(number, crashed)}")
