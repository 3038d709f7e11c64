"""What a script's result depends on beside its answer and pages, and whether it has changed since."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from mind2web2.judge.store import ServiceAnswer
from mind2web2.scripts.packages import installed_version

MAX_FILES = 1_000
# In place of a digest: there is a folder, whose names the script did not list.
_FOLDER = "folder"
# The variables of a person's account that every script gets.
_ACCOUNT = ("HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "LC_ALL")
# Of a value that may be a secret: enough to see a change, too little to guess it from.
_DIGEST_CHARS = 12


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


class ScriptInputs(BaseModel):
    """Inputs of a script beside its answer and pages.

    Args:
        modules: digests of helper modules from outside the installation, by path from the script's folder.
        packages: versions of installed packages that it imports beside the toolkit's dependencies.
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
    packages: Mapping[str, str] = Field(default_factory=dict)
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
        ("helper module", inputs.modules, file_digest),
        ("file", inputs.files, file_digest),
        ("list of files in", inputs.folders, listing_digest),
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
    yield from _changed_packages(inputs.packages)
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


def _changed_packages(recorded: Mapping[str, str]) -> Iterator[str]:
    for name, was in recorded.items():
        present = installed_version(name)
        if present != was:
            yield f"package {name} {was} is {'gone' if present is None else f'now {present}'}"


def variable_digests(variables: Mapping[str, str]) -> dict[str, str]:
    """Return short digests of the values."""
    return {
        name: hashlib.sha256(f"{name}={value}".encode()).hexdigest()[:_DIGEST_CHARS]
        for name, value in variables.items()
    }


def account_digests() -> dict[str, str]:
    """Return short digests of the variables of a person's account."""
    return variable_digests({name: os.environ.get(name, "") for name in _ACCOUNT})


def file_digest(path: str) -> str | None:
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


def listing_digest(path: str) -> str | None:
    """Return the digest of the names in a folder; ``None`` where there is none."""
    with suppress(OSError, ValueError):
        # Python adds compiled modules by itself.
        names = sorted(name for name in os.listdir(path) if name != "__pycache__")  # noqa: PTH208
        return hashlib.sha256("\0".join(map(repr, names)).encode()).hexdigest()
    return None
