"""Result files: where they are, how they are written, which one counts."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from mind2web2.errors import ResultWriteError
from mind2web2.utils.files import read_regular_file, remove_leftovers, write_new, write_whole
from mind2web2.utils.locks import ProcessLock
from mind2web2.utils.names import natural_key

_STAMP_FORMAT = "%Y%m%d_%H%M%S"
_STAMP_LENGTH = len("YYYYMMDD_HHMMSS")
_LOCK_NAME = ".summing_up.lock"
_LOCK_TIMEOUT_S = 60.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LoadedResult:
    """A result file and what it holds."""

    path: Path
    content: dict[str, Any]


def answer_dir(eval_results_root: Path, agent_name: str, task_id: str, answer_name: str) -> Path:
    """Return the folder of one answer's evaluations (file-layouts.md)."""
    return eval_results_root / agent_name / task_id / answer_name.removesuffix(".md")


def answer_results_dir(eval_results_root: Path, agent_name: str, task_id: str, answer_name: str) -> Path:
    """Return the folder of one answer's result files."""
    return answer_dir(eval_results_root, agent_name, task_id, answer_name) / "results"


def latest_result(folder: Path) -> LoadedResult | None:
    """Return the newest result of a folder, ``None`` where there is none.

    A newest file that is damaged counts as no result, with a warning: an older one may have judged
    another answer or script.
    """
    return next(_loaded(folder), None)


def loaded_results(folder: Path) -> Iterator[LoadedResult]:
    """Yield all results of a folder that can be read, the newest first."""
    return (result for result in _loaded(folder) if result is not None)


def _loaded(folder: Path) -> Iterator[LoadedResult | None]:
    # The stamp leads the name.
    for path in sorted(folder.glob("*.md.json"), key=lambda path: path.name, reverse=True):
        try:
            content = json.loads(read_regular_file(path).decode())
        except (OSError, ValueError, RecursionError) as error:
            _tell_damaged(path, str(error))
            yield None
            continue
        if isinstance(content, dict):
            yield LoadedResult(path, content)
        else:
            _tell_damaged(path, "not an object")
            yield None


def _tell_damaged(path: Path, error: str) -> None:
    try:
        changed_ns = path.stat().st_mtime_ns
    except OSError:
        changed_ns = 0
    _warn_once(path.absolute(), path, changed_ns, error)


@lru_cache(maxsize=4096)
def _warn_once(_place: Path, path: Path, _changed_ns: int, error: str) -> None:
    # A command reads a result several times, each time for another purpose.
    log.warning("damaged result, counts as none path=%s error=%s", path, error)


def latest_results(eval_results_root: Path, agent_name: str) -> Iterator[tuple[str, str, LoadedResult]]:
    """Yield task id, answer name and newest result of each of an agent's answers, in natural order."""
    folders = (eval_results_root / agent_name).glob("*/*/results")
    for folder in sorted(folders, key=lambda folder: tuple(map(natural_key, folder.parts[-3:]))):
        found = latest_result(folder)
        if found is not None:
            yield folder.parent.parent.name, f"{folder.parent.name}.md", found


def write_result(folder: Path, answer_name: str, content: dict[str, Any]) -> Path:
    """Write a result under a new stamp, beside the earlier ones, and return its path.

    Raises:
        ResultWriteError: the folder cannot be written.
    """
    written = _result_bytes(content)
    while True:
        path = _free_path(folder, answer_name)
        try:
            write_new(path, written)
        except OSError as error:
            # Another process was faster; the next stamp is later than its one.
            if not path.exists():
                raise _not_writable(folder, error) from error
        else:
            return path


def replace_result(path: Path, content: dict[str, Any]) -> None:
    """Write a result in the place of the one that its file holds.

    Raises:
        ResultWriteError: it cannot be written.
    """
    write_file(path, _result_bytes(content))


def _result_bytes(content: dict[str, Any]) -> bytes:
    text = json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    # A judge's half surrogate becomes its JSON escape.
    return text.encode("utf-8", "backslashreplace")


