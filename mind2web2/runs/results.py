"""Result files: where they are, which one counts, how they are written, and the files beside them.

``latest_results`` yields the results of an agent, ``latest_result`` that of one answer; ``reader`` reads
their content. ``usage.json`` beside them has the judge's use in all runs.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mind2web2.errors import PublishedElsewhereError, ResultWriteError, StorageError
from mind2web2.storage.mirror import mirror
from mind2web2.utils.files import read_regular_file, remove_leftovers, write_new, write_whole
from mind2web2.utils.names import natural_key
from mind2web2.utils.process_lock import ProcessLock

if TYPE_CHECKING:
    from mind2web2.judge.caching import CachingJudge

EDITED = "it was changed after it was written: its content does not match its checksum"

_STAMP_FORMAT = "%Y%m%d_%H%M%S"
_STAMP_LENGTH = len("YYYYMMDD_HHMMSS")
_LOCK_NAME = ".summing_up.lock"
_LOCK_TIMEOUT_S = 60.0

_MOST_DERIVATIONS = 20
T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LoadedResult:
    """A result file and its content."""

    path: Path
    content: dict[str, Any]


def answer_dir(eval_results_root: Path, agent_name: str, task_id: str, answer_name: str) -> Path:
    """Return the folder of one answer's evaluations (file-layouts.md)."""
    return eval_results_root / agent_name / task_id / answer_name.removesuffix(".md")


def answer_results_dir(eval_results_root: Path, agent_name: str, task_id: str, answer_name: str) -> Path:
    """Return the folder of one answer's result files."""
    return answer_dir(eval_results_root, agent_name, task_id, answer_name) / "results"


def latest_result(folder: Path) -> LoadedResult | None:
    """Return the newest result of a ``results`` folder, ``None`` where there is none.

    A damaged newest file counts as no result, with a warning: an older one may have judged another answer or
    script.
    """
    newest = newest_result_name(folder)
    return None if newest is None else _loaded(folder / newest)


def loaded_results(folder: Path) -> Iterator[LoadedResult]:
    """Yield all readable results of a folder, the newest first."""
    # The stamp leads the name.
    for path in sorted(folder.glob("*.md.json"), key=lambda path: path.name, reverse=True):
        if (found := _loaded(path)) is not None:
            yield found


def _loaded(path: Path) -> LoadedResult | None:
    try:
        content = json.loads(read_regular_file(path).decode())
        if not isinstance(content, dict):
            raise ValueError("not an object")
    except (OSError, ValueError, RecursionError) as error:
        _warn_once(path.absolute(), path, _changed_ns(path), str(error))
        return None
    return LoadedResult(path, content)


def _changed_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=4096)
def _warn_once(_place: Path, path: Path, _changed_ns: int, error: str) -> None:
    # One command reads a result several times.
    log.warning("damaged result, counts as none path=%s error=%s", path, error)


def latest_results(eval_results_root: Path, agent_name: str) -> Iterator[tuple[str, str, LoadedResult]]:
    """Yield task id, answer name and newest result of each of an agent's answers, in natural order."""
    folders = (eval_results_root / agent_name).glob("*/*/results")
    for folder in sorted(folders, key=lambda folder: tuple(map(natural_key, folder.parts[-3:]))):
        found = latest_result(folder)
        if found is not None:
            yield folder.parent.parent.name, f"{folder.parent.name}.md", found


def write_result(folder: Path, answer_name: str, content: dict[str, Any]) -> Path:
    """Write a result under a new stamp, beside the earlier ones, publish it, and return its path.

    Raises:
        StorageError: the folder's object store fails; the next run publishes the result.
        ResultWriteError: the folder cannot be written.
    """
    written = _result_bytes(content)
    while True:
        path = _free_path(folder, answer_name)
        try:
            write_new(path, written)
            mirror(path).push(path)
        except PublishedElsewhereError:
            path.unlink()
            mirror(folder).pull(folder)
        except OSError as error:
            # If another process took this stamp, the next one is later.
            if not path.exists():
                raise _not_writable(folder, error) from error
        else:
            return path


def replace_result(path: Path, content: dict[str, Any]) -> None:
    """Replace the content of a result file. Raises ResultWriteError: it cannot be written."""
    write_file(path, _result_bytes(content))


def _result_bytes(content: dict[str, Any]) -> bytes:
    text = json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    # A judge's half surrogate becomes its JSON escape.
    return text.encode("utf-8", "backslashreplace")


def write_file(path: Path, content: str | bytes) -> None:
    """Write a whole file. Raises ResultWriteError: it cannot be written; the text names the folder."""
    try:
        write_whole(path, content)
    except OSError as error:
        raise _not_writable(path.parent, error) from error


