"""Keeps a folder equal to the same folder of an object store; of local roots, nothing."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path


class Mirror:
    """Keeps the files of a root equal to those in its object store; this one, of local roots, does nothing.

    Methods may be called from any thread, and raise StorageError where the store fails.
    """

    is_remote = False

    def is_current(self, folder: Path) -> bool:  # noqa: ARG002
        """Tell whether this process has brought a folder up to date."""
        return True

    def place(self, path: Path) -> str:
        """Return how users name a file or folder."""
        return str(path)

    def pull(self, path: Path) -> None:
        """Bring a file, or a folder and below, up to date; pages are listed and fetched when needed."""

    def push(self, path: Path, *, is_locked: bool = False) -> None:
        """Publish a file, or those of a folder and below, as far as they have changed here.

        Args:
            path: of the file or folder.
            is_locked: the caller holds the lock of the folder's page index.

        Raises:
            PublishedElsewhereError: another machine has published a result or summary of that name.
        """

    def fetch(self, *paths: Path) -> bool:  # noqa: ARG002
        """Bring page files of one folder here; tell whether one was not here and is now."""
        return False

    def names_in(self, folder: Path) -> Collection[str]:  # noqa: ARG002
        """Return the names of the files that a folder has in the store."""
        return ()

    def remove(self, path: Path) -> None:
        """Remove a file or a folder, here and in the store."""
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


_LOCAL = Mirror()
_mirrors: dict[Path, Mirror] = {}


def mirror(path: Path) -> Mirror:
    """Return the mirror that keeps a path equal to its object store."""
    return next(
        (used for root, used in _mirrors.items() if path.is_relative_to(root)), _LOCAL
    )


def use_mirror(root: Path, used: Mirror) -> None:
    """Set what ``mirror`` returns for a root and below, in this process."""
    _mirrors[root] = used


def push_all() -> None:
    """Publish the changes in all roots that this process uses."""
    for root, used in _mirrors.items():
        used.push(root)
