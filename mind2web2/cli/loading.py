"""The one place where commands load what they run.

They load it when they run, so that ``--help`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def load_function(name: str) -> Any:
    """Import ``module:function`` and return the function; that of ``module`` is ``run``."""
    module, _, function = name.partition(":")
    return getattr(import_module(module), function or "run")
