"""Deep rubric trees: reading and writing nested data takes some levels of recursion a node."""

from __future__ import annotations

import sys

# A tree 1,000 deep as JSON or pickle takes 2,000 to 5,000 levels.
_LEVELS = 10_000


def allow_deep_trees() -> None:
    """Raise this process's recursion limit."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), _LEVELS))
