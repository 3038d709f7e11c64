"""What to do about a store of judgments that cannot be read or written."""

from __future__ import annotations

import sqlite3

from pydantic import ValidationError

# By SQLite's primary result codes.
_CURES = {
    sqlite3.SQLITE_FULL: "; make room there, and run the same command again",
    sqlite3.SQLITE_IOERR: "; see that there is room, and run the same command again",
    sqlite3.SQLITE_READONLY: "; make file and folder writable, and run the same command again",
    sqlite3.SQLITE_CANTOPEN: "; make file and folder writable, and run the same command again",
}
_DAMAGES = frozenset({sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_DAMAGED = (
    "; move the file away, and run the same command again: results stay, and what they lack is asked, and "
    "paid for, anew, unless an export is brought in first (mind2web2 judgments import)"
)


class ForeignContentError(sqlite3.DatabaseError):
    """A file is an SQLite database, and holds what no store of judgments does."""


def cure_of(error: Exception) -> str:
    """Return what to do about an error of a store, to be put behind it; nothing where there is no cure."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    is_damage = isinstance(error, ValidationError | UnicodeDecodeError | ForeignContentError)
    return _DAMAGED if is_damage or code in _DAMAGES else _CURES.get(code, "")


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
