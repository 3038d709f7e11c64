"""Waits for pending verdicts before a script changes files or starts work beside itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from mind2web2.scheduling.deferral import (
    current_deferral,
    defer_no_more,
    guard_side_effect,
)
from mind2web2.utils.api_misuse import caller_of

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
# Audit events of changes that another attempt of the script, or a verification, may find.
_LASTING = frozenset(
    {
        "os.rename",
        "os.remove",
        "os.rmdir",
        "os.mkdir",
        "os.link",
        "os.symlink",
        "os.truncate",
        "os.chdir",
        "os.putenv",
        "os.unsetenv",
        "sqlite3.connect",
        "os.system",
    }
)
# Events of starting work that goes on beside the script.
_BESIDE = frozenset(
    {"_thread.start_new_thread", "subprocess.Popen", "os.posix_spawn", "os.fork"}
)


def settle_before_side_effects() -> None:
    """Watch this process, which runs one script, from now on."""
    sys.addaudithook(_hook)


def _hook(
    event: str,
    arguments: tuple[Any, ...],
    is_ending: Callable[[], bool] = sys.is_finalizing,
) -> None:
    if is_ending():  # the names of this module may be gone
        return
    if event in _BESIDE and _is_by_script():
        defer_no_more()
        return
    is_lasting = event in _LASTING or (event == "open" and _changes_file(*arguments))
    if is_lasting and not _is_compiled_module(arguments) and _is_by_script():
        guard_side_effect()


def _is_by_script() -> bool:
    return current_deferral() is not None and caller_of(sys._getframe(2)) == "script"


def _changes_file(path: object, _mode: object, flags: object) -> bool:
    if not isinstance(path, str | bytes | os.PathLike) or not isinstance(flags, int):
        return False
    return bool(flags & _WRITING) and not os.fsdecode(path).startswith("/dev/")


def _is_compiled_module(arguments: tuple[Any, ...]) -> bool:
    """Tell whether this stores the compiled form of a module."""
    return bool(arguments) and "__pycache__" in str(arguments[0])
