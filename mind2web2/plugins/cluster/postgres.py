"""Judgments in a PostgreSQL database that several machines share, beside each agent's own file.

The own file has every judgment of the agent's results: only an evaluation with a judge needs the
database.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import ValidationError

from mind2web2.errors import JudgmentStoreError, UsageError
from mind2web2.judge.judgment import Judgment, problem_of
from mind2web2.judge.shared import SharedStore
from mind2web2.utils.aio import ThreadQueue
from mind2web2.utils.mounts import network_file_system

if TYPE_CHECKING:
    import psycopg

_VERSION = 1
_CONNECT_TIMEOUT_S = 10
# A machine that vanishes does not close its connections. By default both ends would wait for hours,
# and the server would keep the locks of its questions. So each end checks whether the other is
# still there.
_SILENT_FOR_S, _PROBE_EVERY_S, _PROBES = 5, 5, 3
_UNACKNOWLEDGED_MS = 20_000
_CLIENT_LIMITS = {
    "keepalives_idle": _SILENT_FOR_S,
    "keepalives_interval": _PROBE_EVERY_S,
    "keepalives_count": _PROBES,
    "tcp_user_timeout": _UNACKNOWLEDGED_MS,
}
_SERVER_LIMITS = f"""
    SET tcp_keepalives_idle = {_SILENT_FOR_S};
    SET tcp_keepalives_interval = {_PROBE_EVERY_S};
    SET tcp_keepalives_count = {_PROBES};
    SET tcp_user_timeout = {_UNACKNOWLEDGED_MS}
"""
# If a worker hangs, its system still acknowledges probes, and its connection stays. So each session
# signals every few seconds that it is alive, and ends sessions that have been silent for long.
_SIGN_OF_LIFE_EVERY_S, _LONGEST_SILENCE_S = 5.0, 20.0
# A database is back within seconds after a restart, and within a minute or two after a failover.
OUTAGE_WAIT_S = 120.0
_FIRST_RETRY_S, _LONGEST_RETRY_S = 0.2, 5.0
# The time between two looks at a question that another worker asks; a judge takes seconds.
_LOOK_AGAIN_S = 0.3
_ROWS_AT_ONCE = 1000
_MAX_IN_MEMORY = 1000

# All processes that create the tables share this lock.
_SCHEMA = f"""
    SELECT pg_advisory_xact_lock(7305813291);
    CREATE TABLE IF NOT EXISTS mind2web2_schema (version integer NOT NULL);
    INSERT INTO mind2web2_schema SELECT {_VERSION} WHERE NOT EXISTS (SELECT FROM mind2web2_schema);
    CREATE TABLE IF NOT EXISTS mind2web2_judgments (
        key text, endpoint text, judgment text NOT NULL, PRIMARY KEY (key, endpoint)
    );
    CREATE TABLE IF NOT EXISTS mind2web2_budgets (run text PRIMARY KEY, leased_usd double precision NOT NULL)
"""
_FIND = "SELECT judgment FROM mind2web2_judgments WHERE key = %s AND endpoint = %s"
_PAGE = (
    "SELECT key, endpoint, judgment FROM mind2web2_judgments WHERE (key, endpoint) > (%s, %s) "
    f"ORDER BY key, endpoint LIMIT {_ROWS_AT_ONCE}"
)
_INSERT = "INSERT INTO mind2web2_judgments VALUES (%s, %s, %s) ON CONFLICT (key, endpoint) DO "
_REPLACE = _INSERT + "UPDATE SET judgment = excluded.judgment"
_KEEP = _INSERT + "NOTHING"
_EXCHANGE = (
    "UPDATE mind2web2_judgments SET judgment = %s "
    "WHERE key = %s AND endpoint = %s AND judgment = %s"
)
_LOCK = "SELECT pg_try_advisory_lock(%s)"
_OPEN_BUDGET = "INSERT INTO mind2web2_budgets VALUES (%s, 0) ON CONFLICT DO NOTHING"
_LEASED = "SELECT leased_usd FROM mind2web2_budgets WHERE run = %s FOR UPDATE"
_LEASE = "UPDATE mind2web2_budgets SET leased_usd = leased_usd + %s WHERE run = %s"
_UNLOCK = "SELECT pg_advisory_unlock(%s)"
_APPLICATION = "mind2web2"
_SESSIONS = f"""
    FROM pg_stat_activity
    WHERE application_name = '{_APPLICATION}' AND datname = current_database() AND usename = current_user
