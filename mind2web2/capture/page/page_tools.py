"""Our scripts in a page, with the tools that they share, and waits for what they change."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from mind2web2.capture.page.devtools import ScriptError
from mind2web2.capture.page.isolated_world import FrameWorld, script

log = logging.getLogger(__name__)

Rest = Callable[[float], Awaitable[bool]]
"""Lets so many seconds of the page's time pass, pending responses included.

It returns false if some responses did not come.
"""

# The browser paints every page, however busy the machine is, but not every frame in it.
_PAGE_PAINT_LIMIT_S = 3.0
_FRAME_PAINT_LIMIT_S = 0.3
_AFTER_FRAME_S = 0.1
_NEXT_FRAME = "() => new Promise((done) => requestAnimationFrame(() => done(true)))"


async def call_with_tools(world: FrameWorld, names: str, *arguments: Any) -> Any:
    """Set up the page tools and the named scripts, and call the last of them.

    The scripts stay in the world, so that later calls send their arguments alone.

    Raises:
        ScriptError: it threw, or the frame is gone.
    """
    *shared, name = names.split()
    missing = [part for part in ("page_tools", *shared) if part not in world.installed]
    setup = "".join(f"({script(part)})();\n" for part in missing)
    if name not in world.installed:
        setup += f"pageTools.scripts.{name} = {script(name)};\n"
    call = f"pageTools.scripts.{name}(...given)"
    result = await world.evaluate(
        f"(...given) => {{ {setup} pageTools.forget(); return {call}; }}", *arguments
    )
    world.installed.update(missing, (name,))
    return result


async def call_or_none(world: FrameWorld, names: str, *arguments: Any) -> Any:
    """Do the same, but return ``None`` if the script fails, since a frame may go."""
    try:
        return await call_with_tools(world, names, *arguments)
    except ScriptError as error:
        log.debug("script failed names=%s frame=%s reason=%s", names, world.url, error)
        return None


async def wait_for_paint(world: FrameWorld) -> bool:
    """Wait until the document is painted, which also notifies its observers.

    Returns:
        Whether it was; frames out of view never are.
    """
    limit_s = _PAGE_PAINT_LIMIT_S if world.parent_id is None else _FRAME_PAINT_LIMIT_S
    try:
        async with asyncio.timeout(limit_s):
            await world.evaluate(_NEXT_FRAME)
    except (TimeoutError, ScriptError):
        return False
    return True


async def settle(world: FrameWorld, rest: Rest, page_time_s: float) -> bool:
    """Let page time pass as ``rest`` does, until animations have come to their end.

    Returns:
        The result of ``rest``. Time may pass faster than frames are painted, so that each needs the
        other.
    """
    has_rested = await rest(page_time_s)
    if await wait_for_paint(world):
        await rest(_AFTER_FRAME_S)
        await wait_for_paint(world)
    return has_rested
