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
# Both frames are needed: observers of what is in view hear of it after the first.
_TWO_FRAMES = (
    "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
)


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


async def frames_painted(world: FrameWorld) -> bool:
    """Wait until the frame's document was painted twice; false where it is not painted at all."""
    try:
        async with asyncio.timeout(_FRAME_LIMIT_S):
            await world.evaluate(_TWO_FRAMES)
    except (TimeoutError, ScriptError):
        return False
    return True
