"""Consent banners and other overlays, which are closed before a page is read."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from mind2web2.capture.page.isolated_world import FrameWorld
from mind2web2.capture.page.page_tools import Rest, call_or_none

_MAX_DISMISSALS = 3
_CLOSING_PAGE_TIME_S = 0.8


class _Overlays(TypedDict, total=False):
    """The findings of the last step of closing overlays."""

    done: list[str]
    walls: list[str]
    consentWall: str | None


@dataclass(frozen=True, slots=True)
class Cleared:
    """Overlays that were closed or left alone.

    Args:
        done: such as ``"consent banner (OneTrust): rejected"``, for the record.
        consent_wall: the beginning of the request for consent, where the page shows hardly anything
            else.
        walls: overlays that bar the way and were left alone, such as ``"adblock wall: Please turn
            off..."``.
    """

    done: tuple[str, ...] = ()
    consent_wall: str | None = None
    walls: tuple[str, ...] = ()


async def close_banners(worlds: Sequence[FrameWorld], deadline_s: float, rest: Rest) -> Cleared:
    """Close consent banners and other overlays in every frame, within ``deadline_s`` seconds."""
    done: list[str] = []
    walls: list[str] = []
    consent_wall: str | None = None
    try:
        async with asyncio.timeout(deadline_s):
            # Frames first: a banner in a frame is pressed there and then leaves its parent's
            # document.
            for world in reversed(worlds):
                for number in range(_MAX_DISMISSALS):
                    pressed = await _overlay_step(world, "press", number)
                    if not pressed:
                        break
                    await rest(_CLOSING_PAGE_TIME_S)
                    done += await _overlay_step(world, "sort") or []
            for world in worlds:
                outcome: _Overlays | None = await _overlay_step(world, "finish")
                if not outcome:
                    continue
                done += outcome.get("done", [])
                walls += outcome.get("walls", [])
                consent_wall = consent_wall or outcome.get("consentWall")
    except TimeoutError:
        done.append("not all banners were looked for: time ran out")
    return Cleared(tuple(dict.fromkeys(done)), consent_wall, tuple(dict.fromkeys(walls)))


async def pass_consent_wall(world: FrameWorld) -> bool:
    """Press the button that leads on from a mere request for consent; false where there is none."""
    return bool(await _overlay_step(world, "pass"))


async def _overlay_step(world: FrameWorld, name: str, *arguments: Any) -> Any:
    return await call_or_none(
        world, "consent overlays", name, world.parent_id is not None, *arguments
    )
