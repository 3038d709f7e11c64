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
