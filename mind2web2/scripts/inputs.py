"""Inputs of an eval script beside its answer and pages: files, modules, services and the clock that it sees.

Files are recorded while it runs, and compared before its result is reused. The clock is the real one, or one
that stands still at a chosen moment.
"""

from __future__ import annotations

import ast
import hashlib
import os
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache, wraps
from importlib.util import source_from_cache
from pathlib import Path
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, ConfigDict, Field

from mind2web2.capture.models import DOWNLOAD_EVENT
from mind2web2.errors import AnswerError
from mind2web2.judge.store import ServiceAnswer
from mind2web2.scheduling.deferral import (
    current_deferral,
    defer_no_more,
    guard_side_effect,
)
from mind2web2.utils.api_misuse import caller_of, is_installed, syntax_tree
from mind2web2.utils.moments import parsed_moment
from mind2web2.utils.private_attributes import check_private_attributes

# A moment, or the moment at which each answer was made.
AsOf = datetime | Literal["answer"]

_LOCALTIME = Path("/etc/localtime")
_UTC_NAMES = frozenset(
    {"Etc/UTC", "Etc/UCT", "Etc/Universal", "Etc/Zulu", "UCT", "Universal", "Zulu"}
)
# By which programs read the date: methods, whatever the object is called, and functions of ``time``.
_READS_CLOCK = frozenset(
    {
        *(
            ".now",
            ".today",
            ".utcnow",
            "time.time",
            "time.time_ns",
            "time.localtime",
            "time.gmtime",
        ),
        *("time.ctime", "time.asctime", "time.strftime"),
    }
)
_USES_LOCAL_TIME = frozenset(
    {
        *(
            ".fromtimestamp",
            ".astimezone",
            ".timestamp",
            ".mktime",
            ".localtime",
            ".ctime",
        ),
        *("mktime", "localtime", "ctime"),
    }
)


class ClockReading(BaseModel):
    """The moment at which a script ran, as far as its result may depend on it.

    Args:
        moment: ISO 8601 with the local offset; the script's own clock, not the run's.
        zone: name of the local time zone.
        is_read: the script has read the clock; otherwise it only converts local times.
    """

    model_config = ConfigDict(frozen=True)

    moment: str
    zone: str
    is_read: bool

    @property
    def date(self) -> str:
        """Return the local date."""
        return self.moment[:10]


class ScriptClock:
    """The clock of this process: scripts see ``as_of``, our own code and logging see the real time.

    Args:
        as_of: where the clock stands still; ``None`` for the real time.
        zone: name of the time zone to run in; ``None`` for that of the process.

    Attributes:
        is_read: a script has read the clock.
    """

    def __init__(self, as_of: datetime | None = None, zone: str | None = None) -> None:
        self.is_read = False
        self._as_of = as_of
        self._started = datetime.now(UTC)
        if zone is not None and zone != time_zone():
            os.environ["TZ"] = zone
            time.tzset()

    def install(self) -> None:
        """Answer every question for the time in this process, until it ends."""
        import time_machine

        check_private_attributes("time-machine")
        as_of_ns = (
            None if self._as_of is None else round(self._as_of.timestamp() * 1e6) * 1000
        )
        real_ns = time_machine.escape_hatch.time.time_ns

        def time_ns() -> int:
            # The library's own functions are written in C and have no frame: this one is the caller's.
            if caller_of(sys._getframe(1), ignored=_LOGGING) == "own":
                return real_ns()
            self.is_read = True
            return real_ns() if as_of_ns is None else as_of_ns

        traveller = time_machine.travel(0, tick=False).start()
        traveller.time_ns = time_ns  # type: ignore[method-assign]  # tells who asks, which the library does not

    def reading(self, sources: Iterable[bytes]) -> ClockReading | None:
        """Return what a result may depend on, ``None`` if on nothing."""
        if not self.is_read and _USES_LOCAL_TIME.isdisjoint(_names_in(sources)):
            return None
        return reading_at(self._as_of or self._started, is_read=self.is_read)


# Records of a log carry the real time, though a script may have written them.
_LOGGING = frozenset({"logging"})


