"""Parts of plugins: entry points of installed packages, those of this package among them.

A group of entry points is a hook, such as ``mind2web2.commands``; ``mind2web2.hooks`` lists them.
A part is imported when it is used.
"""

from __future__ import annotations

import logging
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

log = logging.getLogger(__name__)

HOOKS = ("commands", "judges", "listeners", "page_importers", "exports")


@cache
def parts_of(hook: str) -> dict[str, EntryPoint]:
    """Return the entry points of a hook by their names; nothing is imported."""
    return {part.name: part for part in entry_points(group=f"mind2web2.{hook}")}


@cache
def load_part(hook: str, name: str) -> Any | None:
    """Return the part of a hook with this name, ``None`` if there is none that can be loaded."""
    part = parts_of(hook).get(name)
    if part is None:
        return None
    # A plugin may fail in any way; the rest of the toolkit works without it.
    try:
        return part.load()
    except Exception as error:
        why = " ".join(str(error).split())
        log.warning(
            "Warning: the plugin part %s cannot be loaded: %s: %s",
            part.value,
            type(error).__name__,
            why,
        )
        return None


def load_parts(hook: str) -> dict[str, Any]:
    """Return the parts of a hook that can be loaded, by their names."""
    parts = {name: load_part(hook, name) for name in parts_of(hook)}
    return {name: part for name, part in parts.items() if part is not None}
