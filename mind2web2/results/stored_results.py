"""Where result files are, which one counts, and how they are written.

``latest_results`` yields the results of an agent, ``latest_result`` that of one answer.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path

from mind2web2.errors import ResultWriteError, UsageError
from mind2web2.results.result_file import ResultFile
from mind2web2.utils.files import (
    MAX_JSON_BYTES,
    read_regular_file,
    remove_leftovers,
    write_new,
    write_whole,
)
from mind2web2.utils.json_text import parse_json
from mind2web2.utils.names import natural_key
from mind2web2.utils.process_lock import ProcessLock

_STAMP_FORMAT = "%Y%m%d_%H%M%S"
_STAMP_LENGTH = len("YYYYMMDD_HHMMSS")
# Only a file with a stamp counts: a copy beside it, such as "old_...", would be the newest.
RESULT_FILES = f"{'[0-9]' * 8}_{'[0-9]' * 6}_*.md.json"
_LOCK_NAME = ".summing_up.lock"
_LOCK_TIMEOUT_S = 60.0

log = logging.getLogger(__name__)

# Inode, time of the last change and size of a result file.
ResultState = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class LoadedResult:
    """A result and its file."""

    path: Path
    content: ResultFile

    def unchanged(self) -> ResultFile:
        """Return the result. Raises UsageError: it was changed after it was written."""
        if self.content.is_edited:
            raise UsageError(
                f"{self.path} was changed after it was written: evaluate the answer again, or "
                "bring the file back"
            )
        return self.content


def answer_dir(eval_results_root: Path, agent_name: str, task_id: str, answer_name: str) -> Path:
    """Return the folder of one answer's evaluations (file-layouts.md)."""
    return eval_results_root / agent_name / task_id / answer_name.removesuffix(".md")


def answer_results_dir(
    eval_results_root: Path, agent_name: str, task_id: str, answer_name: str
) -> Path:
    """Return the folder of one answer's result files."""
    return answer_dir(eval_results_root, agent_name, task_id, answer_name) / "results"


def latest_result(folder: Path) -> LoadedResult | None:
    """Return the newest result of a ``results`` folder, ``None`` where there is none.

    A damaged newest file counts as no result, with a warning: an older one may have judged another
    answer or script.
    """
    newest = newest_result_name(folder)
    if newest is None:
        return None
    path = folder / newest
    return _loaded(path, result_state(path))


# One command needs a result several times: to reuse it, to sum up its task, to describe it.
@lru_cache(maxsize=64)
def _loaded(path: Path, state: ResultState) -> LoadedResult | None:
    try:
        document = parse_json(read_regular_file(path))
        if not isinstance(document, dict):
            raise ValueError("not an object")
    except (OSError, ValueError, RecursionError) as error:
        _warn_once(path, state, str(error))
        return None
    return LoadedResult(path, ResultFile.of(document))


def result_state(path: Path) -> ResultState:
    """Return values that change when a result file is replaced, zeros where there is none."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0, 0
    return status.st_ino, status.st_mtime_ns, status.st_size


@lru_cache(maxsize=4096)
def _warn_once(path: Path, _state: ResultState, error: str) -> None:
    log.warning("damaged result, counts as none path=%s error=%s", path, error)


def latest_results(
    eval_results_root: Path, agent_name: str
) -> Iterator[tuple[str, str, LoadedResult]]:
    """Yield task id, answer name and newest result of each answer, in natural order."""
    folders = (eval_results_root / agent_name).glob("*/*/results")
    for folder in sorted(folders, key=lambda folder: tuple(map(natural_key, folder.parts[-3:]))):
        result = latest_result(folder)
        if result is not None:
            yield folder.parent.parent.name, f"{folder.parent.name}.md", result


def write_result(folder: Path, answer_name: str, content: ResultFile) -> Path:
    """Write a result under a new stamp, beside the earlier ones, and return its path.

    Raises:
        ResultWriteError: the folder cannot be written, or the result is too large to be read again.
    """
    written = _result_bytes(content)
    if len(written) > MAX_JSON_BYTES:
        size_mb, limit_mb = (size // 1024**2 for size in (len(written), MAX_JSON_BYTES))
        raise ResultWriteError(
            f"the result would be a file of {size_mb} MB; the limit is {limit_mb} MB. Does the "
            "script return "
            "long texts or deep lists?"
        )
    while True:
        path = _free_path(folder, answer_name)
        with ResultWriteError.unable_to(f"write to {folder}"):
            try:
                write_new(path, written)
            except OSError:
                # If another process took this stamp, the next one is later.
                if not path.exists():
                    raise
            else:
                return path


def _result_bytes(content: ResultFile) -> bytes:
    text = json.dumps(content.document, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    # A judge's half surrogate becomes its JSON escape.
    return text.encode("utf-8", "backslashreplace")


def write_file(path: Path, content: str | bytes) -> None:
    """Write a whole file. Raises ResultWriteError: it cannot be written.

    The text names the folder.
    """
    with ResultWriteError.unable_to(f"write to {path.parent}"):
        write_whole(path, content)


@contextmanager
def writing_in(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder while its results are read and summed up; remove unfinished writes.

    Raises:
        ResultWriteError: the folder cannot be written, or another process keeps the lock.
    """
    lock = ProcessLock(folder / _LOCK_NAME)
    if not lock.take(_LOCK_TIMEOUT_S):
        raise ResultWriteError(
            f"cannot write to {folder}: another process has kept {_LOCK_NAME} for "
            f"{_LOCK_TIMEOUT_S:g} s; "
            "end it, and run the same command again"
        )
    try:
        remove_leftovers(folder)
        yield
    finally:
        lock.give_back()


def newest_result_name(folder: Path) -> str | None:
    """Return the name of a folder's newest result file, readable or not.

    ``None`` where there is none.
    """
    return max((path.name for path in folder.glob(RESULT_FILES)), default=None)


def _free_path(folder: Path, answer_name: str) -> Path:
    # The newest stamp counts, also after a second evaluation within a second, a corrected clock,
    # and the end of summer time.
    earlier = [
        moment for path in folder.glob(RESULT_FILES) if (moment := _moment_of(path)) is not None
    ]
    moment = max([datetime.now(), *(moment + timedelta(seconds=1) for moment in earlier)])
    return folder / f"{moment.strftime(_STAMP_FORMAT)}_{answer_name}.json"


def _moment_of(path: Path) -> datetime | None:
    try:
        return datetime.strptime(path.name[:_STAMP_LENGTH], _STAMP_FORMAT)
    except ValueError:
        return None
