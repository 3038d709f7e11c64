"""Inputs of an eval script beside its answer and pages: recorded while it runs, compared before reuse."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from importlib.util import source_from_cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from mind2web2.judge.store import ServiceAnswer
from mind2web2.scheduling.scheduler import check_lasting_effect, current_deferral
from mind2web2.scripts.clock import ClockReading, imported_names
from mind2web2.utils.installation import caller_of, is_installed

MAX_FILES = 1_000
MAX_FILE_BYTES = 64 * 1024**2
_WRITING = os.O_WRONLY | os.O_RDWR
# Audit events of what another attempt of the script, or a verification, may find changed.
_LASTING = frozenset(
    {
        *("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate"),
        *("os.chdir", "os.putenv", "os.unsetenv", "sqlite3.connect"),
        *("subprocess.Popen", "os.system", "os.posix_spawn", "os.fork"),
    }
)
# Of a value that may be a secret: enough to see a change, too little to guess it from.
_DIGEST_CHARS = 12


class ScriptInputs(BaseModel):
    """Inputs of a script beside its answer and pages.

    Args:
        modules: digests of helper modules from outside the installation, by path from the script's folder.
        files: digests of other files that it opened for reading, likewise; ``None`` for one that was missing.
        is_complete: there were not more of them than are recorded.
        variables: short digests of the variables that ``--script_env`` hands on.
        services: answers of map and paper services.
        clock: ``None`` where nothing depends on it.
        as_of: the value of ``--as_of``: a moment, or ``answer``.
    """

    model_config = ConfigDict(frozen=True)

    modules: Mapping[str, str | None] = Field(default_factory=dict)
    files: Mapping[str, str | None] = Field(default_factory=dict)
    is_complete: bool = True
    variables: Mapping[str, str] = Field(default_factory=dict)
    services: tuple[ServiceAnswer, ...] = ()
    clock: ClockReading | None = None
    as_of: str | None = None


@dataclass(frozen=True)
class InputsNow:
    """The inputs that the same script would have now.

    Args:
        clock: which it would see; ``None`` compares none.
        variables: digests of those that would be handed on; ``None`` compares none.
    """

    clock: ClockReading | None
    variables: Mapping[str, str] | None = None


def changed_inputs(inputs: ScriptInputs, script_folder: Path, now: InputsNow) -> Iterator[str]:
    """Yield the changes since a script ran, one phrase each; reads the files."""
    for kind, digests in (("helper module", inputs.modules), ("file", inputs.files)):
        for name, was in digests.items():
            sha256 = _file_digest(str(script_folder / name))
            if sha256 != was:
                change = "is gone" if sha256 is None else "is new" if was is None else "changed"
                yield f"{kind} {name} {change}"
    if not inputs.is_complete:
        yield f"the script reads more than {MAX_FILES} files, which are not compared"
    if now.variables is not None and now.variables != inputs.variables:
        names = {*now.variables, *inputs.variables}
        changed = [name for name in names if now.variables.get(name) != inputs.variables.get(name)]
        yield f"variables of --script_env changed: {', '.join(sorted(changed))}"
    clock = inputs.clock
    if clock is None or now.clock is None:
        return
    if clock.zone != now.clock.zone:
        yield f"time zone {clock.zone}, now {now.clock.zone}"
    if clock.is_read and clock.date != now.clock.date:
        yield f"the script reads the clock: it ran as of {clock.date}, now {now.clock.date}"


def variable_digests(variables: Mapping[str, str]) -> dict[str, str]:
    """Return short digests of the values."""
    return {
        name: hashlib.sha256(f"{name}={value}".encode()).hexdigest()[:_DIGEST_CHARS]
        for name, value in variables.items()
    }


@dataclass
class InputRecorder:
    """Notes which files a script's process opens for reading.

    Args:
        script_path: of the script, which is recorded elsewhere.
        is_only_one: all that this process reads for no known caller is read for this script.
    """

    script_path: Path
    is_only_one: bool = False
    _digests: dict[str, str | None] = field(default_factory=dict)
    _written: set[str] = field(default_factory=set)
    _is_complete: bool = True

    def note(self, path: str, flags: int) -> None:
        """Note that a file is about to be opened."""
        if path in self._written or path in self._digests:
            return
        is_read = flags & _WRITING != os.O_WRONLY and not flags & (os.O_TRUNC | os.O_EXCL)
        if flags & _WRITING and (not is_read or not os.path.lexists(path)):
            self._written.add(path)
        elif is_read and len(self._digests) >= MAX_FILES:
            self._is_complete = False
        elif is_read:
            self._digests[path] = _file_digest(path)

    def sources(self) -> list[bytes]:
        """Return the texts of the script and of its helper modules."""
        paths = [str(self.script_path), *self._modules()]
        return [content for path in paths if (content := _content(path)) is not None]

    def inputs(self, clock: ClockReading | None) -> ScriptInputs:
        """Return the inputs so far."""
        modules = self._modules()
        own = {str(self.script_path), os.path.abspath(self.script_path)}  # noqa: PTH100 (links stay)
        files = {path: sha256 for path, sha256 in self._digests.items() if path not in {*modules, *own}}
        return ScriptInputs(
            modules={self._name(path): sha256 for path, sha256 in sorted(modules.items())},
            files={self._name(path): sha256 for path, sha256 in sorted(files.items())},
            is_complete=self._is_complete,
            clock=clock,
        )

    def _modules(self) -> dict[str, str | None]:
        """Return helper modules: those read now, and those that the process has read for another script."""
        read = {path: sha256 for path, sha256 in self._digests.items() if path.endswith(".py")}
        _known_modules.update(read)
        found = {path: sha256 for path, sha256 in read.items() if path != str(self.script_path)}
        texts = [_content(str(self.script_path)), *map(_content, found)]
        while texts:
            imported = imported_names(texts.pop() or b"")
            for path in _known_modules.keys() - found.keys() - {str(self.script_path)}:
                if _module_name(path) in imported:
                    found[path] = _known_modules[path]
                    texts.append(_content(path))
        return found

    def _name(self, path: str) -> str:
        """Return a path from the script's folder; from the root where it is in another place altogether."""
        folder = os.path.abspath(self.script_path.parent)  # noqa: PTH100 (links stay)
        shared = os.path.commonpath([folder, path])
        near = (os.path.dirname(folder), str(Path.cwd()))  # noqa: PTH120
        is_near = any(os.path.commonpath([place, path]) == place for place in near)
        return os.path.relpath(path, folder) if is_near and shared != os.sep else path


