"""The store of judge replies: what was asked, by whom, and what came back."""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from pydantic import ValidationError

from mind2web2.errors import JudgmentStoreError
from mind2web2.judge.records import JudgeIdentity, Judgment, problem_of
from mind2web2.llm_client.chat import ImageLimit
from mind2web2.llm_client.failures import one_line
from mind2web2.utils.aio import Failed, GatheredWork

# By SQLite's primary result codes.
_CURES = {
    sqlite3.SQLITE_FULL: "; make room there, and run the same command again",
    sqlite3.SQLITE_IOERR: "; see that there is room, and run the same command again",
    sqlite3.SQLITE_READONLY: "; make file and folder writable, and run the same command again",
    sqlite3.SQLITE_CANTOPEN: "; make file and folder writable, and run the same command again",
}
_DAMAGES = frozenset({sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


class StoreUse(NamedTuple):
    """What somebody wants with a store of judgments.

    Args:
        done: what happens to judgments, in a word.
        if_damaged: what to do about a file that holds no judgments, or no longer.
    """

    done: str
    if_damaged: str


EVALUATING = StoreUse(
    "kept",
    "move the file away, and run the same command again: results stay, and what they lack is asked, and paid "
    "for, anew, unless an export is brought in first (mind2web2 judgments import)",
)
ESTIMATING = EVALUATING._replace(done="read")
REPLAYING = StoreUse(
    "read", "name another file with --judgments, such as an export, or evaluate with a judge"
)
EXPORTING = StoreUse(
    "read",
    "move the file away, and bring an earlier export in (mind2web2 judgments import), or have all asked, and "
    "paid for, anew (mind2web2 evaluate --overwrite)",
)
IMPORTING = StoreUse("kept", "move the file away, and run the same command again")
COMPARING = StoreUse("read", "put a sound copy in its place, or move the file away")
CHECKING_OWN = StoreUse(
    "read",
    "name another file with --judgments, such as an export, or move this one away, and run the same command "
    "again: it tells what can be done without",
)
CHECKING_NAMED = StoreUse("read", "name another file with --judgments, or none for the agent's own store")


class ForeignContentError(sqlite3.DatabaseError):
    """A file is an SQLite database, and holds what no store of judgments does."""


def store_cure(error: Exception, use: StoreUse) -> str:
    """Return what to do about an error of a store, to be put behind it; nothing where there is no cure."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    is_damage = isinstance(error, ValidationError | UnicodeDecodeError | ForeignContentError)
    return f"; {use.if_damaged}" if is_damage or code in _DAMAGES else _CURES.get(code, "")


def refuse_programs(connection: sqlite3.Connection) -> None:
    """Refuse a file with views or triggers: they would run for as long as whoever made it pleases.

    Raises:
        sqlite3.DatabaseError: it has some, or is damaged.
    """
    programs = connection.execute(
        "SELECT name FROM sqlite_master WHERE type IN ('view', 'trigger')"
    ).fetchone()
    if programs is not None:
        raise ForeignContentError(f"it holds {programs[0]!r}, which is no table of judgments")


FILE_NAME = "judgments.sqlite3"
# Long enough for any other process to finish a write; writes take well under a millisecond.
_BUSY_TIMEOUT_S = 30.0
# What a damaged file brings beside SQLite's own errors, or a server that reports numbers beyond all measure.
_UNSOUND = (ValidationError, UnicodeDecodeError, OverflowError)
# What files of the first version do not have.
LATER_COLUMNS = ("batch", "cost_usd", "max_images")

Value = TypeVar("Value")


class _Lookup(NamedTuple):
    """A judgment that is looked for."""

    key: str
    endpoint: str | None


# What the store's thread is given to do: to find a judgment, or to keep one.
_Work = _Lookup | Judgment

_row_of = attrgetter(*Judgment.model_fields)


class JudgmentStore:
    """Judgments in an SQLite file, written as they arrive; safe to use from several processes.

    Args:
        path: the file, made when missing; ``None`` keeps everything in memory.
        use: what it is opened for, by which errors say what to do.
    """

    _COLUMNS = tuple(Judgment.model_fields)

    def __init__(self, path: Path | None, use: StoreUse = EVALUATING) -> None:
        self.path = path
        self._use = use
        # One thread owns the connection, so that neither reads nor writes block the event loop.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="judgments")
        # Hundreds of requests a second share transactions: each still waits until its own is committed.
        self._work = GatheredWork(self._thread, self._done_together)
        try:
            self._connection = self._in_thread(self._open)
        except BaseException:
            self._thread.shutdown()
            raise

    async def get(self, key: str, endpoint: str | None = None) -> Judgment | None:
        """Return the judgment with this key, the newest where several endpoints have one."""
        found: Judgment | None = await self._work.result(_Lookup(key, endpoint))
        return found

    async def put(self, judgment: Judgment) -> None:
        """Keep a judgment, in place of an older one with the same key and endpoint."""
        await self._work.result(judgment)

    def all(self) -> list[Judgment]:
        """Return every judgment, in a fixed order."""
        return self._in_thread(
            lambda: list(self._read("ORDER BY task_id, answer_name, created, key, endpoint", ()))
        )

    def identities(self) -> list[JudgeIdentity]:
        """Return the judges that have judgments here."""
        names = ", ".join(JudgeIdentity.model_fields)
        rows = self._in_thread(
            lambda: self._connection.execute(
                f"SELECT DISTINCT {names} FROM judgments WHERE purpose <> 'service' ORDER BY {names}"
            ).fetchall()
        )
        return [
            JudgeIdentity.model_validate(dict(zip(JudgeIdentity.model_fields, row, strict=True)))
            for row in rows
        ]

    def image_limits(self, endpoint: str | None, model: str) -> list[ImageLimit]:
        """Return the limits that a judge, at any endpoint without one, has named, most images first."""
        rows = self._in_thread(
            lambda: self._connection.execute(
                "SELECT DISTINCT text FROM judgments "
                "WHERE outcome = 'fewer_images' AND endpoint = ifnull(?, endpoint) AND model = ?",
                (endpoint, model),
            ).fetchall()
        )
        limits = [ImageLimit.model_validate_json(text) for (text,) in rows]
        return sorted(limits, key=lambda limit: (-_or_any(limit.max_images), -_or_any(limit.max_side_px)))

    def add(self, judgments: Iterable[Judgment]) -> int:
        """Keep many judgments at once and return how many were new."""
        wanted = list(judgments)
        return self._in_thread(lambda: self._insert_new(wanted))

    def close(self) -> None:
        """Close the file."""
        self._in_thread(self._connection.close)
        self._thread.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _in_thread(self, work: Callable[[], Value]) -> Value:
        return self._thread.submit(self._translated, work).result()

    def _done_together(self, works: Sequence[_Work]) -> list[Any]:
        """Do all in one transaction, or each in its own where one of them fails."""
        try:
            with self._transaction(works):
                return [self._done(work) for work in works]
        except (sqlite3.Error, ValueError, OverflowError) as error:
            if len(works) == 1:
                return [Failed(self._as_ours(error))]
        return [outcome for work in works for outcome in self._done_together([work])]

    def _done(self, work: _Work) -> Judgment | None:
        if isinstance(work, _Lookup):
            return self._select(work.key, work.endpoint)
        self._write([work], "INSERT OR REPLACE")
        return None

    @contextmanager
    def _transaction(self, works: Sequence[_Work]) -> Iterator[None]:
        if all(isinstance(work, _Lookup) for work in works):
            yield
            return
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            yield

    def _translated(self, work: Callable[[], Value]) -> Value:
        try:
            return work()
        except (sqlite3.DatabaseError, *_UNSOUND) as error:
            raise self._as_ours(error) from error

    def _as_ours(self, error: Exception) -> Exception:
        if not isinstance(error, (sqlite3.DatabaseError, *_UNSOUND)):
            return error
        # SQLite quotes what it cannot read, whatever that is.
        said = one_line(problem_of(error) if isinstance(error, ValidationError) else str(error))
        ours = JudgmentStoreError(
            f"judgments in {self.path or 'memory'} cannot be {self._use.done}: {said}"
            f"{store_cure(error, self._use)}"
        )
        ours.__cause__ = error
        return ours

    def _open(self) -> sqlite3.Connection:
        if self.path is not None:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise JudgmentStoreError(
                    f"cannot make folder {self.path.parent}: {error.strerror}"
                ) from error
        connection = sqlite3.connect(
            self.path or ":memory:", timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        _switch_to_wal(connection)
        connection.execute("PRAGMA synchronous=NORMAL")
        refuse_programs(connection)
        columns = ", ".join(self._COLUMNS)
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS judgments ({columns}, PRIMARY KEY (key, endpoint)) WITHOUT ROWID"
        )
        _add_later_columns(connection)
        return connection

    def _select(self, key: str, endpoint: str | None) -> Judgment | None:
        if endpoint is None:
            return next(self._read("WHERE key = ? ORDER BY created DESC, endpoint LIMIT 1", (key,)), None)
        return next(self._read("WHERE key = ? AND endpoint = ?", (key, endpoint)), None)

    def _read(self, clause: str, parameters: tuple[str, ...]) -> Iterator[Judgment]:
        rows = self._connection.execute(
            f"SELECT {', '.join(self._COLUMNS)} FROM judgments {clause}", parameters
        )
        for row in rows:
            yield Judgment.model_validate(dict(zip(self._COLUMNS, row, strict=True)))

    def _insert_new(self, judgments: list[Judgment]) -> int:
        before = self._connection.total_changes
        with self._transaction(judgments):
            self._write(judgments, "INSERT OR IGNORE")
        return self._connection.total_changes - before

    def _write(self, judgments: Iterable[Judgment], verb: str) -> None:
        marks = ", ".join("?" * len(self._COLUMNS))
        self._connection.executemany(
            f"{verb} INTO judgments ({', '.join(self._COLUMNS)}) VALUES ({marks})",
            map(_row_of, judgments),
        )


def _or_any(limit: int | None) -> float:
    return math.inf if limit is None else limit


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    # Unlike everything else, this switch does not wait for other processes that open the file as well.
    give_up_at_s = time.monotonic() + _BUSY_TIMEOUT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname != "SQLITE_BUSY" or time.monotonic() >= give_up_at_s:
                raise
        time.sleep(0.05)


def _add_later_columns(connection: sqlite3.Connection) -> None:
    """Give a file of an earlier version the columns that it lacks."""

    def missing() -> list[str]:
        there = {row[1] for row in connection.execute("PRAGMA table_info(judgments)")}
        return [name for name in LATER_COLUMNS if name not in there] if "key" in there else []

    if missing():
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            for name in missing():
                connection.execute(f"ALTER TABLE judgments ADD COLUMN {name}")
