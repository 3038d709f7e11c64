"""The judgments of the other agents of a results root.

They are found, copied with their origin, and never changed.

Versions of one agent give many equal answers and cite the same pages, so that many questions are
equal.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from mind2web2.judge.judgment import Judgment
from mind2web2.judge.store import (
    OF_QUESTION,
    ForeignContentError,
    JudgmentStore,
    missing_columns,
    refuse_programs,
)

log = logging.getLogger(__name__)

_COLUMNS = tuple(Judgment.model_fields)
# Gates belong to one run, and the answers of services change with time.
_SHARED = ("verify", "extract", "script")
_BUSY_TIMEOUT_S = 5.0


class SharingJudgmentStore(JudgmentStore):
    """An agent's own judgments; those that it lacks are copied from the stores of other agents.

    Args:
        others: stores of other agents. One that cannot be read is left out, with a warning.
    """

    def __init__(self, path: Path, others: Sequence[Path]) -> None:
        super().__init__(path)
        self._others: dict[str, sqlite3.Connection] = {}
        self._queue.call(partial(self._open_others, others))

    def close(self) -> None:
        """Close all files."""
        self._queue.call(self._close_others)
        super().close()

    def _open_others(self, paths: Sequence[Path]) -> None:
        for path in paths:
            try:
                connection = sqlite3.connect(path, timeout=_BUSY_TIMEOUT_S, check_same_thread=False)
                self._others[path.parent.name] = connection
                connection.execute("PRAGMA query_only=ON")
                refuse_programs(connection)
            except (
                sqlite3.DatabaseError,
                UnicodeDecodeError,
                ForeignContentError,
            ) as error:
                self._leave_out(path.parent.name, error)

    def _close_others(self) -> None:
        for connection in self._others.values():
            connection.close()
        self._others.clear()

    def _leave_out(self, agent: str, error: Exception) -> None:
        log.warning(
            "the judgments of agent %s cannot be read, and are not reused: %s",
            agent,
            error,
        )
        connection = self._others.pop(agent, None)
        if connection is not None:
            connection.close()

    def _select(self, key: str, endpoint: str | None) -> Judgment | None:
        own = super()._select(key, endpoint)
        if own is not None:
            return own
        for agent in list(self._others):
            try:
                judgment = _judgment_in(self._others[agent], key, endpoint)
            except (
                sqlite3.DatabaseError,
                UnicodeDecodeError,
                ValidationError,
            ) as error:
                self._leave_out(agent, error)
                continue
            if judgment is not None:
                copy = judgment.model_copy(update={"reused_from": judgment.reused_from or agent})
                # Kept: results name it, and the other agent may be deleted.
                self._write([copy], "INSERT OR IGNORE")
                return copy
        return None


def _judgment_in(connection: sqlite3.Connection, key: str, endpoint: str | None) -> Judgment | None:
    missing = missing_columns(connection)
    names = [name for name in _COLUMNS if name not in missing]
    row = connection.execute(
        f"SELECT {', '.join(names)} FROM judgments {OF_QUESTION}",
        (key, endpoint),
    ).fetchone()
    if row is None:
        return None
    judgment = Judgment.model_validate(dict(zip(names, row, strict=True)))
    return judgment if judgment.purpose in _SHARED else None
