"""The files of stored pages: in their folder, or in its object store until they are needed."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from mind2web2.storage.mirror import mirror


def names_in_store(folder: Path) -> Collection[str]:
    """Return the names of the files that a folder has in its object store."""
    return mirror(folder).names_in(folder)


def fetch_files(folder: Path, *paths: Path) -> bool:
    """Bring page files of one folder here; tell whether one was not here and is now."""
    return mirror(folder).fetch(*paths)


def file_names_in(folder: Path) -> set[str]:
    """Return the names of all files in a folder, none if it does not exist."""
    try:
        here = {path.name for path in folder.iterdir()}
    except (FileNotFoundError, NotADirectoryError):
        here = set()
    return here.union(names_in_store(folder))


def is_stored(path: Path) -> bool:
    """Tell whether a page's file exists, here or in the object store of its folder."""
    return path.exists() or path.name in names_in_store(path.parent)