# Helper modules that this process has read; Python reads each of them once.
_known_modules: dict[str, str | None] = {}
_recorder: ContextVar[InputRecorder | None] = ContextVar("recorder of what a script reads", default=None)
_only_recorder: list[InputRecorder] = []
_state = threading.local()
_is_installed: list[bool] = []


@contextmanager
def inputs_recorded(recorder: InputRecorder) -> Iterator[None]:
    """Let a recorder note which files scripts open in this block, and in tasks and threads started in it."""
    if not _is_installed:
        # Hooks cannot be taken back.
        sys.addaudithook(_hook)
        os.stat = _recording(os.stat)
        _is_installed.append(True)
    if recorder.is_only_one:
        _only_recorder.append(recorder)
    token = _recorder.set(recorder)
    try:
        yield
    finally:
        _recorder.reset(token)


def _recording(stat_file: Callable[..., os.stat_result]) -> Callable[..., os.stat_result]:
    """Return ``os.stat`` such that it records files: ``Path.exists`` and the like raise no audit event."""

    @wraps(stat_file)
    def recorded(path: Any, **keywords: Any) -> os.stat_result:
        try:
            found = stat_file(path, **keywords)
        except FileNotFoundError:
            _note(path, os.O_RDONLY)
            raise
        if stat.S_ISREG(found.st_mode):
            _note(path, os.O_RDONLY)
        return found

    return recorded


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event in ("open", "sqlite3.connect"):
        _note(arguments[0], arguments[2] if event == "open" else os.O_RDONLY)
    if event in _LASTING or (event == "open" and _changes_file(*arguments)):
        is_script = current_deferral() is not None and caller_of(sys._getframe(1)) == "script"
        if is_script and not _is_compiled_module(arguments):
            check_lasting_effect(f"a change of files, variables or processes ({event})")


def _changes_file(path: object, _mode: object, flags: object) -> bool:
    is_file = isinstance(path, str | bytes | os.PathLike) and not os.fsdecode(path).startswith("/dev/")
    return is_file and isinstance(flags, int) and bool(flags & (_WRITING | os.O_CREAT | os.O_TRUNC))


def _is_compiled_module(arguments: tuple[Any, ...]) -> bool:
    """Tell whether this stores the compiled form of a module."""
    return bool(arguments) and "__pycache__" in str(arguments[0])


def _note(opened: object, flags: object) -> None:
    recorder = _recorder.get() or next(iter(_only_recorder), None)
    if recorder is None or getattr(_state, "is_busy", False):
        return
    _state.is_busy = True
    try:
        path = _read_path(opened)
        if path is not None and isinstance(flags, int) and caller_of(sys._getframe(2)) != "own":
            recorder.note(path, flags)
    except (OSError, ValueError, TypeError):
        pass  # the call itself fails for the same reason, or concerns no file
    finally:
        _state.is_busy = False


def _read_path(opened: object) -> str | None:
    """Return the file that is meant, of a compiled module its source; ``None`` where it does not count."""
    if not isinstance(opened, str | bytes | os.PathLike):
        return None  # a file that is open already
    path = os.path.abspath(os.fsdecode(opened))  # noqa: PTH100 (links stay)
    if path.endswith(".pyc"):
        path = source_from_cache(path)
    return None if is_installed(path) else path


def _module_name(path: str) -> str:
    name = Path(path)
    return name.parent.name if name.stem == "__init__" else name.stem


def _file_digest(path: str) -> str | None:
    content = _content(path)
    return None if content is None else hashlib.sha256(content).hexdigest()


def _content(path: str) -> bytes | None:
    """Return a regular file's bytes, those of a very large one as its size and time; ``None`` for others."""
    with suppress(OSError, ValueError):
        status = os.stat(path)  # noqa: PTH116 (quick: it is asked at each opening)
        if not stat.S_ISREG(status.st_mode):
            return None
        if status.st_size > MAX_FILE_BYTES:
            return f"{status.st_size} {status.st_mtime_ns}".encode()
        return Path(path).read_bytes()
    return None
