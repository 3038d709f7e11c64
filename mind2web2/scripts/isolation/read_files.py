"""The files that a script reads while it is loaded: if one changes, it has to be loaded again."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib.util import source_from_cache
from pathlib import Path
from typing import Any

from mind2web2.utils.api_misuse import is_installed


class ReadFiles:
    """Notes the files that this process opens from now on until ``changes`` is called."""

    def __init__(self) -> None:
        self._paths: set[str] | None = set()
        sys.addaudithook(self._note)

    def changes(self) -> dict[str, int]:
        """Return the files with the times of their last changes."""
        paths, self._paths = self._paths or set(), None
        return {path: changed_ns(path) for path in sorted(paths)}

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" or self._paths is None or not isinstance(arguments[0], str):
            return
        path = os.path.abspath(arguments[0])  # noqa: PTH100 (links stay)
        with suppress(ValueError, NotImplementedError):
            if path.endswith(".pyc"):
                path = source_from_cache(path)
        if not is_installed(path):
            self._paths.add(path)


def changed_ns(path: str) -> int:
    """Return when a file was last changed; 0 where there is none."""
    try:
        return Path(path).stat().st_mtime_ns
    except OSError:
        return 0