def reading_at(moment: datetime, *, is_read: bool) -> ClockReading:
    """Return the reading of a clock in the local time zone."""
    return ClockReading(
        moment=moment.astimezone().isoformat(timespec="microseconds"),
        zone=time_zone(),
        is_read=is_read,
    )


def static_reading(sources: Iterable[bytes]) -> ClockReading | None:
    """Return what a result may depend on by the text of its script, where its process was not watched."""
    names = set(_names_in(sources))
    is_read = not names.isdisjoint(_READS_CLOCK)
    if not is_read and names.isdisjoint(_USES_LOCAL_TIME):
        return None
    return reading_at(datetime.now(UTC), is_read=is_read)


def answer_moment(path: Path, created: str | None) -> datetime:
    """Return when an answer was made: ``created`` of its meta file, else the file's own time.

    Raises:
        AnswerError: ``created`` is no date.
    """
    if created is None:
        return datetime.fromtimestamp(int(path.stat().st_mtime)).astimezone()
    try:
        return parsed_moment(created)
    except ValueError as error:
        raise AnswerError(
            f"{path.with_suffix('.meta.json')}: created {created!r} is no date such as 2025-03-14 "
            "(--as_of answer and --archive need it)"
        ) from error


def recorded_moment(reading: ClockReading) -> datetime | None:
    """Return the moment of an earlier run, ``None`` where its record is damaged."""
    with suppress(ValueError):
        moment = datetime.fromisoformat(reading.moment)
        if moment.tzinfo is not None:
            return moment
    return None


def known_zone(name: str | None) -> str | None:
    """Return a time zone's name if this machine knows it."""
    with suppress(ZoneInfoNotFoundError, ValueError, OSError):
        return ZoneInfo(name).key if name else None
    return None


def time_zone() -> str:
    """Return the name of the local time zone."""
    name = os.environ.get("TZ", "").lstrip(":")
    if not name and "/zoneinfo/" in (target := str(_LOCALTIME.resolve())):
        name = target.partition("/zoneinfo/")[2]
    name = name or "/".join(time.tzname)
    return "UTC" if name in _UTC_NAMES or name == "UTC/UTC" else name


def imported_names(source: bytes) -> set[str]:
    """Return the parts of all module names, and all names, that a module imports."""
    names: set[str] = set()
    for node in _nodes(source):
        if isinstance(node, ast.ImportFrom):
            names.update((node.module or "").split("."))
        if isinstance(node, ast.Import | ast.ImportFrom):
            names.update(part for alias in node.names for part in alias.name.split("."))
    return names


def _names_in(sources: Iterable[bytes]) -> Iterator[str]:
    """Yield names that are used, attributes with a dot and with their owner's name, and imported names."""
    for node in (node for source in sources for node in _nodes(source)):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute):
            yield f".{node.attr}"
            if isinstance(node.value, ast.Name):
                yield f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.Name):
            yield node.id


def _nodes(source: bytes) -> Iterator[ast.AST]:
    # Of a module that is no Python the script has seen an error, and no clock.
    with suppress(SyntaxError, ValueError, RecursionError):
        yield from ast.walk(syntax_tree(source))


