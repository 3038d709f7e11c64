"""What to do about a store of judgments that cannot be read or written."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from pydantic import ValidationError

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
