"""The effects of a script beside its questions: threads, programs, connections and files.

A script that does any of it is not run again: all of it would happen again.
"""

from __future__ import annotations

import _thread
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

_PROGRAMS = "starts programs"
_CONNECTIONS = "opens connections"
_FILES = "changes files"
# Audit events by what they mean.
_EFFECTS = {
    **dict.fromkeys(("os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"), _PROGRAMS),
    **dict.fromkeys(("subprocess.Popen", "pty.spawn"), _PROGRAMS),
    **dict.fromkeys(("socket.bind", "socket.connect", "socket.sendto"), _CONNECTIONS),
    **dict.fromkeys(("socket.getaddrinfo", "socket.gethostbyname"), _CONNECTIONS),
    **dict.fromkeys(("os.link", "os.mkdir", "os.remove", "os.rename"), _FILES),
    **dict.fromkeys(("os.rmdir", "os.symlink", "os.truncate", "os.chmod"), _FILES),
    **dict.fromkeys(("os.utime", "sqlite3.connect"), _FILES),
}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


def watch_effects(note: Callable[[str], object]) -> None:
    """Call ``note`` before anything of this happens in this process from now on, with what it is."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        effect = _EFFECTS.get(event)
        if effect is None and event == "open" and _is_written(*arguments):
            effect = _FILES
        if effect is not None and "__pycache__" not in str(arguments[:1]):
            note(effect)

    sys.addaudithook(hook)
    # Python 3.12 and later raise events for these, earlier versions do not.
    for module, name in (
        (_thread, "start_new_thread"),
        (_thread, "start_new"),
        (_thread, "start_joinable_thread"),
        (threading, "_start_new_thread"),
        (threading, "_start_joinable_thread"),
    ):
        start = getattr(module, name, None)
        if start is not None:
            setattr(module, name, _noting(start, note))


def _noting(start: Callable[..., Any], note: Callable[[str], object]) -> Callable[..., Any]:
    def started(*arguments: Any, **keywords: Any) -> Any:
        note("starts threads")
        return start(*arguments, **keywords)

    return started


def _is_written(path: object, _mode: object, flags: object) -> bool:
    is_file = isinstance(path, str | bytes | os.PathLike)
    if not is_file or os.fsdecode(path).startswith("/dev/"):  # type: ignore[arg-type]  # checked above
        return False
    return isinstance(flags, int) and bool(flags & _WRITING)
