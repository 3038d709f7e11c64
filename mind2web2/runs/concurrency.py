"""How many tasks and answers a run judges at once."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass


@dataclass(frozen=True)
class Concurrency:
    """Tasks at once, and answers of each at once; answers also wait for ``admission``."""

    max_tasks: int = 3
    max_answers: int = 3
    admission: AbstractAsyncContextManager[None] | None = None
