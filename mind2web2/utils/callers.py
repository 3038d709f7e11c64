"""For whom code runs: our own code, a script, or a library."""

from __future__ import annotations

import asyncio
import os
import sysconfig
from collections.abc import Set
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import Literal

# A script below it on the stack runs the event loop: it has not called the code of the loop's task.
EVENT_LOOP = asyncio.events.__file__
_PACKAGE_FOLDER = str(Path(__file__).parents[1])
# Tools that scripts call: they read for the script.
_TOOLS = os.path.join(_PACKAGE_FOLDER, "api_tools")  # noqa: PTH118 (compared as text, thousands of times)
# Known before a script's process is forked: each pass would look them up again.
_PYTHON = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
_INSTALLED = (*_PYTHON, *map(os.path.realpath, _PYTHON), _PACKAGE_FOLDER)
_SITE_FOLDERS = frozenset({"site-packages", "dist-packages"})

Caller = Literal["own", "script", "other"]


def caller_of(frame: FrameType | None, ignored: Set[str] = frozenset()) -> Caller:
    """Return for whom a frame's code runs: our own code, a script, or ("other") neither of them.

    A library runs for its caller.

    Args:
        ignored: top-level packages whose callers do not count: they count as our own.
    """
    has_left_task = False
    while frame is not None:
        name = frame.f_code.co_filename
        if frame.f_globals.get("__name__", "").partition(".")[0] in ignored:
            return "own"
        has_left_task = has_left_task or name == EVENT_LOOP
        # Names in angle brackets are of code without a file, such as what dataclasses generate.
        if not name.startswith("<"):
            if is_own(name):
                return "own"
            if not has_left_task and not is_installed(name) and not name.startswith(_TOOLS):
                return "script"
        frame = frame.f_back
    return "other"


@lru_cache(maxsize=4096)
def is_own(path: str) -> bool:
    """Tell whether a file is of this package, apart from the tools that scripts call."""
    return _is_under(path, _PACKAGE_FOLDER) and not _is_under(path, _TOOLS)


@lru_cache(maxsize=4096)
def is_installed(path: str) -> bool:
    """Tell whether a file is of Python or of a package, this one too."""
    if any(_is_under(path, folder) for folder in _INSTALLED):
        return True
    return not _SITE_FOLDERS.isdisjoint(Path(path).parts)


def _is_under(path: str, folder: str) -> bool:
    return path.startswith(folder) and path[len(folder) : len(folder) + 1] in (
        "",
        os.sep,
    )


def script_frame(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame of a script's own code, to name its line."""
    while frame is not None and not is_script(frame):
        # Code that started the event loop is not a script.
        frame = None if frame.f_code.co_filename == EVENT_LOOP else frame.f_back
    return frame


def is_script(frame: FrameType) -> bool:
    """Tell whether a frame's code is a script's own."""
    name = frame.f_code.co_filename
    return not name.startswith("<") and not is_installed(name)
