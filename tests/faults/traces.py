"""The traces of a run of the example on disk: scores, reasons, judgments and damaged files."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faults.example import AGENT, Name, stored_judgments, tree_of

from mind2web2.judge.judgment import Judgment
from mind2web2.judge.store import STORE_NAME
from mind2web2.results.stored_results import answer_results_dir, latest_result
from mind2web2.results.task_summary import SUMMARY_NAME, UNSCORED_NAME
from mind2web2.utils.files import is_leftover


@dataclass(frozen=True)
class Traces:
    """The state on disk.

    Args:
        trees: of the answers in the tasks' ``summary.json``.
        reasons: why those in ``unscored.json`` have no score.
        judgments: what is kept of the judge's replies, by key.
        result_files: every result, as it stands.
        damaged: files that do not parse, and leftovers of writing.
    """

    trees: dict[Name, Any]
    reasons: dict[Name, str]
    judgments: dict[str, Judgment]
    result_files: dict[Path, bytes]
    damaged: tuple[Path, ...]


def read_traces(results: Path) -> Traces:
    """Return what is on disk under the root of all results."""
    damaged = tuple(
        path for path in sorted(results.rglob("*")) if path.is_file() and _is_damaged(path)
    )
    entries = {
        (path.parent.name, entry["answer_name"]): entry
        for file_name in (SUMMARY_NAME, UNSCORED_NAME)
        for path in (results / AGENT).glob(f"*/{file_name}")
        if path not in damaged
        for entry in json.loads(path.read_bytes())
    }
    return Traces(
        trees={
            name: _tree(results, name)
            for name, entry in entries.items()
            if entry["score"] is not None
        },
        reasons={
            name: entry["reason"] for name, entry in entries.items() if entry["score"] is None
        },
        judgments=stored_judgments(results),
        result_files={
            path: path.read_bytes() for path in (results / AGENT).glob("*/*/results/*.json")
        },
        damaged=damaged,
    )


def _tree(results: Path, name: Name) -> dict[str, Any] | None:
    found = latest_result(answer_results_dir(results, AGENT, *name))
    return None if found is None else tree_of(found.content.document)


def _is_damaged(path: Path) -> bool:
    if is_leftover(path.name) or path.suffix == ".lock":
        return True
    if path.name == STORE_NAME:
        with closing(sqlite3.connect(path)) as connection:
            return connection.execute("PRAGMA integrity_check").fetchone() != ("ok",)
    if path.suffix != ".json":
        return False
    try:
        json.loads(path.read_bytes())
    except ValueError:
        return True
    return False
