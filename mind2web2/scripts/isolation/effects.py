"""The effects of a script beside its questions.

A script that starts threads or programs, opens connections or writes files is not run again: all of
it would happen again.
"""

from __future__ import annotations

import _thread
import os
import posix
import sys
import threading
from collections.abc import Callable
from typing import Any

_THREADS = "starts threads"
_PROGRAMS = "starts programs"
_CONNECTIONS = "opens connections"
_FILES = "changes files"
SHARED_MEMORY = "shares memory"
# Audit events by what they mean.
_EFFECTS = {
    **dict.fromkeys(("os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"), _PROGRAMS),
    **dict.fromkeys(("subprocess.Popen", "pty.spawn"), _PROGRAMS),
    **dict.fromkeys(("socket.bind", "socket.connect", "socket.sendto"), _CONNECTIONS),
    **dict.fromkeys(("socket.getaddrinfo", "socket.gethostbyname"), _CONNECTIONS),
    **dict.fromkeys(("os.link", "os.mkdir", "os.remove", "os.rename"), _FILES),
    **dict.fromkeys(("os.rmdir", "os.symlink", "os.truncate", "os.chmod"), _FILES),
    **dict.fromkeys(("os.utime", "sqlite3.connect"), _FILES),
    # From Python 3.12 and 3.13 on; the functions of earlier versions are wrapped.
    **dict.fromkeys(("_thread.start_new_thread", "_thread.start_joinable_thread"), _THREADS),
    # Forks share it, which matters if a script maps it while it is loaded.
    "mmap.__new__": SHARED_MEMORY,
}
_WRAPPED = (
    (_thread, "start_new_thread", _THREADS),
    (_thread, "start_new", _THREADS),
    (threading, "_start_new_thread", _THREADS),
    (os, "mkfifo", _FILES),
    (posix, "mkfifo", _FILES),
)
# Whatever is written there is kept by no file.
_SINKS = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"})
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


def watch_effects(note: Callable[[str], object]) -> None:
    """Call ``note`` before any of this happens in this process from now on, with what it is.

    Call this before a script is loaded, which may take a function by name.
    """

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        effect = _EFFECTS.get(event)
        if effect is None and event == "open" and _is_written(*arguments):
            effect = _FILES
        if effect is not None and "__pycache__" not in str(arguments[:1]):
            note(effect)

    sys.addaudithook(hook)
    for module, name, effect in _WRAPPED:
        if hasattr(module, name):
            setattr(module, name, _noting(getattr(module, name), effect, note))


def _noting(
    function: Callable[..., Any], effect: str, note: Callable[[str], object]
) -> Callable[..., Any]:
    def noted(*arguments: Any, **keywords: Any) -> Any:
        note(effect)
        return function(*arguments, **keywords)

    return noted


def _is_written(path: object, _mode: object, flags: object) -> bool:
    is_file = isinstance(path, str | bytes | os.PathLike)
    if not is_file or os.fsdecode(path) in _SINKS:  # type: ignore[arg-type]  # checked above
        return False
    return isinstance(flags, int) and bool(flags & _WRITING)