def write_file(path: Path, content: str | bytes) -> None:
    """Write a whole file.

    Raises:
        ResultWriteError: it cannot be written; the text names the folder.
    """
    try:
        write_whole(path, content)
    except OSError as error:
        raise _not_writable(path.parent, error) from error


@contextmanager
def writing_in(folder: Path) -> Iterator[None]:
    """Keep other processes from summing up a folder of results at the same time; tidy up after killed ones.

    What is read within the block is then what the file written there says, whoever comes last.

    Raises:
        ResultWriteError: the folder cannot be written, or another process does not let go of it.
    """
    lock = ProcessLock(folder / _LOCK_NAME)
    try:
        is_ours = lock.take(_LOCK_TIMEOUT_S)
    except OSError as error:
        raise _not_writable(folder, error) from error
    if not is_ours:
        raise ResultWriteError(
            f"cannot write to {folder}: another process has kept {_LOCK_NAME} for {_LOCK_TIMEOUT_S:g} s; "
            "end it, and run the same command again"
        )
    try:
        remove_leftovers(folder)
        yield
    finally:
        lock.give_back()


def newest_result_name(folder: Path) -> str | None:
    """Return the name of a folder's newest result file, readable or not; ``None`` where there is none."""
    return max((path.name for path in folder.glob("*.md.json")), default=None)


def newest_result_time_s(folder: Path) -> float | None:
    """Return when a folder's newest result file was written, in seconds of the epoch."""
    name = newest_result_name(folder)
    try:
        return None if name is None else (folder / name).stat().st_mtime
    except OSError:
        return None


def _not_writable(folder: Path, error: OSError) -> ResultWriteError:
    return ResultWriteError(f"cannot write to {folder}: {error.strerror or error}")


def _free_path(folder: Path, answer_name: str) -> Path:
    # The newest stamp counts: it must be this one, after a second evaluation within a second, after a
    # clock was put right, and in the hour that comes twice at the end of summer time.
    earlier = [moment for path in folder.glob("*.md.json") if (moment := _moment_of(path)) is not None]
    moment = max([datetime.now(), *(moment + timedelta(seconds=1) for moment in earlier)])
    return folder / f"{moment.strftime(_STAMP_FORMAT)}_{answer_name}.json"


def _moment_of(path: Path) -> datetime | None:
    try:
        return datetime.strptime(path.name[:_STAMP_LENGTH], _STAMP_FORMAT)
    except ValueError:
        return None


def sealed(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result with the digest of all that it says, so that a later change by accident shows.

    Whoever changes a result on purpose can seal it again: a seal is no signature.
    """
    return {**result, "run": {**result["run"], "content_sha256": content_sha256(result)}}


def content_sha256(result: Mapping[str, Any]) -> str:
    """Return the digest of all that a result says, its seal aside, as a reader of its file finds it."""
    read = json.loads(json.dumps(result))
    if isinstance(read.get("run"), dict):
        read["run"].pop("content_sha256", None)
    return hashlib.sha256(json.dumps(read, sort_keys=True).encode()).hexdigest()


def is_seal_broken(result: Mapping[str, Any]) -> bool:
    """Tell whether a result says something else than when it was written; one without a seal never does."""
    seal = _seal(result)
    return seal is not None and seal != content_sha256(result)


def has_seal(result: Mapping[str, Any]) -> bool:
    """Tell whether a result has the digest of all that it says."""
    return _seal(result) is not None


def is_seal_gone(result: Mapping[str, Any]) -> bool:
    """Tell whether a result has lost its seal: whatever records library versions has sealed it as well."""
    made_from = result.get("provenance")
    is_recorded = isinstance(made_from, dict) and bool(made_from.get("versions"))
    return is_recorded and not has_seal(result)


def _seal(result: Mapping[str, Any]) -> object:
    run = result.get("run")
    return run.get("content_sha256") if isinstance(run, dict) else None
