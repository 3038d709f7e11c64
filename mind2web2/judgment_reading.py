"""Looking judgments up in files that are not to be changed, or even opened for writing."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

from pydantic import TypeAdapter, ValidationError

from mind2web2.errors import JudgmentStoreError, UsageError
from mind2web2.judgment import JudgeIdentity
from mind2web2.judgment_files import EXPORT_SUFFIX, read_judgments
from mind2web2.judgments import LATER_COLUMNS
from mind2web2.llm_client.failures import one_line
from mind2web2.store_cures import COMPARING, StoreUse, refuse_programs, store_cure

# SQLite takes at least this many parameters.
_KEYS_AT_ONCE = 500

_SERVED = """
    SELECT served_model FROM judgments
    WHERE purpose <> 'gate' AND served_model IS NOT NULL
          AND model = ? AND temperature IS ? AND reasoning_effort IS ? AND endpoint = ?
    ORDER BY created DESC LIMIT 1
"""


class StoredReply(NamedTuple):
    """What a judge said to one question, what the question was about and what it took (``Judgment``)."""

    key: str
    endpoint: str
    model: str
    outcome: str
    text: str
    created: str
    purpose: str
    claim: str | None
    page: str | None
    trial: int
    served_model: str | None
    system_fingerprint: str | None
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    attempts: int
    cost_usd: float | None


_REPLY = TypeAdapter(StoredReply)


class JudgmentLookup(Protocol):
    """Where replies are looked up."""

    def replies(self, keys: Iterable[str]) -> dict[str, list[StoredReply]]:
        """Return the replies with these keys, one a server; keys that are not stored are left out."""


class StoreLookup:
    """Looks replies up in a store, which may be in use.

    Args:
        path: the store's file, which must exist.
        use: what it is read for, by which errors say what to do.
    """

    def __init__(self, path: Path, use: StoreUse = COMPARING) -> None:
        self._path = path
        self._use = use

    def replies(self, keys: Iterable[str]) -> dict[str, list[StoredReply]]:
        """Return the replies with these keys, as ``JudgmentLookup.replies`` promises.

        Raises:
            JudgmentStoreError: the file is damaged or no store.
        """
        wanted = sorted(set(keys))
        found: dict[str, list[StoredReply]] = {}
        with reading(self._path, self._use) as connection:
            columns = _columns(connection)
            for start in range(0, len(wanted), _KEYS_AT_ONCE):
                some = wanted[start : start + _KEYS_AT_ONCE]
                marks = ", ".join("?" * len(some))
                rows = connection.execute(f"SELECT {columns} FROM judgments WHERE key IN ({marks})", some)
                for row in map(_REPLY.validate_python, rows):
                    found.setdefault(row.key, []).append(row)
        return found


def _columns(connection: sqlite3.Connection) -> str:
    """Return what is selected of a store, of which an earlier version's lacks a column."""
    there = {row[1] for row in connection.execute("PRAGMA table_info(judgments)")}
    return ", ".join(
        f"NULL AS {name}" if name in LATER_COLUMNS and name not in there else name
        for name in StoredReply._fields
    )


class ExportLookup:
    """Looks replies up in an exported ``.jsonl`` file.

    Raises:
        UsageError: the file cannot be read, or one of its lines is not a judgment.
    """

    def __init__(self, path: Path) -> None:
        self._replies: dict[str, list[StoredReply]] = {}
        for judgment in read_judgments(path):
            reply = StoredReply(*(getattr(judgment, name) for name in StoredReply._fields))
            self._replies.setdefault(reply.key, []).append(reply)

    def replies(self, keys: Iterable[str]) -> dict[str, list[StoredReply]]:
        """Return the replies with these keys, as ``JudgmentLookup.replies`` promises."""
        return {key: self._replies[key] for key in set(keys) & self._replies.keys()}


def lookup_in(path: Path, use: StoreUse) -> JudgmentLookup:
    """Return where replies are looked up: a store, or an exported ``.jsonl`` file.

    Raises:
        UsageError: there is no such file, or it holds no judgments.
    """
    if not path.is_file():
        raise UsageError(f"no judgments at {path}: name a judgments.sqlite3 or an exported .jsonl file")
    lookup: JudgmentLookup = ExportLookup(path) if path.suffix == EXPORT_SUFFIX else StoreLookup(path, use)
    try:
        lookup.replies([""])
    except JudgmentStoreError as error:
        raise UsageError(str(error)) from error
    return lookup


def latest_served_model(path: Path, judge: JudgeIdentity) -> str | None:
    """Return the model that a judge was last served as, ``None`` where that is not known.

    Raises:
        JudgmentStoreError: the file is damaged or no store.
    """
    if not path.is_file():
        return None
    asked = (judge.model, judge.temperature, judge.reasoning_effort, judge.endpoint)
    with reading(path, COMPARING) as connection:
        row = connection.execute(_SERVED, asked).fetchone()
    return None if row is None else str(row[0])


@contextmanager
def reading(path: Path, use: StoreUse) -> Iterator[sqlite3.Connection]:
    """Open a store without leaving anything beside it.

    Args:
        use: what it is read for, by which errors say what to do.

    Raises:
        JudgmentStoreError: the file is damaged or no store.
    """
    # Even a reader makes files beside the store, unless it is told that nobody writes; a log beside it
    # shows that somebody does, or was stopped while at it.
    is_in_use = path.with_name(f"{path.name}-wal").exists()
    mode = "mode=ro" if is_in_use else "immutable=1"
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True)) as connection:
            refuse_programs(connection)
            yield connection
    except (sqlite3.DatabaseError, UnicodeDecodeError, ValidationError) as error:
        said = f"judgments in {path} cannot be {use.done}: {one_line(str(error))}"
        raise JudgmentStoreError(f"{said}{store_cure(error, use)}") from error
