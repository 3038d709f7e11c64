"""What the end of a script's process without a last word says about the script, and what to do."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from mind2web2.errors import EvalScriptError, MachineError, StarterGoneError
from mind2web2.scripts.isolation.limits import MAX_FILE_BYTES, ScriptLimits
from mind2web2.scripts.isolation.processes import END_TIMEOUT_S, Ending
from mind2web2.scripts.isolation.rpc import NO_MEMORY_STATUS

# What a process does to itself by a fault in compiled code, or by giving up.
_CRASHES = frozenset({"SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT"})


def cut_off(path: Path) -> EvalScriptError:
    """Return why there is no result where a process has no connection any more, and does not end."""
    return EvalScriptError(
        f"script {path.name}: its process lost its connection to the evaluation, and had not ended "
        f"{END_TIMEOUT_S:g} s later: does it close files that it has not opened (os.close, os.closerange)?"
    )


def why_it_ended(
    ending: Ending | None, path: Path, limits: ScriptLimits, *, is_alone: bool
) -> EvalScriptError | MachineError:
    """Return why there is no result.

    Args:
        ending: ``None`` where nobody was left to tell of it.
        is_alone: it was the second try, and nobody but this script had to do with who started it.
    """
    if ending is None and is_alone:
        return EvalScriptError(
            f"script {path.name}: the process that starts it ended while it ran, twice, the second time with "
            "no other script beside it: does it send signals to its parent (os.getppid)?"
        )
    if ending is None:
        return StarterGoneError("the process that starts scripts has ended")
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
    """Return what a signal says; who has sent it is not known."""
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    if name == "SIGXCPU":
        why = f"which the system sends after {limits.processor_s} s of processor time: an endless loop?"
    elif name == "SIGXFSZ":
        why = f"which the system sends to who writes a file of more than {MAX_FILE_BYTES // 1024**2} MB"
    elif name == "SIGKILL":
        why = (
            "which the system sends where the machine has no memory left (try fewer at once: "
            f"--max_concurrent_answers) or processor time is used up ({limits.last_processor_s} s at most); "
            "or does it call os.kill or os.killpg, or did another program?"
        )
    elif name in _CRASHES:
        why = "as by a crash: look for what it calls that is not Python"
    else:
        why = (
            "and not by the evaluation: does it call os.kill or os.killpg? Else another program did, or the "
            "system, whose log says so"
        )
    return EvalScriptError(f"script {path.name}: its process was ended by {name}, {why}")
