"""What a script's changed syntax calls: verifications deferred, and waited for where results are seen."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from mind2web2.deferral import current_deferral
from mind2web2.verification_tree import VerificationNode

Thing = TypeVar("Thing")

# What evaluators, page caches, judges and verifiers have.
_SHOWING = ("get_summary", "get_web", "ledger", "abandoned")


async def deferred(method: Callable[..., Awaitable[Any]], /, *arguments: Any, **keywords: Any) -> None:
    """Call a method whose result nobody looks at, and wait for it unless it may be deferred."""
    deferral = current_deferral()
    if deferral is None:
        await method(*arguments, **keywords)
    else:
        await deferral.run(method, *arguments, **keywords)


async def read(thing: Thing) -> Thing:
    """Return a thing; one that shows verdicts, or what they have led to, once they are all there."""
    # Of the class, since a look at the object itself may be what has to wait.
    kind = thing if isinstance(thing, type) else type(thing)
    shows = issubclass(kind, VerificationNode) or any(hasattr(kind, name) for name in _SHOWING)
    return await settled(thing) if shows else thing


async def settled(thing: Thing) -> Thing:
    """Return a thing once all verdicts are there."""
    deferral = current_deferral()
    if deferral is not None:
        await deferral.settle()
    return thing


@asynccontextmanager
async def in_program_order() -> AsyncIterator[None]:
    """Finish what is under way, and let each verification inside of the block be waited for."""
    deferral = current_deferral()
    if deferral is None:
        yield
        return
    await deferral.settle()
    with deferral.held():
        yield
