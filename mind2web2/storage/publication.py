"""Folders and files that an object store may keep: brought here before they are read, published once written.

Results, summaries and page indexes come and go here alone. For roots on this machine it does nothing.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from mind2web2.storage.mirror import mirror


def is_in_object_store(path: Path) -> bool:
    """Tell whether an object store keeps a path."""
    return mirror(path).is_remote


def bring_here(*places: Path, only_again: bool = False) -> list[Path]:
    """Bring files, or folders and what is below, up to date: other machines may have changed them.

    Args:
        only_again: leave out what this process has not brought here before.

    Returns:
        the files and folders that are up to date.

    Raises:
        StorageError: the object store fails.
    """
    brought = []
    for place in places:
        used = mirror(place)
        if not only_again or used.is_current(place):
            used.pull(place)
            brought.append(place)
    return brought


def publish(*places: Path, is_locked: bool = False) -> None:
    """Publish files, or those of folders and below, in this order, as far as they have changed here.

    Args:
        is_locked: the caller holds the lock of the folder's page index.

    Raises:
        PublishedElsewhereError: another machine has published a result or summary of that name.
        StorageError: the object store fails.
    """
    for place in places:
        mirror(place).push(place, is_locked=is_locked)


async def bring_here_in_thread(*places: Path) -> None:
    """Do as ``bring_here``, off the event loop."""
    if any(is_in_object_store(place) for place in places):
        await asyncio.to_thread(bring_here, *places)


async def publish_in_thread(*places: Path) -> None:
    """Do as ``publish``, off the event loop."""
    if any(is_in_object_store(place) for place in places):
        await asyncio.to_thread(publish, *places)


def remove_published(path: Path) -> None:
    """Remove a file or a folder, here and in the object store."""
    mirror(path).remove(path)


def shown_place(path: Path) -> str:
    """Return how users name a file or folder."""
    return mirror(path).place(path)
