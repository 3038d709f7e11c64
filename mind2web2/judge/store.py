"""The SQLite file of judgments."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple, Self, TypeVar

from pydantic import ValidationError

from mind2web2.errors import JudgmentStoreError
from mind2web2.judge.judgment import Judgment, problem_of
from mind2web2.judge.record import JudgeIdentity
from mind2web2.utils.aio import ThreadQueue
from mind2web2.utils.machine import network_file_system
from mind2web2.utils.shown_text import one_line

log = logging.getLogger(__name__)


_DAMAGES = frozenset({sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_ROOM = "make room on the disk, and run the same command again"
_PERMISSION = "make file and folder writable, and run the same command again"
# By SQLite's primary result codes.
_CURES = {
    sqlite3.SQLITE_FULL: _ROOM,
    sqlite3.SQLITE_IOERR: _ROOM,
    sqlite3.SQLITE_READONLY: _PERMISSION,
    sqlite3.SQLITE_CANTOPEN: _PERMISSION,
}
# The cures for a damaged file: the agent's own store, and a file to replay.
OWN_STORE = (
    "move the file away; judgments that are missing then are requested, and paid for, again, "
    "unless an export is imported first (mind2web2 import judgments)"
)
NAMED_FILE = "name another file with --judgments, such as an export, or evaluate with a judge"


def stores_of_others(results_root: Path, agent_name: str) -> list[Path]:
    """Return the stores of the other agents below a results root."""
    paths = results_root.glob(f"[!.]*/{STORE_NAME}")
    return sorted(path for path in paths if path.parent.name != agent_name and path.is_file())


class ForeignContentError(sqlite3.DatabaseError):
    """The file is an SQLite database, but not a store of judgments."""


def store_error(path: Path | None, error: Exception, damage_cure: str) -> JudgmentStoreError:
    """Return the error to raise for a failure of SQLite or for damaged content, with its cure."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    is_damage = isinstance(error, (*_UNSOUND, ForeignContentError)) or code in _DAMAGES
    cure = damage_cure if is_damage else _CURES.get(code, "run the same command again")
    # SQLite quotes content that it cannot read.
    problem = one_line(problem_of(error) if isinstance(error, ValidationError) else str(error))
    ours = JudgmentStoreError(f"judgments in {path or 'memory'} cannot be used: {problem}; {cure}")
    ours.__cause__ = error
    return ours


def refuse_programs(connection: sqlite3.Connection) -> None:
    """Raise ``ForeignContentError`` for views and triggers: they could run for any time."""
    programs = connection.execute(
        "SELECT name FROM sqlite_master WHERE type IN ('view', 'trigger')"
    ).fetchone()
    if programs is not None:
        raise ForeignContentError(f"it holds {programs[0]!r}, which is not a table of judgments")


STORE_NAME = "judgments.sqlite3"
# The replies to a question, the newest first; an endpoint of ``None`` stands for any. Files of
# earlier versions have other outcomes, which answer no question.
OF_QUESTION = (
    "WHERE key = ? AND endpoint = coalesce(?, endpoint) AND "
    "outcome IN ('reply', 'declined', 'too_long') ORDER BY created DESC, endpoint"
)
_BATCH = 1000
# Long enough for any other process to finish a write; writes take well under a millisecond.
_BUSY_TIMEOUT_S = 30.0
# Errors from damaged content, beside SQLite's own, and from numbers that SQLite cannot hold.
_UNSOUND = (ValidationError, UnicodeDecodeError, OverflowError)
# Columns that files of version 0.1.0 lack.
_LATER_COLUMNS = (
    "batch",
    "cost_usd",
    "extra_body",
    "images",
    "max_images",
    "reused_from",
)

Value = TypeVar("Value")


class _Lookup(NamedTuple):
    """A request for a stored judgment."""

    key: str
    endpoint: str | None


class _Keep(NamedTuple):
    """A judgment to store unless there is another one than that it replaces."""

    judgment: Judgment
    instead_of: Judgment | None


_Work = _Lookup | _Keep | Judgment
_Outcome = Judgment | BaseException | None
_COLUMNS = tuple(Judgment.model_fields)
_row_of = attrgetter(*_COLUMNS)


