"""Looking judgments up in files that are not to be changed, or even opened for writing."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from pydantic import ValidationError

from mind2web2.errors import JudgmentStoreError
from mind2web2.judgment import JudgeIdentity
from mind2web2.llm_client.failures import one_line
from mind2web2.store_cures import COMPARING, StoreUse, refuse_programs, store_cure

_SERVED = """
    SELECT served_model FROM judgments
    WHERE purpose <> 'gate' AND served_model IS NOT NULL
          AND model = ? AND temperature IS ? AND reasoning_effort IS ? AND endpoint = ?
    ORDER BY created DESC LIMIT 1
"""


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
