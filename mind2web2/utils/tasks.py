"""Running coroutines together without leaving any of them behind."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

Value = TypeVar("Value")


async def all_or_first_error(coroutines: Iterable[Coroutine[Any, Any, Value]]) -> list[Value]:
    """Return the results in input order; on the first error cancel the others, await them and raise it."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def to_the_end(coroutine: Coroutine[Any, Any, Value]) -> Value:
    """Return a coroutine's result; where the caller is cancelled meanwhile, it is cancelled after the end."""
    task = asyncio.create_task(coroutine)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.add_done_callback(_looked_at)
        await asyncio.wait({task})
        raise


def _looked_at(task: asyncio.Task[Any]) -> None:
    # So that asyncio does not complain: nobody is left to be told.
    if not task.cancelled():
        task.exception()