@contextmanager
def writing_in(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder while its results are read and summed up; remove unfinished writes.

    Raises:
        ResultWriteError: the folder cannot be written, or another process keeps the lock.
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


def published(place: Path, write: Callable[[], T]) -> T:
    """Return what ``write`` returns once the files that it derives from a folder's results are published.

    In an object store they are derived again where another machine has published its own since.

    Args:
        place: the folder, or a file in it.
    """
    for _ in range(_MOST_DERIVATIONS):
        mirror(place).pull(place)
        written = write()
        with suppress(PublishedElsewhereError):
            mirror(place).push(place)
            return written
    raise StorageError(f"other machines change {place} too often: run the same command again")


def newest_result_name(folder: Path) -> str | None:
    """Return the name of a folder's newest result file, readable or not; ``None`` where there is none."""
    return max((path.name for path in folder.glob("*.md.json")), default=None)


def _not_writable(folder: Path, error: OSError) -> ResultWriteError:
    return ResultWriteError(f"cannot write to {folder}: {error.strerror or error}")


def _free_path(folder: Path, answer_name: str) -> Path:
    # The newest stamp counts, also after a second evaluation within a second, a corrected clock, and the
    # end of summer time.
    earlier = [moment for path in folder.glob("*.md.json") if (moment := _moment_of(path)) is not None]
    moment = max([datetime.now(), *(moment + timedelta(seconds=1) for moment in earlier)])
    return folder / f"{moment.strftime(_STAMP_FORMAT)}_{answer_name}.json"


def _moment_of(path: Path) -> datetime | None:
    try:
        return datetime.strptime(path.name[:_STAMP_LENGTH], _STAMP_FORMAT)
    except ValueError:
        return None


def with_checksum(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result with the checksum of its content, which shows accidents; it is no signature."""
    return {**result, "run": {**result["run"], "content_sha256": content_sha256(result)}}


def content_sha256(result: Mapping[str, Any]) -> str:
    """Return the digest of a result's content without its checksum, as read from its file."""
    read = json.loads(json.dumps(result))
    if isinstance(read.get("run"), dict):
        read["run"].pop("content_sha256", None)
    return hashlib.sha256(json.dumps(read, sort_keys=True).encode()).hexdigest()


def same_but_run(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Tell whether two results differ only in when and how fast they were made."""
    digests = {content_sha256({**each, "run": None}) for each in (one, other)}
    return len(digests) == 1


def has_checksum(result: Mapping[str, Any]) -> bool:
    """Tell whether a result has a checksum; those of other tools have none."""
    return _checksum(result) is not None


def is_edited(result: Mapping[str, Any]) -> bool:
    """Tell whether a result changed after it was written, as far as its checksum tells.

    A result that records library versions was written with a checksum: without one it was changed as well.
    """
    checksum = _checksum(result)
    if checksum is not None:
        return checksum != content_sha256(result)
    made_from = result.get("provenance")
    return isinstance(made_from, dict) and bool(made_from.get("versions"))


def _checksum(result: Mapping[str, Any]) -> object:
    run = result.get("run")
    return run.get("content_sha256") if isinstance(run, dict) else None


log = logging.getLogger(__name__)

PROGRESS_NAME = "progress.json"
USAGE_NAME = "usage.json"
# One line of totals each, so that the file stays small however often an agent is evaluated.
_RUNS_KEPT = 200


def write_usage(folder: Path, judge: CachingJudge, shard: str | None = None) -> None:
    """Add the run to ``usage.json``: the newest run by task, earlier ones as totals.

    Args:
        shard: the shard that the run judged, which tells apart runs of several machines.

    Raises:
        ResultWriteError: the file cannot be written.
    """
    if not judge.usage.tasks:
        return
    run = {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "judge_model": judge.settings.model,
        "endpoint": judge.endpoint,
        **({} if shard is None else {"shard": shard}),
        **judge.usage.total().as_json(),
        "sent_again": dict(judge.usage.retries.reasons),
    }
    tasks = {task_id: judge.usage.tasks[task_id].as_json() for task_id in sorted(judge.usage.tasks)}
    with writing_in(folder):
        runs = [*_usage(folder)["runs"], run][-_RUNS_KEPT:]
        _write_usage(folder, {"newest_run": {**run, "tasks": tasks}, "runs": runs})


def merge_usage(source: Path, into: Path) -> None:
    """Add the runs of another ``usage.json``, each one once; all are kept.

    Raises:
        ResultWriteError: the file cannot be written.
    """
    theirs = _usage(source)
    if not theirs["runs"]:
        return
    with writing_in(into):
        ours = _usage(into)
        new = [run for run in theirs["runs"] if run not in ours["runs"]]
        newest = max((ours.get("newest_run", {}), theirs.get("newest_run", {})), key=_created)
        runs = sorted([*ours["runs"], *new], key=_created)
        _write_usage(into, {"newest_run": newest, "runs": runs})


def _created(run: Any) -> str:
    return str(run.get("created", "")) if isinstance(run, dict) else ""


def _write_usage(folder: Path, content: Mapping[str, Any]) -> None:
    write_file(folder / USAGE_NAME, json.dumps(content, ensure_ascii=True, indent=2) + "\n")


def _usage(folder: Path) -> dict[str, Any]:
    """Return the content of ``usage.json``, without runs where there is none or it is damaged."""
    path = folder / USAGE_NAME
    try:
        content = json.loads(read_regular_file(path))
        if not isinstance(content["runs"], list):
            raise TypeError("its runs are no list")
    except FileNotFoundError:
        return {"runs": []}
    except (OSError, ValueError, RecursionError, LookupError, TypeError) as error:
        log.warning(
            "%s is damaged and is replaced: the judge use of earlier runs is lost, nothing else (%s)",
            path,
            error,
        )
        return {"runs": []}
    return dict(content)