OPENS_CONNECTIONS = "the script opens connections, whose results are not compared"
MAX_FILES = 1_000
# In place of a digest: there is a folder, whose names the script did not list.
_FOLDER = "folder"
_WRITING = os.O_WRONLY | os.O_RDWR
# Audit events of changes that another attempt of the script, or a verification, may find.
_LASTING = frozenset(
    {
        *(
            "os.rename",
            "os.remove",
            "os.rmdir",
            "os.mkdir",
            "os.link",
            "os.symlink",
            "os.truncate",
        ),
        *("os.chdir", "os.putenv", "os.unsetenv", "sqlite3.connect", "os.system"),
    }
)
# Events of what a script starts, and what then runs beside it.
_BESIDE = frozenset(
    {"_thread.start_new_thread", "subprocess.Popen", "os.posix_spawn", "os.fork"}
)
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
# The variables of a person's account that every script gets.
_ACCOUNT = ("HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "LC_ALL")
# Of a value that may be a secret: enough to see a change, too little to guess it from.
_DIGEST_CHARS = 12


class ScriptInputs(BaseModel):
    """Inputs of a script beside its answer and pages.

    Args:
        modules: digests of helper modules from outside the installation, by path from the script's folder.
        files: digests of other files that it opened for reading, likewise; ``None`` for one that was missing.
        folders: digests of the names in folders that it listed, likewise; ``None`` for a missing one.
        is_complete: there were not more of them than are recorded.
        not_compared: why a result cannot be reused although nothing else has changed.
        variables: short digests of the variables that ``--script_env`` hands on.
        account: short digests of ``HOME``, ``LANG`` and the like, if the script may read them.
        services: answers of map and paper services.
        clock: ``None`` where nothing depends on it.
        as_of: the value of ``--as_of``: a moment, or ``answer``.
    """

    model_config = ConfigDict(frozen=True)

    modules: Mapping[str, str | None] = Field(default_factory=dict)
    files: Mapping[str, str | None] = Field(default_factory=dict)
    folders: Mapping[str, str | None] = Field(default_factory=dict)
    is_complete: bool = True
    not_compared: tuple[str, ...] = ()
    variables: Mapping[str, str] = Field(default_factory=dict)
    account: Mapping[str, str] = Field(default_factory=dict)
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


def changed_inputs(
    inputs: ScriptInputs, script_folder: Path, now: InputsNow
) -> Iterator[str]:
    """Yield the changes since a script ran, one phrase each; reads the files."""
    recorded = (
        ("helper module", inputs.modules, _file_digest),
        ("file", inputs.files, _file_digest),
        ("list of files in", inputs.folders, _listing_digest),
    )
    for kind, digests, digest_of in recorded:
        for name, was in digests.items():
            digest = digest_of(str(script_folder / name))
            if digest != was:
                change = (
                    "is gone"
                    if digest is None
                    else "is new"
                    if was is None
                    else "changed"
                )
                yield f"{kind} {name} {change}"
    for name in inputs.modules:
        package = name.removesuffix(".py") + "/__init__.py"
        if package not in inputs.modules and (script_folder / package).is_file():
            yield f"helper module {name} is hidden by the package {package}"
    if not inputs.is_complete:
        yield f"the script reads more than {MAX_FILES} files, which are not compared"
    if now.variables is not None and now.variables != inputs.variables:
        names = {*now.variables, *inputs.variables}
        changed = [
            name
            for name in names
            if now.variables.get(name) != inputs.variables.get(name)
        ]
        yield f"variables of --script_env changed: {', '.join(sorted(changed))}"
    account = account_digests()
    if changed := [
        name for name, was in inputs.account.items() if account.get(name) != was
    ]:
        yield f"variables changed: {', '.join(sorted(changed))}"
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


def account_digests() -> dict[str, str]:
    """Return short digests of the variables of a person's account."""
    return variable_digests({name: os.environ.get(name, "") for name in _ACCOUNT})


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
            self._digests[path] = _file_digest(path)

    def note_listing(self, path: str) -> None:
        """Note that the names in a folder are about to be listed."""
        if path in self._folders:
            return
        if len(self._folders) >= MAX_FILES:
            self._is_complete = False
        else:
            self._folders[path] = _listing_digest(path)

    def note_unseen(self, reason: str) -> None:
        """Note a read whose content is not seen."""
        self._not_compared.add(reason)

    def is_inside(self, folder: str) -> bool:
        """Tell whether the script, or its working folder, is in a folder."""
        places = (os.path.abspath(self.script_path), str(Path.cwd()))  # noqa: PTH100 (links stay)
        return any(os.path.commonpath([folder, place]) == folder for place in places)

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
            for name in _names_in(self.sources())
        )

    def _unseen_by_text(self) -> Iterator[str]:
        """Yield the reads that no hook sees, by the texts of the script and its helper modules."""
        sources = self.sources()
        names = {name.rpartition(".")[2] for name in _names_in(sources)}
        if not names.isdisjoint(_PARSES_FILES) and any(
            "lxml" in imported_names(source) for source in sources
        ):
            yield "the script parses files by lxml, which are not compared"
        if not self.is_only_one and not names.isdisjoint(_READS_VARIABLES):
            yield "the script reads variables without isolation, which are not compared"

    def _modules(self) -> dict[str, str | None]:
        """Return helper modules: those read now, and those that the process has read for another script."""
        read = {
            path: sha256
            for path, sha256 in self._digests.items()
            if path.endswith(".py")
        }
        _known_modules.update(read)
        found = {
            path: sha256
            for path, sha256 in read.items()
            if path != str(self.script_path)
        }
        texts = [_content(str(self.script_path)), *map(_content, found)]
        while texts and (
            others := _known_modules.keys() - found.keys() - {str(self.script_path)}
        ):
            imported = imported_names(texts.pop() or b"")
            for path in others:
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
_recorder: ContextVar[InputRecorder | None] = ContextVar(
    "recorder of a script's inputs", default=None
)
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
        os.lstat = _recording(os.lstat, with_folders=False)
        os.access = _recording_access(os.access)
        _is_installed.append(True)
    if recorder.is_only_one:
        _only_recorder.append(recorder)
    token = _recorder.set(recorder)
    try:
        yield
    finally:
        _recorder.reset(token)


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
    if event in _BESIDE and _is_by_script():
        defer_no_more()
        return
    is_lasting = event in _LASTING or (event == "open" and _changes_file(*arguments))
    if is_lasting and not _is_compiled_module(arguments) and _is_by_script():
        guard_side_effect()


