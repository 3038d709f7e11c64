"""Replacing a cached page's files as one: what a killed process began, the next one completes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from mind2web2.utils.cache_captures import is_sidecar
from mind2web2.utils.cache_pages import is_page_file, read_file
from mind2web2.utils.files import is_leftover, staged_file, write_whole

_NOTE_NAME = ".replacing.json"
_PLAIN_NAME = re.compile(r"[\w.-]{1,64}", re.ASCII)


def replace_page(folder: Path, contents: Mapping[Path, bytes | str | None]) -> None:
    """Replace a page's files, ``None`` removing one; call while the folder is locked.

    Readers that find the folder unlocked see all old files or all new ones, whenever the process is killed.
    """
    note: dict[str, str | None] = {}
    for path, content in contents.items():
        note[path.name] = None if content is None else staged_file(folder, content).name
    write_whole(folder / _NOTE_NAME, json.dumps(note))
    finish_replacing(folder)


def finish_replacing(folder: Path) -> None:
    """Complete what a process began and did not live to end; call while the folder is locked."""
    raw = read_file(folder / _NOTE_NAME)
    if raw is None:
        return
    for name, staged in _moves(raw).items():
        if staged is None:
            (folder / name).unlink(missing_ok=True)
        elif (folder / staged).exists():
            (folder / staged).replace(folder / name)
    (folder / _NOTE_NAME).unlink()


def _moves(raw: bytes) -> dict[str, str | None]:
    """Return what a note says, nothing where it is not one of ours: folders are exchanged as archives."""
    try:
        note = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    is_ours = isinstance(note, dict) and all(
        (is_page_file(name) or is_sidecar(name)) and (staged is None or _is_staged(staged))
        for name, staged in note.items()
    )
    return note if is_ours else {}


def _is_staged(name: object) -> bool:
    return isinstance(name, str) and is_leftover(name) and _PLAIN_NAME.fullmatch(name) is not None
