"""Ways to stop an eval script, and the errors that say why."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from mind2web2.errors import JudgeError

# The message of a cancellation by the run: no time limit of the script has expired.
STOPPED = "stopped by the run"
# Far more than any rubric has; a script that asks for more loops without end.
MOST_VERIFICATIONS = 10_000

# The script's own function; its result is checked elsewhere.
EvaluateAnswer = Callable[..., Awaitable[Any]]


class ScriptBlockedError(BaseException):
    """Raised in a script that would never end.

    Not an ``Exception``, so that the script's own handlers do not catch it.
    """


def cut_off(name: str) -> JudgeError:
    """Return why there is no result where a time limit of the script's own expired."""
    return JudgeError(
        f"the script stopped waiting for the judge on {name!r} (a time limit of its own, such as "
        "asyncio.timeout or wait_for): raise that limit, or run with --sequential"
    )
