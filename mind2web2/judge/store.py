"""Stored judge replies: their form, the key of each, and the SQLite file that keeps them."""

from __future__ import annotations

import hashlib
import json
import math
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from mind2web2.errors import JudgmentStoreError
from mind2web2.llm_client.chat import ChatRequest, ImageLimit, Message
from mind2web2.llm_client.failures import one_line
from mind2web2.prompts import HashedText
from mind2web2.utils.aio import Failed, GatheredWork


class Judgment(BaseModel):
    """One judge reply with what a reader wants to know about it.

    Args:
        key: hash of everything that determines the reply (``judgment_key``).
        endpoint: which server answered.
        temperature: as asked for; ``None`` is the default rule of the client.
        max_images: shown with one question at most, as the run's user has set it; ``None`` for any number.
        outcome: ``reply`` (``text`` holds it), ``declined`` (``text`` says why), ``too_long`` (the request
            did not fit the judge's context), ``fewer_images`` (``text`` holds the judge's ``ImageLimit``); of
            a gate ``skipped`` (``text`` says why) or ``asked``.
        purpose: ``verify``, ``extract``, ``script`` (a request of the script's own) , ``gate`` (whether a
            verification beside others was skipped, which depends on what was decided by then) or ``service``
            (what a map or paper service answered a script, as JSON).
        node: id of the leaf, or the name of the extraction.
        batch: set where it came in a batch job, at a lower price.
        cost_usd: the dollars of all its requests, each at its own price; ``None`` in older files, where the
            price is that of the tokens, and for a model whose price is not known.
        seconds: from the first request to the reply, retries included.
        created: UTC, ISO 8601.
    """

    model_config = ConfigDict(frozen=True)

    key: str
    endpoint: str
    model: str
    temperature: float | None = None
    reasoning_effort: str | None = None
    max_images: int | None = None
    outcome: Literal["reply", "declined", "too_long", "fewer_images", "skipped", "asked"]
    text: str
    served_model: str | None = None
    system_fingerprint: str | None = None
    input_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    attempts: int = 1
    batch: bool | None = None
    cost_usd: float | None = None
    seconds: float = 0.0
    created: str
    task_id: str | None = None
    answer_name: str | None = None
    purpose: str
    node: str | None = None
    claim: str | None = None
    page: str | None = None
    trial: int = 1


class ServiceAnswer(BaseModel):
    """What a map or paper service answered a script.

    Args:
        request: service, kind of request and its arguments, for readers.
        key: under which the answer is stored.
        sha256: of the answer.
    """

    model_config = ConfigDict(frozen=True)

    request: str
    key: str
    sha256: str


class JudgeIdentity(BaseModel):
    """A model with the parameters that it was asked with, and the server that answered."""

    model_config = ConfigDict(frozen=True)

    model: str
    endpoint: str
    temperature: float | None = None
    reasoning_effort: str | None = None
    max_images: int | None = None

    def in_words(self) -> list[str]:
        """Return the model, the parameters that are set as ``name=value``, and the server."""
        parameters = self.model_dump(exclude={"model", "endpoint"}, exclude_none=True)
        return [self.model, *(f"{name}={value}" for name, value in parameters.items()), f"at {self.endpoint}"]


class JudgmentSource(BaseModel):
    """The file of judgments that a replay answers from.

    Args:
        path: relative to the working directory where the file lies below it.
        sha256: of an exported file's bytes; ``None`` for a store, whose bytes change without its judgments.
    """

    model_config = ConfigDict(frozen=True)

    path: str
    sha256: str | None = None


def judgment_key(request: ChatRequest, trial: int) -> str:
    """Return the hash of all that determines a reply: model, parameters, messages, schema, trial.

    Texts and images enter by their own hashes, which long ones keep (``HashedText``).
    """
    asked = {
        "model": request.model,
        "temperature": request.temperature,
        "reasoning_effort": request.reasoning_effort,
        "extra": dict(request.extra),
        "messages": [_message_hashes(message) for message in request.messages],
        "schema": None if request.template is None else _schema(request.template),
        "trial": trial,
    }
    canonical = json.dumps(asked, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()


def gate_key(
    judge: tuple[object, ...],
    task_id: str,
    answer_name: str,
    node: str | None,
    claim: str | None,
    ordinal: int,
) -> str:
    """Return the hash that tells one verification of an answer from all others.

    Args:
        judge: model and settings; what one judge skips, another may be asked.
    """
    named = json.dumps(["gate", *judge, task_id, answer_name, node, claim, ordinal])
    return hashlib.sha256(named.encode()).hexdigest()


@lru_cache(maxsize=512)
def _schema(template: type[BaseModel]) -> str:
    return json.dumps(template.model_json_schema(), sort_keys=True)


def _message_hashes(message: Message) -> dict[str, Any]:
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    return {**message, "content": [_part_hashes(part) for part in content or ()]}


def _part_hashes(part: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _value_hashes(value) for name, value in part.items()}


def _value_hashes(value: Any) -> Any:
    if isinstance(value, Mapping):
        return _part_hashes(value)
    if isinstance(value, str):
        return (value if isinstance(value, HashedText) else HashedText(value)).sha256
    return value


def problem_of(error: ValidationError) -> str:
    """Return the first thing that is wrong with what should have been a judgment."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'line'}: {first['msg']}"


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
