"""Whole-file writes: a reader sees a file as it was or as it becomes, never a part of it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

_LEFTOVER_PREFIX = ".writing-"


def write_whole(path: Path, data: bytes | str) -> None:
    """Replace a file by ``data`` (text as UTF-8) at once, making its folder where needed."""
    write_together({path: data})


def write_together(contents: Mapping[Path, bytes | str | None]) -> None:
    """Replace several files at once, ``None`` removing one; all are on disk before the first is replaced.

    A process killed in between leaves files missing, at most, never a new one beside an old one; the first
    of ``contents`` goes missing only if it is to be removed.
    """
    with ExitStack() as undo:
        staged = {}
        for path, data in contents.items():
            if data is not None:
                staged[path] = _unused_name(path)
                undo.callback(staged[path].unlink, missing_ok=True)
                _write_to_disk(staged[path], data)
        for position, path in enumerate(contents):
            if position > 0 or path not in staged:
                path.unlink(missing_ok=True)
        for path, written in staged.items():
            written.replace(path)


def staged_file(folder: Path, data: bytes | str) -> Path:
    """Write ``data`` to disk under a name that counts as an unfinished write, and return its path."""
    path = _unused_name(folder / "any")
    _write_to_disk(path, data)
    return path


def is_leftover(name: str) -> bool:
    """Tell whether a file name is that of an unfinished write, as a killed process leaves it behind."""
    return name.startswith(_LEFTOVER_PREFIX)


def _unused_name(path: Path) -> Path:
    # Short whatever the target is called, so that a long name does not become too long.
    return path.parent / f"{_LEFTOVER_PREFIX}{secrets.token_hex(8)}"


def _write_to_disk(path: Path, data: bytes | str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        file.write(data.encode() if isinstance(data, str) else data)
        file.flush()
        os.fsync(file.fileno())
