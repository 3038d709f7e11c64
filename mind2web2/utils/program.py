"""How the user starts the program, for commands that messages suggest."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def program_words() -> list[str]:
    """Return the words that start ``mind2web2`` in the shell that the present command came from."""
    started_as = Path(sys.argv[0]).name
    if os.environ.get("UV"):  # which `uv run` sets
        return ["uv", "run", "mind2web2"]
    if started_as == "__main__.py" or (
        started_as.endswith(".py") and shutil.which("mind2web2") is None
    ):
        return ["python", "-m", "mind2web2"]
    return ["mind2web2"]


def program() -> str:
    """Return the same as text."""
    return " ".join(program_words())
