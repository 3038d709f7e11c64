"""The files of stored pages."""

from __future__ import annotations

from pathlib import Path


def file_names_in(folder: Path) -> set[str]:
    """Return the names of all files in a folder, none if it does not exist."""
    try:
        return {path.name for path in folder.iterdir()}
    except (FileNotFoundError, NotADirectoryError):
        return set()
