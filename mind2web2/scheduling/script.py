"""A whole script: its function runs with a scheduler, and nothing is pending when it returns."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import Any

from mind2web2.scheduling.deferral import (
    Deferral,
    current_deferral,
    deferral_of_script,
    work_of_script,
)
from mind2web2.scheduling.options import current_options
from mind2web2.scheduling.own_work import report_work
from mind2web2.scheduling.prerequisites import PendingCall
from mind2web2.scheduling.stopping import EvaluateAnswer, ScriptBlockedError
from mind2web2.scheduling.waiting import hosted


def deferring(function: EvaluateAnswer) -> EvaluateAnswer:
    """Return a script's function such that nothing is pending when it returns."""

    @functools.wraps(function)
    async def evaluate_answer(*arguments: Any, **keywords: Any) -> Any:
        if current_deferral() is not None:
            # One script evaluates another: the outer one has the scheduler.
            return await function(*arguments, **keywords)
        report_work(asyncio.get_running_loop(), work_of_script)
        deferral = Deferral(current_options(), keywords.get("logger"))
        with deferral_of_script(deferral):
            return await _run_to_its_end(deferral, function(*arguments, **keywords))

    return evaluate_answer


async def _run_to_its_end(deferral: Deferral, evaluation: Awaitable[Any]) -> Any:
    try:
        result = await hosted(_awaited(evaluation), deferral.note_error)
        await deferral.settle()
    except Exception as error:
        # Pending requests are paid for: the store keeps their replies.
        await deferral.drain()
        if deferral.failure in (None, error):
            raise
        # In program order the judge's failure would have come first.
        raise deferral.failure from error
    else:
        return result
    finally:
        await deferral.stop()
        if deferral.stopped is not None:
            # The script may have caught the error.
            raise ScriptBlockedError(deferral.stopped)


async def _awaited(evaluation: Awaitable[Any]) -> Any:
    return await evaluation


def deferred(
    method: Callable[..., Awaitable[Any]], /, *arguments: Any, **keywords: Any
) -> Awaitable[None]:
    """Call a method whose result is not used: deferred where possible, else awaited.

    A plain function: scripts may look for coroutine functions among their names.
    """
    deferral = current_deferral()
    if deferral is None:
        return method(*arguments, **keywords)
    return deferral.run(method, *arguments, **keywords)


def deferred_value(
    method: Callable[..., Awaitable[Any]], /, *arguments: Any, **keywords: Any
) -> Awaitable[Any]:
    """Call a method whose result is not read yet; ``value_of`` returns it."""
    deferral = current_deferral()
    if deferral is None:
        return method(*arguments, **keywords)
    return deferral.value(method, *arguments, **keywords)


def value_of(result: Any) -> Awaitable[Any]:
    """Return what a method called through ``deferred_value`` returns, once it is there."""
    return _value_of(result)


async def _value_of(result: Any) -> Any:
    return await result.result() if type(result) is PendingCall else result
