"""Records which files and folders a script reads while it runs, and what it reads that cannot be compared."""

from __future__ import annotations

import os
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import wraps
from importlib.util import source_from_cache
from pathlib import Path
from typing import Any

from mind2web2.capture.models import DOWNLOAD_EVENT
from mind2web2.scripts.inputs import (
    MAX_FILES,
    ClockReading,
    ScriptInputs,
    account_digests,
    file_digest,
    listing_digest,
)
from mind2web2.scripts.packages import imported_versions
from mind2web2.scripts.source_names import imported_modules, imported_names, names_in
from mind2web2.utils.api_misuse import caller_of, is_installed

OPENS_CONNECTIONS = "the script opens connections, whose results are not compared"
_WRITING = os.O_WRONLY | os.O_RDWR
_LISTING = frozenset({"os.listdir", "os.scandir"})
# Events of reads whose content this process does not see.
_UNSEEN = {
    **dict.fromkeys(
        (
            "subprocess.Popen",
            "os.posix_spawn",
            "os.fork",
            "os.forkpty",
            "os.exec",
            "os.system",
        ),
        "the script starts programs, whose results are not compared",
    ),
    **dict.fromkeys(
        (
            "socket.connect",
            "socket.sendto",
            "socket.getaddrinfo",
            "socket.gethostbyname",
        ),
        OPENS_CONNECTIONS,
    ),
    DOWNLOAD_EVENT: OPENS_CONNECTIONS,
}
# Functions of lxml that open files in C.
_PARSES_FILES = frozenset({"parse", "iterparse"})
_READS_VARIABLES = frozenset({"environ", "environb", "getenv", "getenvb", "expandvars"})
_READS_ACCOUNT = _READS_VARIABLES | {
    "expanduser",
    "home",
    "setlocale",
    "getlocale",
    "getdefaultlocale",
}


@dataclass
class InputRecorder:
    """Notes which files a script's process opens for reading.

    Args:
        script_path: of the script, which is recorded elsewhere.
    """

    script_path: Path
    _digests: dict[str, str | None] = field(default_factory=dict)
    _folders: dict[str, str | None] = field(default_factory=dict)
    _not_compared: set[str] = field(default_factory=set)
    _written: set[str] = field(default_factory=set)
    _is_complete: bool = True

    def note(self, path: str, flags: int) -> None:
        """Note that a file is about to be opened."""
        if path in self._written or path in self._digests:
            return
        is_read = flags & _WRITING != os.O_WRONLY and not flags & (
            os.O_TRUNC | os.O_EXCL
        )
        if flags & _WRITING and (not is_read or not os.path.lexists(path)):
            self._written.add(path)
        elif is_read and len(self._digests) >= MAX_FILES:
            self._is_complete = False
        elif is_read:
            self._digests[path] = file_digest(path)

    def note_listing(self, path: str) -> None:
        """Note that the names in a folder are about to be listed."""
        if path in self._folders:
            return
        if len(self._folders) >= MAX_FILES:
            self._is_complete = False
        else:
            self._folders[path] = listing_digest(path)

    def note_unseen(self, reason: str) -> None:
        """Note a read whose content is not seen."""
        self._not_compared.add(reason)

    def is_inside(self, folder: str) -> bool:
        """Tell whether the script, or its working folder, is in a folder."""
        places = (os.path.abspath(self.script_path), str(Path.cwd()))  # noqa: PTH100 (links stay)
        return any(os.path.commonpath([folder, place]) == folder for place in places)

    def files(self) -> dict[str, int]:
        """Return the files that were read so far, with the times of their last changes."""
        return {path: changed_ns(path) for path in self._digests}

    def sources(self) -> list[bytes]:
        """Return the texts of the script and of its helper modules."""
        paths = [str(self.script_path), *self._modules()]
        return [content for path in paths if (content := _content(path)) is not None]

    def inputs(self, clock: ClockReading | None) -> ScriptInputs:
        """Return the inputs so far."""
        modules = self._modules()
        own = {str(self.script_path), os.path.abspath(self.script_path)}  # noqa: PTH100 (links stay)
        files = {
            path: sha256
            for path, sha256 in self._digests.items()
            if path not in {*modules, *own}
        }
        return ScriptInputs(
            modules={
                self._name(path): sha256 for path, sha256 in sorted(modules.items())
            },
            packages=imported_versions(
                set().union(*map(imported_modules, self.sources()))
            ),
            files={self._name(path): sha256 for path, sha256 in sorted(files.items())},
            folders={
                self._name(path): digest
                for path, digest in sorted(self._folders.items())
            },
            is_complete=self._is_complete,
            not_compared=tuple(
                sorted(self._not_compared.union(self._unseen_by_text()))
            ),
            account=account_digests() if self._may_read_account() else {},
            clock=clock,
        )

    def _may_read_account(self) -> bool:
        return any(
            name.rpartition(".")[2] in _READS_ACCOUNT
            for name in names_in(self.sources())
        )

    def _unseen_by_text(self) -> Iterator[str]:
        """Yield the reads that no hook sees, by the texts of the script and its helper modules."""
        sources = self.sources()
        names = {name.rpartition(".")[2] for name in names_in(sources)}
        if not names.isdisjoint(_PARSES_FILES) and any(
            "lxml" in imported_names(source) for source in sources
        ):
            yield "the script parses files by lxml, which are not compared"

    def _modules(self) -> dict[str, str | None]:
        """Return the digests of the helper modules that were read."""
        return {
            path: sha256
            for path, sha256 in self._digests.items()
            if path.endswith(".py") and path != str(self.script_path)
        }

    def _name(self, path: str) -> str:
        """Return a path from the script's folder; from the root where it is in another place altogether."""
        folder = os.path.abspath(self.script_path.parent)  # noqa: PTH100 (links stay)
        shared = os.path.commonpath([folder, path])
        near = (os.path.dirname(folder), str(Path.cwd()))  # noqa: PTH120
        is_near = any(os.path.commonpath([place, path]) == place for place in near)
        if is_near and shared != os.sep:
            return os.path.relpath(path, folder)
        return path