def _is_by_script() -> bool:
    return current_deferral() is not None and caller_of(sys._getframe(2)) == "script"


def _changes_file(path: object, _mode: object, flags: object) -> bool:
    is_file = isinstance(path, str | bytes | os.PathLike) and not os.fsdecode(
        path
    ).startswith("/dev/")
    return (
        is_file
        and isinstance(flags, int)
        and bool(flags & (_WRITING | os.O_CREAT | os.O_TRUNC))
    )


def _is_compiled_module(arguments: tuple[Any, ...]) -> bool:
    """Tell whether this stores the compiled form of a module."""
    return bool(arguments) and "__pycache__" in str(arguments[0])


@contextmanager
def _recorder_at_work() -> Iterator[InputRecorder | None]:
    """Yield the recorder, unless this thread is recording already: what a recorder reads does not count."""
    recorder = _recorder.get() or next(iter(_only_recorder), None)
    if recorder is None or getattr(_state, "is_busy", False):
        yield None
        return
    _state.is_busy = True
    try:
        yield recorder
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
        if recorder is not None:
            # Code without a known caller is the script's in a process of its own; else it may be the judge's.
            counted = ("script", "other") if recorder.is_only_one else ("script",)
            if event == DOWNLOAD_EVENT or caller_of(frame) in counted:
                recorder.note_unseen(_UNSEEN[event])


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
    """Return the digest of a file's bytes, however large; ``None`` where there is none."""
    with suppress(OSError, ValueError):
        status = os.stat(path)  # noqa: PTH116 (quick: it is asked at each opening)
        if stat.S_ISDIR(status.st_mode):
            return _FOLDER
        if stat.S_ISREG(status.st_mode):
            if status.st_size > _LARGE_BYTES:
                state = (
                    status.st_ino,
                    status.st_size,
                    status.st_mtime_ns,
                    status.st_ctime_ns,
                )
                return _large_digest(path, state)
            return _streamed_digest(path)
    return None


# A file of this size takes 0.1 s: it is read once for many answers.
_LARGE_BYTES = 64 * 1024**2


@lru_cache(maxsize=1024)
def _large_digest(path: str, _state: tuple[int, ...]) -> str:
    return _streamed_digest(path)


def _streamed_digest(path: str) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _listing_digest(path: str) -> str | None:
    """Return the digest of the names in a folder; ``None`` where there is none."""
    with suppress(OSError, ValueError):
        # Python adds compiled modules by itself.
        names = sorted(name for name in os.listdir(path) if name != "__pycache__")  # noqa: PTH208
        return hashlib.sha256("\0".join(map(repr, names)).encode()).hexdigest()
    return None


def _content(path: str) -> bytes | None:
    """Return a regular file's bytes; ``None`` for others."""
    with suppress(OSError, ValueError):
        return Path(path).read_bytes() if Path(path).is_file() else None
    return None
