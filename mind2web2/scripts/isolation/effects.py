"""The effects of a script beside its questions, and the files that it reads while it is loaded.

A script that starts threads or programs, opens connections or writes files is not run again: all of
it would happen again. If a file changes that it has read while it was loaded, it is loaded again.
"""

from __future__ import annotations

import _thread
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib.util import source_from_cache
from pathlib import Path
from typing import Any

from mind2web2.utils.api_misuse import is_installed

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
    """Call ``note`` before any of this happens in this process from now on, with what it is."""

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


class ReadFiles:
    """Notes the files that this process opens from now on until ``changes`` is called."""

    def __init__(self) -> None:
        self._paths: set[str] | None = set()
        sys.addaudithook(self._note)

    def changes(self) -> dict[str, int]:
        """Return the files with the times of their last changes."""
        paths, self._paths = self._paths or set(), None
        return {path: changed_ns(path) for path in sorted(paths)}

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" or self._paths is None or not isinstance(arguments[0], str):
            return
        path = os.path.abspath(arguments[0])  # noqa: PTH100 (links stay)
        with suppress(ValueError, NotImplementedError):
            if path.endswith(".pyc"):
                path = source_from_cache(path)
        if not is_installed(path):
            self._paths.add(path)


def changed_ns(path: str) -> int:
    """Return when a file was last changed; 0 where there is none."""
    try:
        return Path(path).stat().st_mtime_ns
    except OSError:
        return 0