def changed_ns(path: str) -> int:
    """Return when a file was last changed; 0 where there is none."""
    try:
        return Path(path).stat().st_mtime_ns
    except OSError:
        return 0


# The one of this process.
_recorders: list[InputRecorder] = []
_state = threading.local()


def record_inputs(recorder: InputRecorder) -> None:
    """Have a recorder note which files this process reads from now on, which runs one script."""
    _recorders.append(recorder)
    sys.addaudithook(_hook)
    os.stat = _recording(os.stat)
    os.lstat = _recording(os.lstat, with_folders=False)
    os.access = _recording_access(os.access)


def _recording(
    stat_file: Callable[..., os.stat_result], *, with_folders: bool = True
) -> Callable[..., os.stat_result]:
    """Return ``os.stat`` such that it records files: ``Path.exists`` and the like raise no audit event.

    Args:
        with_folders: record folders as well; ``os.lstat`` is asked for each part of a path that is resolved.
    """

    @wraps(stat_file)
    def recorded(path: Any, **keywords: Any) -> os.stat_result:
        try:
            found = stat_file(path, **keywords)
        except FileNotFoundError:
            _note(path, os.O_RDONLY)
            raise
        is_folder = stat.S_ISDIR(found.st_mode)
        if stat.S_ISREG(found.st_mode) or (is_folder and with_folders):
            _note(path, os.O_RDONLY, is_folder=is_folder)
        return found

    return recorded


def _recording_access(access: Callable[..., bool]) -> Callable[..., bool]:
    """Return ``os.access`` such that it records files."""

    @wraps(access)
    def recorded(path: Any, *arguments: Any, **keywords: Any) -> bool:
        _note(path, os.O_RDONLY)
        return access(path, *arguments, **keywords)

    return recorded


def _hook(
    event: str,
    arguments: tuple[Any, ...],
    is_ending: Callable[[], bool] = sys.is_finalizing,
) -> None:
    if is_ending():  # the names of this module may be gone
        return
    if event in ("open", "sqlite3.connect"):
        _note(arguments[0], arguments[2] if event == "open" else os.O_RDONLY)
    if event in _LISTING:
        _note_listing(arguments[0])
    if event in _UNSEEN:
        _note_unseen(event, arguments)


@contextmanager
def _recorder_at_work() -> Iterator[InputRecorder | None]:
    """Yield the recorder, unless this thread is recording already: what a recorder reads does not count."""
    if getattr(_state, "is_busy", False):
        yield None
        return
    _state.is_busy = True
    try:
        yield _recorders[0]
    except (OSError, ValueError, TypeError):
        pass  # the call itself fails for the same reason, or concerns no file
    finally:
        _state.is_busy = False


def _note(opened: object, flags: object, *, is_folder: bool = False) -> None:
    frame = sys._getframe(2)
    with _recorder_at_work() as recorder:
        if recorder is None:
            return
        path = _read_path(opened)
        if path is None or not isinstance(flags, int) or caller_of(frame) == "own":
            return
        if not (is_folder and recorder.is_inside(path)):
            recorder.note(path, flags)


def _note_listing(listed: object) -> None:
    frame = sys._getframe(2)
    # To find modules, Python lists each folder where they may be.
    if frame.f_globals.get("__name__", "").startswith(
        ("importlib", "_frozen_importlib")
    ):
        return
    with _recorder_at_work() as recorder:
        path = _read_path("." if listed is None else listed)
        if recorder is not None and path is not None and caller_of(frame) != "own":
            recorder.note_listing(path)


def _note_unseen(event: str, arguments: tuple[Any, ...]) -> None:
    frame = sys._getframe(2)
    if event.startswith("socket.") and isinstance(arguments[-1], str | bytes):
        return  # a socket of this machine
    with _recorder_at_work() as recorder:
        # Code without a known caller is the script's, too.
        if recorder is not None and (
            event == DOWNLOAD_EVENT or caller_of(frame) != "own"
        ):
            recorder.note_unseen(_UNSEEN[event])


def _read_path(opened: object) -> str | None:
    """Return the file that is meant, of a compiled module its source; ``None`` where it does not count."""
    if not isinstance(opened, str | bytes | os.PathLike):
        return None  # a file that is open already
    path = os.path.abspath(os.fsdecode(opened))  # noqa: PTH100 (links stay)
    if path.endswith(".pyc"):
        path = source_from_cache(path)
    return None if is_installed(path) else path


def _content(path: str) -> bytes | None:
    """Return a regular file's bytes; ``None`` for others."""
    with suppress(OSError, ValueError):
        return Path(path).read_bytes() if Path(path).is_file() else None
    return None
