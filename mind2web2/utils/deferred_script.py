"""A script's ``evaluate_answer`` with its verifications deferred, and run again where that was not safe."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from mind2web2.deferral import current_deferral, deferral_of
from mind2web2.kept_replies import replies_kept
from mind2web2.pace import Pace, current_pace
from mind2web2.program_order import ProgramOrderNeeded

log = logging.getLogger(__name__)

# What a script returns is checked by whoever calls it: scripts are not ours.
EvaluateAnswer = Callable[..., Awaitable[Any]]


def deferring(function: EvaluateAnswer, load_anew: Callable[[], EvaluateAnswer]) -> EvaluateAnswer:
    """Return a script's function such that all it has deferred is done when it returns.

    Args:
        function: of a module whose syntax defers verifications.
        load_anew: imports the script once more, for another attempt from the start.
    """
    script = _Script(function, load_anew)

    @functools.wraps(function)
    async def evaluate_answer(*arguments: Any, **keywords: Any) -> Any:
        return await script.evaluate(*arguments, **keywords)

    return evaluate_answer


class _Script:
    def __init__(self, function: EvaluateAnswer, load_anew: Callable[[], EvaluateAnswer]) -> None:
        self._function = function
        self._load_anew = load_anew
        self._keeps_program_order = False
        self._name = function.__module__

    async def evaluate(self, *arguments: Any, **keywords: Any) -> Any:
        around = current_deferral()
        if around is not None:
            # One script's evaluation within another's: what is under way is that one's.
            result = await self._function(*arguments, **keywords)
            if around.is_program():
                await around.settle()
            return result
        pace = current_pace()
        in_order = self._keeps_program_order or pace.sequential
        log.debug("script runs in_order=%s name=%s", in_order, self._name)
        if in_order:
            return await self._function(*arguments, **keywords)
        with replies_kept() as replies:
            try:
                return await self._deferred(pace, arguments, keywords)
            except ProgramOrderNeeded as needed:
                log.info("script runs again in program order name=%s reason=%s", self._name, needed)
            # What it has done to its module is undone with the module; judgments are reused.
            self._function, self._keeps_program_order = self._load_anew(), True
            replies.start_over()
            for value in (*arguments, *keywords.values()):
                if hasattr(value, "start_over"):
                    value.start_over()
            return await self._function(*arguments, **keywords)

    async def _deferred(self, pace: Pace, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        with deferral_of(pace) as deferral:
            try:
                try:
                    result = await self._function(*arguments, **keywords)
                    await deferral.settle()
                except BaseException as error:
                    # Whatever a script makes of a refusal; but who stops it, stops it.
                    if _is_being_cancelled() or not (deferral.refusal or isinstance(error, Exception)):
                        raise
                    # What is under way is paid for: it is kept for the next evaluation.
                    await deferral.drain()
                    if deferral.refusal is None:
                        if deferral.failure in (None, error):
                            raise
                        # In program order the judge's failure would have come first.
                        raise deferral.failure from error
                else:
                    if deferral.refusal is None:
                        return result
                # Program order asks all that is under way as well: none of it is to be asked twice.
                await deferral.drain()
                raise ProgramOrderNeeded(deferral.refusal)
            finally:
                await deferral.stop()


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
