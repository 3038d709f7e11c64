"""Find plugins: installed packages, and the folders of ``mind2web2/plugins/``.

Both declare their parts in a file ``entry_points.txt``, as Python's packaging writes it: a group
for each hook, ``mind2web2.commands`` for example, with lines ``name = module:attribute``. A part is
imported when it is used. ``importlib.metadata`` reads the same files, and takes ten times as long.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)

PREFIX = "mind2web2."
_FILE_NAME = "entry_points.txt"
_OWN_PLUGINS = Path(__file__).parent.parent / "plugins"


@dataclass(frozen=True)
class EntryPoint:
    """A part of a plugin.

    Args:
        hook: the group without its prefix, such as ``commands``.
        value: the object, as ``module:attribute`` or ``module``.
        plugin: the folder below ``mind2web2/plugins/``, or the installed distribution with its
            version.
        folder: where it was found.
    """

    hook: str
    name: str
    value: str
    plugin: str
    folder: Path

    def load(self) -> Any:
        """Import the object, and return it."""
        module, _, attribute = self.value.partition(":")
        loaded: Any = import_module(module)
        return getattr(loaded, attribute) if attribute else loaded


@cache
def entry_points() -> tuple[EntryPoint, ...]:
    """Return the parts of all plugins: of our own ones first, then of those that are installed."""
    found = list(_parts_in(_own_files()))
    found += _parts_in(_installed_files())
    return tuple(found)


def hook_names(hook: str) -> list[str]:
    """Return the names of a hook's parts; nothing is imported."""
    return list(dict.fromkeys(each.name for each in entry_points() if each.hook == hook))


def load_part(hook: str, name: str) -> Any | None:
    """Return the part of a hook with this name, ``None`` if there is none that can be loaded."""
    for each in entry_points():
        if (each.hook, each.name) == (hook, name):
            return _load(each)
    return None


def load_parts(hook: str) -> dict[str, Any]:
    """Return the parts of a hook that can be loaded, by their names."""
    parts = {name: load_part(hook, name) for name in hook_names(hook)}
    return {name: part for name, part in parts.items() if part is not None}


def removed_plugin(name: str) -> str | None:
    """Return which of our own plugins a command, option or value needs, if it is not installed.

    ``mind2web2/plugins/names.txt`` lists them, a plugin a line, for messages about one that was
    deleted.
    """
    try:
        lines = (_OWN_PLUGINS / "names.txt").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    for plugin, *names in map(str.split, lines):
        if name in names and not (_OWN_PLUGINS / plugin).is_dir():
            return plugin
    return None


@cache
def _load(part: EntryPoint) -> Any | None:
    # A plugin may fail in any way; the rest of the toolkit works without it.
    try:
        return part.load()
    except Exception as error:
        log.warning(
            "Warning: the plugin %s cannot be loaded: %s: %s",
            part.plugin,
            type(error).__name__,
            " ".join(str(error).split()),
        )
        return None


def _own_files() -> Iterator[Path]:
    if _OWN_PLUGINS.is_dir():
        yield from sorted(_OWN_PLUGINS.glob(f"*/{_FILE_NAME}"))


def _installed_files() -> Iterator[Path]:
    """Yield the files of installed packages.

    The first of two on the path counts, as for imports.
    """
    seen: set[str] = set()
    for folder in dict.fromkeys(sys.path):
        if not os.path.isdir(folder):  # noqa: PTH112 (hundreds of entries: a Path for each takes milliseconds)
            continue
        for name in sorted(os.listdir(folder)):  # noqa: PTH208 (likewise)
            if name.endswith(".dist-info") and name not in seen:
                seen.add(name)
                yield Path(folder, name, _FILE_NAME)


def _parts_in(files: Iterator[Path]) -> Iterator[EntryPoint]:
    for file in files:
        try:
            text = file.read_text(encoding="utf-8")
        except OSError:
            continue
        if PREFIX in text:
            yield from _parts_of(file.parent, text)


def _parts_of(folder: Path, text: str) -> Iterator[EntryPoint]:
    plugin = folder.name.removesuffix(".dist-info").replace("-", " ")
    group = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            group = line.strip("[]")
        elif group.startswith(PREFIX) and "=" in line and not line.startswith("#"):
            name, _, value = (part.strip() for part in line.partition("="))
            yield EntryPoint(group.removeprefix(PREFIX), name, value, plugin, folder)
