"""Running coroutines together without leaving any of them behind."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from itertools import islice
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


async def results_until(
    starts: Iterable[Callable[[], Coroutine[Any, Any, Value]]],
    is_decisive: Callable[[Value], bool],
    *,
    at_once: int = 1,
) -> list[Value]:
    """Return results up to a decisive one, which stands last; the others in input order.

    No more than ``at_once`` run at a time. Once one is decisive or raises, the others are cancelled and
    awaited.
    """
    waiting = enumerate(starts)
    running: dict[asyncio.Task[Value], int] = {}
    results: dict[int, Value] = {}
    try:
        while True:
            for number, start in islice(waiting, at_once - len(running)):
                running[asyncio.ensure_future(start())] = number
            if not running:
                return [results[number] for number in sorted(results)]
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in sorted(done, key=running.__getitem__):
                result = task.result()
                if is_decisive(result):
                    return [*(results[number] for number in sorted(results)), result]
                results[running.pop(task)] = result
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
