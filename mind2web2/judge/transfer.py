"""Judgments in files: exports, stores to replay, and stores that are only read."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from pydantic import ValidationError

from mind2web2.errors import JudgmentStoreError, UsageError
from mind2web2.judge.judgment import Judgment, problem_of
from mind2web2.judge.record import JudgmentSource
from mind2web2.judge.store import (
    NAMED_FILE,
    OWN_STORE,
    STORE_NAME,
    JudgmentStore,
    refuse_programs,
    store_error,
)
from mind2web2.utils.files import remove_leftovers, write_whole

EXPORT_SUFFIX = ".jsonl"


def source_of(path: Path) -> JudgmentSource:
    """Return how results name a file of judgments that they were replayed from."""
    absolute, here = path.resolve(), Path.cwd()
    shown = absolute.relative_to(here) if absolute.is_relative_to(here) else absolute
    sha256 = None
    if path.suffix == EXPORT_SUFFIX:  # a store's bytes change without its judgments
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return JudgmentSource(path=shown.as_posix(), sha256=sha256)


def export_judgments(store: JudgmentStore, path: Path) -> list[str]:
    """Write every judgment as a line of JSON and return their keys."""
    judgments = store.all()
    write_whole(
        path,
        "".join(judgment.model_dump_json(exclude_none=True) + "\n" for judgment in judgments),
    )
    # Files of an export that was killed.
    remove_leftovers(path.parent)
    return [judgment.key for judgment in judgments]


def judgments_named(content: object) -> set[str]:
    """Return the keys of the judgments that a result names."""
    keys: set[str] = set()
    stack = [content]
    while stack:
        part = stack.pop()
        if isinstance(part, list):
            stack += part
        elif isinstance(part, dict):
            if isinstance(part.get("judgment"), str):
                keys.add(part["judgment"])
            stack += part.values()
    return keys


def read_judgments(path: Path) -> Iterator[Judgment]:
    """Yield the judgments of an exported file.

    Raises:
        UsageError: the file cannot be read, or a line is not a judgment or contradicts another.
    """
    try:
        with UsageError.unable_to(f"read judgments from {path}"):
            text = path.read_text(encoding="utf-8").rstrip("\n")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{path} is not a {EXPORT_SUFFIX} file: a file of judgments is one that "
            "`mind2web2 export AGENT --judgments FILE` wrote"
        ) from error
    # A reply may hold other line separators of Unicode, at which splitlines() would split too.
    replies: dict[tuple[str, str], tuple[int, str]] = {}
    for number, line in enumerate(text.split("\n") if text else (), start=1):
        try:
            judgment = Judgment.model_validate_json(line)
        except ValidationError as error:
            raise UsageError(f"{path}:{number} is not a judgment: {problem_of(error)}") from error
        question = (judgment.key, judgment.endpoint)
        first, reply = replies.setdefault(question, (number, judgment.text))
        if reply != judgment.text:
            raise UsageError(
                f"{path}: lines {first} and {number} hold two replies to one question: delete one"
            )
        yield judgment


def open_for_replay(path: Path) -> JudgmentStore:
    """Open stored judgments, or an exported ``.jsonl`` file, to answer from.

    Raises:
        UsageError: there is no such file, or it holds no judgments.
    """
    if not path.is_file():
        raise UsageError(
            f"no judgments at {path}; evaluate with a judge first, or name a file with --judgments"
        )
    if path.suffix == EXPORT_SUFFIX:
        judgments = list(read_judgments(path))
        store = JudgmentStore(None)
        store.add(judgments)
        return store
    try:
        return JudgmentStore(path, NAMED_FILE)
    except JudgmentStoreError as error:
        raise UsageError(str(error)) from error


def copied_store(path: Path, copy: Path, damage_cure: str = NAMED_FILE) -> Path:
    """Copy a store of judgments, which may be in use, and return the copy.

    An exported file stays in place.

    Raises:
        JudgmentStoreError: the file is damaged or no store.
    """
    if path.suffix == EXPORT_SUFFIX:
        return path
    with reading(path, damage_cure) as source, closing(sqlite3.connect(copy)) as target:
        source.execute("SELECT count(key || text) FROM judgments")
        source.backup(target)
    return copy


def merged_store(files: Iterable[Path], folder: Path) -> JudgmentStore:
    """Return the judgments of several files together, in a folder of ours."""
    merged = JudgmentStore(folder / STORE_NAME)
    for number, path in enumerate(files):
        copy = copied_store(path, folder / f"{number}.{STORE_NAME}")
        with closing(open_for_replay(copy)) as store:
            for batch in store.batches():
                merged.add(batch)
    return merged


@contextmanager
def reading(path: Path, damage_cure: str = OWN_STORE) -> Iterator[sqlite3.Connection]:
    """Open a store for reading only, without creating files beside it.

    Raises:
        JudgmentStoreError: the file is damaged or no store.
    """
    # SQLite creates files beside the store even for a reader, unless the store is declared
    # immutable. A log beside it shows a writer, running or killed.
    is_in_use = path.with_name(f"{path.name}-wal").exists()
    mode = "mode=ro" if is_in_use else "immutable=1"
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True)) as connection:
            refuse_programs(connection)
            yield connection
    except (sqlite3.DatabaseError, UnicodeDecodeError, ValidationError) as error:
        raise store_error(path, error, damage_cure) from error