class JudgmentStore:
    """Judgments in an SQLite file, written as they arrive; safe to use from several processes.

    Args:
        path: the file, made when missing; ``None`` keeps everything in memory.
        damage_cure: what an error tells the user to do about a damaged file.
        most: judgments to keep, about; older ones are dropped. ``None`` keeps all.
    """

    def __init__(
        self,
        path: Path | None,
        damage_cure: str = OWN_STORE,
        *,
        most: int | None = None,
    ) -> None:
        self.path = path
        self._damage_cure = damage_cure
        self._most = most
        self._puts = 0
        # One thread owns the connection, so that neither reads nor writes block the event loop.
        self._queue = ThreadQueue("judgments", self._do_together)
        try:
            self._connection = self._in_thread(self._open)
        except BaseException:
            self._queue.close()
            raise

    async def get(self, key: str, endpoint: str | None = None) -> Judgment | None:
        """Return the judgment with this key, the newest where several endpoints have one."""
        return await self._queue.send(_Lookup(key, endpoint))

    async def put(self, judgment: Judgment) -> None:
        """Store a judgment, in place of an older one with the same key and endpoint."""
        await self._queue.send(judgment)

    async def keep(self, judgment: Judgment, instead_of: Judgment | None = None) -> Judgment:
        """Store a judgment and return the stored one.

        If there is one with its key and endpoint already, that one stays.

        Two runs may get different replies to one question at the same time. The scores of both rest
        on the first, since a replay has only one.

        Args:
            instead_of: was read and does not count; it is replaced, if it is still the stored one.
        """
        return await self._queue.send(_Keep(judgment, instead_of)) or judgment

    def all(self) -> list[Judgment]:
        """Return every judgment, in a fixed order."""
        return self._in_thread(
            lambda: list(self._read("ORDER BY task_id, answer_name, created, key, endpoint", ()))
        )

    def batches(self) -> Iterator[list[Judgment]]:
        """Yield all judgments, some at a time: a file may hold millions."""
        rows = self._read("", ())
        while batch := self._in_thread(lambda: list(islice(rows, _BATCH))):
            yield batch

    def same_questions(self, judgments: Iterable[Judgment]) -> list[Judgment]:
        """Return the stored judgments that have the keys and endpoints of these."""
        asked = [(each.key, each.endpoint) for each in judgments]
        stored = self._in_thread(lambda: [self._select(*question) for question in asked])
        return list(filter(None, stored))

    def of_task(self, task_id: str) -> list[Judgment]:
        """Return the judgments on the answers to a task."""
        return self._in_thread(lambda: list(self._read("WHERE task_id = ?", (task_id,))))

    def identities(self) -> list[JudgeIdentity]:
        """Return the judges that have judgments here."""
        names = ", ".join(JudgeIdentity.model_fields)
        rows = self._in_thread(
            lambda: self._connection.execute(
                f"SELECT DISTINCT {names} FROM judgments WHERE purpose <> 'service' ORDER BY "
                f"{names}"
            ).fetchall()
        )
        return [
            JudgeIdentity.model_validate(dict(zip(JudgeIdentity.model_fields, row, strict=True)))
            for row in rows
        ]

    def texts_of_task(self, task_id: str) -> list[str]:
        """Return the judgments on the answers to a task, each as JSON."""
        return [each.model_dump_json() for each in self.of_task(task_id)]

    def add_texts(self, judgments: Iterable[str]) -> None:
        """Store judgments that are JSON, as ``add``."""
        self.add(map(Judgment.model_validate_json, judgments))

    def add(self, judgments: Iterable[Judgment]) -> int:
        """Store many judgments, keep those already stored, and return how many were new."""
        wanted = list(judgments)
        return self._in_thread(lambda: self._insert_new(wanted))

    def close(self) -> None:
        """Close the file."""
        self._in_thread(self._connection.close)
        self._queue.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _in_thread(self, work: Callable[[], Value]) -> Value:
        return self._queue.call(partial(self._translate_errors, work))

    def _do_together(self, works: Sequence[_Work]) -> list[_Outcome]:
        """Do all in one transaction, or each in its own where one of them fails."""
        try:
            with self._transaction(works):
                return [self._do(work) for work in works]
        except (sqlite3.Error, ValueError, OverflowError) as error:
            if len(works) == 1:
                return [self._as_ours(error)]
        return [outcome for work in works for outcome in self._do_together([work])]

    def _do(self, work: _Work) -> Judgment | None:
        if isinstance(work, _Lookup):
            return self._select(work.key, work.endpoint)
        if isinstance(work, _Keep):
            stored = self._select(work.judgment.key, work.judgment.endpoint)
            if stored is not None and stored != work.instead_of:
                return stored
            work = work.judgment
        self._write([work], "INSERT OR REPLACE")
        self._puts += 1
        # Each time, a fifth of them goes: the search takes a while.
        if self._most is not None and self._puts % max(self._most // 5, 1) == 0:
            self._connection.execute(
                "DELETE FROM judgments WHERE created < "
                "(SELECT created FROM judgments ORDER BY created DESC LIMIT 1 OFFSET ?)",
                (self._most - self._most // 5,),
            )
        return work

    @contextmanager
    def _transaction(self, works: Sequence[_Work]) -> Iterator[None]:
        if set(map(type, works)) == {_Lookup}:
            yield
            return
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            yield

    def _translate_errors(self, work: Callable[[], Value]) -> Value:
        try:
            return work()
        except (sqlite3.DatabaseError, *_UNSOUND) as error:
            raise self._as_ours(error) from error

    def _as_ours(self, error: Exception) -> Exception:
        if isinstance(error, (sqlite3.DatabaseError, *_UNSOUND)):
            return store_error(self.path, error, self._damage_cure)
        return error

    def _open(self) -> sqlite3.Connection:
        if self.path is not None:
            with JudgmentStoreError.unable_to(f"make folder {self.path.parent}"):
                self.path.parent.mkdir(parents=True, exist_ok=True)
            if kind := network_file_system(self.path.parent):
                raise JudgmentStoreError(
                    f"judgments cannot be stored in {self.path.parent}, which is on a network file "
                    f"system ({kind}): SQLite's log needs memory that all writers share. Put "
                    "results on a disk of this machine (--eval_results_root); --shard and "
                    "mind2web2 import results divide the work among machines"
                )
        connection = sqlite3.connect(
            self.path or ":memory:",
            timeout=_BUSY_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            _prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _select(self, key: str, endpoint: str | None) -> Judgment | None:
        return next(self._read(OF_QUESTION, (key, endpoint)), None)

    def _read(self, clause: str, parameters: tuple[str | None, ...]) -> Iterator[Judgment]:
        rows = self._connection.execute(
            f"SELECT {', '.join(_COLUMNS)} FROM judgments {clause}", parameters
        )
        for row in rows:
            yield Judgment.model_validate(dict(zip(_COLUMNS, row, strict=True)))

    def _insert_new(self, judgments: list[Judgment]) -> int:
        before = self._connection.total_changes
        with self._transaction(judgments):
            self._write(judgments, "INSERT OR IGNORE")
        return self._connection.total_changes - before

    def _write(self, judgments: Iterable[Judgment], verb: str) -> None:
        marks = ", ".join("?" * len(_COLUMNS))
        self._connection.executemany(
            f"{verb} INTO judgments ({', '.join(_COLUMNS)}) VALUES ({marks})",
            map(_row_of, judgments),
        )


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    # SQLite does not apply the busy timeout to this switch.
    give_up_at_s = time.monotonic() + _BUSY_TIMEOUT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname != "SQLITE_BUSY" or time.monotonic() >= give_up_at_s:
                raise
        time.sleep(0.05)


def _prepare(connection: sqlite3.Connection) -> None:
    """Set up an open file for several writers, with a table of judgments."""
    _switch_to_wal(connection)
    connection.execute("PRAGMA synchronous=NORMAL")
    refuse_programs(connection)
    connection.execute(
        f"CREATE TABLE IF NOT EXISTS judgments ({', '.join(_COLUMNS)}, PRIMARY KEY (key, "
        "endpoint)) WITHOUT ROWID"
    )
    connection.execute("CREATE INDEX IF NOT EXISTS judgments_by_task ON judgments (task_id)")
    _add_later_columns(connection)


def _add_later_columns(connection: sqlite3.Connection) -> None:
    """Add the columns that a file of an earlier version lacks."""
    if not (columns := missing_columns(connection)):
        return
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        # Another process may have added them since.
        for name in columns & missing_columns(connection):
            connection.execute(f"ALTER TABLE judgments ADD COLUMN {name}")


def missing_columns(connection: sqlite3.Connection) -> set[str]:
    """Return the columns that a file of an earlier version lacks."""
    present = {row[1] for row in connection.execute("PRAGMA table_info(judgments)")}
    # A table without a key is another program's.
    return set(_LATER_COLUMNS) - present if "key" in present else set()