"""
_COUNT_SESSIONS = f"SELECT count(*) {_SESSIONS}"
_END_SILENT_SESSIONS = f"""
    SELECT pg_terminate_backend(pid) {_SESSIONS}
    AND state LIKE 'idle%%' AND state_change < now() - make_interval(secs => %s)
"""

_URL = re.compile(r"\w+://(?:[^@/?#]*@)?[^@]*")
_FORM = (
    "write judgments as postgresql://USER@HOST:PORT/DATABASE, special characters of a "
    "password as %XX"
)

Value = TypeVar("Value")
_Row = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class _Work:
    """A piece of work for the database; ``claim`` also tries to get the lock of the question.

    Args:
        instead_of: the text of the judgment that an ``exchange`` replaces.
    """

    kind: Literal["find", "claim", "release", "put", "keep", "exchange"]
    row: _Row
    instead_of: str = ""

    @property
    def lock(self) -> int:
        """The question's number among PostgreSQL's advisory locks (signed, 64 bits)."""
        return int.from_bytes(hashlib.sha256(self.row[0].encode()).digest()[:8], signed=True)


@dataclass(frozen=True, slots=True)
class _Found:
    judgment: Judgment | None = None
    text: str = ""
    is_locked: bool = False


class JudgmentDatabase:
    """The judgments in a PostgreSQL database, through one connection that a thread of its own uses.

    Args:
        url: ``postgresql://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE``; messages leave user and
            password out.
        outage_wait_s: a connection that is lost is opened again; callers wait so long for that.
        connect_wait_s: likewise, for the first connection.

    Attributes:
        sessions: of this program that use the database, this one included.

    Raises:
        UsageError: psycopg is not installed, or the URL names no database.
        JudgmentStoreError: the database cannot be reached or used.
    """

    def __init__(
        self,
        url: str,
        outage_wait_s: float = OUTAGE_WAIT_S,
        connect_wait_s: float = 0.0,
    ) -> None:
        try:
            import psycopg
            from psycopg.conninfo import conninfo_to_dict
        except ImportError as error:
            raise UsageError(
                "judgments in PostgreSQL need psycopg: run `pip install 'mind2web2[postgres]'`"
            ) from error
        self._url = url
        self._psycopg = psycopg
        try:
            parts = conninfo_to_dict(url)
        except psycopg.ProgrammingError as error:
            raise UsageError(_FORM) from error
        # Otherwise a part of the password would be taken for the host, and shown.
        if not _URL.fullmatch(url):
            raise UsageError(_FORM)
        self._name = f"{parts.get('host') or 'localhost'}/{parts.get('dbname') or ''}"
        self.sessions = 1
        self._outage_wait_s = connect_wait_s
        self._locks: set[int] = set()
        self._connection: psycopg.Connection[Any] | None = None
        self._closing = threading.Event()
        self._life = threading.Thread(target=self._show_life, daemon=True)
        self._queue: ThreadQueue[_Work, _Found] = ThreadQueue("shared judgments", self._do)
        try:
            self._call(self._note_sessions)
        except BaseException:
            self.close()
            raise
        self._outage_wait_s = outage_wait_s
        self._life.start()

    def _show_life(self) -> None:
        while not self._closing.wait(_SIGN_OF_LIFE_EVERY_S):
            # If the database fails, the next call that needs it says so.
            with suppress(JudgmentStoreError):
                self._call(self._note_sessions)

    def _note_sessions(self, cursor: psycopg.Cursor[Any]) -> None:
        """Count the sessions once those that are silent have been ended."""
        cursor.execute(_END_SILENT_SESSIONS, (_LONGEST_SILENCE_S,))
        row = cursor.execute(_COUNT_SESSIONS).fetchone()
        self.sessions = 1 if row is None else row[0]

    async def find(self, key: str, endpoint: str) -> Judgment | None:
        """Return the judgment with this key and endpoint."""
        return (await self._queue.do(_Work("find", (key, endpoint, "")))).judgment

    async def put(self, judgment: Judgment) -> None:
        """Store a judgment, in place of an older one with the same key and endpoint."""
        await self._queue.do(_Work("put", _row_of(judgment)))

    async def keep(self, judgment: Judgment, instead_of: Judgment | None = None) -> Judgment:
        """Store a judgment unless there is another than ``instead_of``; return the stored one."""
        row = _row_of(judgment)
        found = await self._queue.do(_Work("keep", row))
        if instead_of is not None and found.judgment == instead_of:
            # Another version may have written it as another text, so the one that was found is
            # compared.
            found = await self._queue.do(_Work("exchange", row, found.text))
        return found.judgment or judgment

    @asynccontextmanager
    async def hold_question(self, key: str, endpoint: str) -> AsyncIterator[Judgment | None]:
        """Hold a question among workers, or yield the judgment that another one got.

        While another worker holds the question, this waits. The database ends a worker's locks with
        its connection, so that a worker that died holds nothing. A worker that hangs, or whose
        machine vanished, does not hold a question for long.
        """
        question = key, endpoint, ""
        found: _Found | None = None
        try:
            while True:
                found = (
                    None  # unknown until the reply, which a caller that is cancelled does not see
                )
                found = await self._queue.do(_Work("claim", question))
                if found.is_locked or found.judgment is not None:
                    break
                await asyncio.sleep(_LOOK_AGAIN_S)
            yield found.judgment
        finally:
            if found is None or found.is_locked:
                # Nothing depends on the lock's release, so a cancelled caller need not wait.
                self._queue.send(_Work("release", question)).add_done_callback(
                    lambda done: done.exception()
                )

    def lease(self, run: str, wanted_usd: float, max_usd: float) -> float:
        """Lease dollars of a run's budget, recorded before they are used, and return how many.

        Where the connection is lost, dollars may be leased twice, and those of the first time stay
        unused.
        """

        def lease(cursor: psycopg.Cursor[Any]) -> float:
            cursor.execute(_OPEN_BUDGET, (run,))
            with cursor.connection.transaction():
                [leased_usd] = cursor.execute(_LEASED, (run,)).fetchone() or (max_usd,)
                granted_usd = max(0.0, min(wanted_usd, max_usd - leased_usd))
                cursor.execute(_LEASE, (granted_usd, run))
            return granted_usd

        return self._call(lease)

    def add(self, judgments: Iterable[Judgment]) -> int:
        """Store many judgments, keep those already stored, and return how many were new."""
        rows = map(_row_of, judgments)
        added = 0
        while batch := list(islice(rows, _ROWS_AT_ONCE)):
            added += self._call(partial(_insert, rows=batch))
        return added

    def all(self) -> Iterator[Judgment]:
        """Yield every judgment, in the order of their keys."""
        after = ("", "")
        while rows := self._call(partial(_page, after=after)):
            yield from (self._parse(text) for _, _, text in rows)
            after = rows[-1][:2]

    def close(self) -> None:
        """Close the connection."""
        self._closing.set()
        if self._life.is_alive():
            self._life.join()
        self._queue.call(self._disconnect)
        self._queue.close()

    def _call(self, work: Callable[[psycopg.Cursor[Any]], Value]) -> Value:
        return self._queue.call(lambda: self._try(work))

    def _do(self, works: Sequence[_Work]) -> Sequence[_Found | BaseException]:
        return self._try(lambda _: self._do_together(works))

    def _do_together(self, works: Sequence[_Work]) -> list[_Found]:
        assert self._connection is not None
        # All statements take one round trip. A single statement needs no pipeline, because ending
        # one takes another round trip.
        is_single = [work.kind for work in works] == ["find"]
        with nullcontext() if is_single else self._connection.pipeline():
            sent = [(work, *self._send(work)) for work in works]
            found = [self._fetch(lock, row) for work, lock, row in sent]
        # Report only after all is read, because all work is done again if the connection is lost
        # before.
        for work, each in zip(works, found, strict=True):
            if each.is_locked:
                self._locks.add(work.lock)
            elif work.kind == "release":
                self._locks.discard(work.lock)
        return found

    def _send(self, work: _Work) -> tuple[psycopg.Cursor[Any] | None, psycopg.Cursor[Any] | None]:
        """Send a piece of work and return the cursors of its lock and of its judgment."""
        assert self._connection is not None
        execute = self._connection.execute
        match work.kind:
            case "find":
                return None, execute(_FIND, work.row[:2])
            case "claim":
                # The lock comes first, so that the next holder sees the judgment of the one before.
                return execute(_LOCK, (work.lock,)), execute(_FIND, work.row[:2])
            case "release":
                execute(_UNLOCK, (work.lock,))
            case "put":
                execute(_REPLACE, work.row)
            case "keep":
                execute(_KEEP, work.row)
                return None, execute(_FIND, work.row[:2])
            case "exchange":
                key, endpoint, text = work.row
                execute(_EXCHANGE, (text, key, endpoint, work.instead_of))
                return None, execute(_FIND, work.row[:2])
        return None, None

    def _fetch(
        self, lock: psycopg.Cursor[Any] | None, judgment: psycopg.Cursor[Any] | None
    ) -> _Found:
        locked = lock.fetchone() if lock is not None else None
        is_locked = bool(locked and locked[0])
        row = judgment.fetchone() if judgment is not None else None
        if row is None:
            return _Found(is_locked=is_locked)
        return _Found(self._parse(row[0]), row[0], is_locked)

    def _try(self, work: Callable[[psycopg.Cursor[Any]], Value]) -> Value:
        """Return the result of work, after connecting again where the connection is lost."""
        give_up_at_s = time.monotonic() + self._outage_wait_s
        delay_s = _FIRST_RETRY_S
        while True:
            try:
                return work(self._connect().cursor())
            except self._psycopg.OperationalError as error:
                self._disconnect()
                if time.monotonic() + delay_s > give_up_at_s or self._closing.wait(delay_s):
                    raise self._as_ours(
                        error, "start it, and run the same command again"
                    ) from error
                delay_s = min(2 * delay_s, _LONGEST_RETRY_S)
            except self._psycopg.Error as error:
                raise self._as_ours(error, "name another database") from error

    def _connect(self) -> psycopg.Connection[Any]:
        if self._connection is None:
            connection = self._psycopg.connect(
                self._psycopg.conninfo.make_conninfo(self._url, **_CLIENT_LIMITS),
                autocommit=True,
                connect_timeout=_CONNECT_TIMEOUT_S,
                application_name=_APPLICATION,
            )
            self._connection = connection
            connection.execute(_SERVER_LIMITS)
            with connection.transaction():
                connection.execute(_SCHEMA)
            row = connection.execute("SELECT max(version) FROM mind2web2_schema").fetchone()
            if row is None or row[0] != _VERSION:
                raise JudgmentStoreError(
                    f"judgments in {self._name} have the form {row and row[0]}, this program has "
                    f"{_VERSION}: name another database, or use the program's version that wrote "
                    "them"
                )
            # The questions in flight. Another worker may hold them by now, and asks them too.
            for lock in self._locks:
                connection.execute(_LOCK, (lock,))
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _as_ours(self, error: Exception, cure: str) -> JudgmentStoreError:
        problem = " ".join(str(error).split())
        return JudgmentStoreError(
            f"judgments in the database {self._name} cannot be used: {problem}; {cure}"
        )

    def _parse(self, text: str) -> Judgment:
        try:
            return Judgment.model_validate_json(text)
        except ValidationError as error:
            raise JudgmentStoreError(
                f"the database {self._name} holds a damaged judgment: {problem_of(error)}; delete "
                "its row"
            ) from error


class SharedJudgmentStore(SharedStore):
    """An agent's own judgments, and those in a database that other machines use at the same time.

    Judgments of the database that are used are copied to the own file. Gates stay there: they
    belong to one run.

    Args:
        path: the own file, ``None`` for memory. Judgments that it has alone are added to the
            database, since a connection may have been lost before they were.
        url: as for ``JudgmentDatabase``.
        outage_wait_s: likewise, as ``connect_wait_s``.
        most: as for ``JudgmentStore``.
    """

    def __init__(
        self,
        path: Path | None,
        url: str,
        outage_wait_s: float = OUTAGE_WAIT_S,
        *,
        most: int | None = None,
        connect_wait_s: float = 0.0,
    ) -> None:
        super().__init__(path, most=most)
        try:
            self.database = JudgmentDatabase(url, outage_wait_s, connect_wait_s)
        except BaseException:
            super().close()
            raise
        self.database.add(judgment for judgment in self.all() if judgment.purpose != "gate")

    def copy_all(self) -> tuple[int, int]:
        """Copy all shared judgments to the own file.

        Return how many are new there, and how many exist.
        """
        judgments = list(self.database.all())
        return self.add(judgments), len(judgments)

    async def get(self, key: str, endpoint: str | None = None) -> Judgment | None:
        """Return the newest judgment of our own with this key."""
        local_judgment = await super().get(key, endpoint)
        if local_judgment is not None or endpoint is None:
            return local_judgment
        shared = await self.database.find(key, endpoint)
        if shared is not None:
            await self.put_own(shared)
        return shared

    async def put_own(self, judgment: Judgment) -> None:
        """Store a judgment in the own file alone."""
        await super().put(judgment)

    async def put(self, judgment: Judgment) -> None:
        """Store a judgment in the own file and in the database."""
        await self.put_own(judgment)
        if judgment.purpose != "gate":
            await self.database.put(judgment)

    async def keep(self, judgment: Judgment, instead_of: Judgment | None = None) -> Judgment:
        """Store a judgment unless this machine or another has one, and return that."""
        local_judgment = await super().keep(judgment, instead_of)
        shared = await self.database.keep(local_judgment, instead_of)
        if shared != local_judgment:
            await self.put_own(shared)
        return shared

    @asynccontextmanager
    async def hold_question(self, key: str, endpoint: str) -> AsyncIterator[Judgment | None]:
        """Hold a question among all machines, or yield the judgment that another one got."""
        async with self.database.hold_question(key, endpoint) as theirs:
            if theirs is not None:
                await self.put_own(theirs)
            yield theirs

    def close(self) -> None:
        """Close file and connection."""
        self.database.close()
        super().close()


def open_store(path: Path, url: str) -> SharedJudgmentStore:
    """Open an agent's judgments with those of a database (the hook ``stores``)."""
    if network_file_system(path.parent):
        # SQLite cannot keep judgments there; the database has them all.
        return SharedJudgmentStore(None, url, most=_MAX_IN_MEMORY)
    return SharedJudgmentStore(path, url)


def _row_of(judgment: Judgment) -> _Row:
    return judgment.key, judgment.endpoint, judgment.model_dump_json(exclude_none=True)


def _page(cursor: psycopg.Cursor[Any], after: tuple[str, str]) -> list[_Row]:
    return cursor.execute(_PAGE, after).fetchall()


def _insert(cursor: psycopg.Cursor[Any], rows: Sequence[_Row]) -> int:
    cursor.executemany(_KEEP, rows)
    return cursor.rowcount
