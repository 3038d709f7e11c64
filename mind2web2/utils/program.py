"""How the user starts the program, for commands that messages suggest."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path


def program_words() -> list[str]:
    """Return the words that start ``mind2web2`` in the shell that the present command came from."""
    started_as = Path(sys.argv[0]).name
    if uv := os.environ.get("UV"):  # the path of the `uv` that runs us
        return [_as_typed(uv), "run", "mind2web2"]
    if started_as == "__main__.py" or (
        started_as.endswith(".py") and shutil.which("mind2web2") is None
    ):
        return ["python", "-m", "mind2web2"]
    return ["mind2web2"]


def _as_typed(program: str) -> str:
    """Return a program's path as the user types it: its name, if the shell finds it by that."""
    path = Path(program)
    if shutil.which(path.name):
        return path.name
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else program


def program() -> str:
    """Return the same as text."""
    return " ".join(program_words())


def command_line(*words: str) -> str:
    """Return a command with these words, to be copied into the user's shell."""
    return shlex.join([*program_words(), *words])
