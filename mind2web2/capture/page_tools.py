"""Calls of our scripts that share `scripts/page_tools.js`, and the one way in which they wait."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from mind2web2.capture.world import FrameWorld, ScriptError, script

log = logging.getLogger(__name__)

Rest = Callable[[float], Awaitable[bool]]
"""Lets so many seconds of the page's time pass, responses under way included; false if some did not."""

_FRAME_LIMIT_S = 0.3
_AFTER_FRAME_S = 0.1
_NEXT_FRAME = "() => new Promise((done) => requestAnimationFrame(() => done(true)))"


async def call_with_tools(world: FrameWorld, names: str, *arguments: Any) -> Any:
    """Call the last of the named scripts (separated by spaces) once the page tools and the others are set up.

    Raises:
        ScriptError: it threw, or the frame is gone.
    """
    *shared, name = names.split()
    setup = "".join(f"({script(part)})();" for part in ("page_tools", *shared))
    return await world.evaluate(f"(...given) => {{ {setup} return ({script(name)})(...given); }}", *arguments)


async def call_or_none(world: FrameWorld, names: str, *arguments: Any) -> Any:
    """Do the same, but return ``None`` where the script fails: a frame may go while others are good."""
    try:
        return await call_with_tools(world, names, *arguments)
    except ScriptError as error:
        log.debug("script failed names=%s frame=%s reason=%s", names, world.url, error)
        return None


async def frame_painted(world: FrameWorld) -> bool:
    """Wait until the document is painted, which also tells its observers what is in view.

    Returns:
        Whether it was; some documents never are.
    """
    try:
        async with asyncio.timeout(_FRAME_LIMIT_S):
            await world.evaluate(_NEXT_FRAME)
    except (TimeoutError, ScriptError):
        return False
    return True


async def settled(world: FrameWorld, rest: Rest, page_time_s: float) -> bool:
    """Let page time pass as ``rest`` does, and let animations that go by painted frames come to their end.

    Returns:
        What ``rest`` does. Time may pass faster than frames are painted, so that each needs the other.
    """
    has_rested = await rest(page_time_s)
    if await frame_painted(world):
        await rest(_AFTER_FRAME_S)
        await frame_painted(world)
    return has_rested
