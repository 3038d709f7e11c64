"""Scrolling through a page and its panes, so that what loads when it comes into view is there."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mind2web2.capture.page.isolated_world import FrameWorld, Rest, call_or_none, frame_painted, settled

_MAX_PANES = 12
_MAX_HEIGHT_PX = 60_000
_MAX_GROWTHS = 30
_ENDLESS_GROWTH = 1.5
_MAX_GATHERING_STEPS = 150
# Long enough for scripts that wait until scrolling has stopped.
_STEP_PAGE_TIME_S = 0.3
_END_PAGE_TIME_S = 1.5


@dataclass(frozen=True, slots=True)
class Scrolled:
    """How far a page was scrolled.

    Args:
        heights_px: of the page's longest pane each time its end was reached.
        rounds: steps of one screen, panes and frames included.
        is_endless: it kept growing until a bound was met.
        is_cut: the time ran out before the end was reached.
        gathered_rows: of lists that drop what is out of view, put back into the page behind what they show.
    """

    heights_px: tuple[int, ...] = ()
    rounds: int = 0
    is_endless: bool = False
    is_cut: bool = False
    gathered_rows: int = 0


async def scroll_through(worlds: Sequence[FrameWorld], deadline_s: float, rest: Rest) -> Scrolled:
    """Scroll every frame and pane to its end until nothing more appears, then back to the top."""
    tour = _Tour(rest)
    is_cut = False
    try:
        async with asyncio.timeout(deadline_s):
            for world in worlds:
                await tour.through(world)
    except TimeoutError:
        is_cut = True
    # A step that was cut off may have scrolled all the same.
    if tour.rounds or is_cut:
        await tour.back_to_the_top(worlds)
    return Scrolled(tuple(tour.heights_px), tour.rounds, tour.is_endless, is_cut, tour.gathered_rows)


class _Tour:
    def __init__(self, rest: Rest) -> None:
        self._rest = rest
        self._has_stalled = False
        self.heights_px: list[int] = []
        self.rounds = 0
        self.is_endless = False
        self.gathered_rows = 0

    async def through(self, world: FrameWorld) -> None:
        # A page whose list begins only once its end is seen to be in view has no pane before.
        for _ in range(2):
            await self._tell_observers(world)
        panes = await _step(world, "begin", _MAX_PANES) or 0
        for index in range(panes):
            await self._through_pane(world, index)
            if await _step(world, "rewind", index):
                await self._gather(world, index)

    async def back_to_the_top(self, worlds: Sequence[FrameWorld]) -> None:
        for world in worlds:
            await _step(world, "top")
        await frame_painted(worlds[0])
        if not self._has_stalled:
            await settled(worlds[0], self._rest, _END_PAGE_TIME_S)
        for world in worlds:
            self.gathered_rows += await _step(world, "place") or 0

    async def _gather(self, world: FrameWorld, index: int) -> None:
        for _ in range(_MAX_GATHERING_STEPS):
            await frame_painted(world)
            await self._wait(_STEP_PAGE_TIME_S)
            place = await _step(world, "gather", index)
            if place is None or not place["isMore"]:
                return
            self.rounds += 1
        self.is_endless = True

    async def _through_pane(self, world: FrameWorld, index: int) -> None:
        growths = first_height = 0
        while True:
            place = await _step(world, "down", index)
            if place is None:
                return
            self.rounds += 1
            first_height = first_height or place["height"]
            await frame_painted(world)
            await self._wait(_STEP_PAGE_TIME_S)
            if place["top"] > _MAX_HEIGHT_PX:
                # A page that is merely long is all there already.
                self.is_endless = self.is_endless or place["height"] > _ENDLESS_GROWTH * first_height
                return
            if not place["atEnd"]:
                continue
            await self._wait(_END_PAGE_TIME_S)
            await self._tell_observers(world)
            height = await _step(world, "height", index) or 0
            if index == 0 and world.parent_id is None:
                self.heights_px.append(height)
            if height <= place["height"] + 2:
                return
            growths += 1
            if growths >= _MAX_GROWTHS:
                self.is_endless = True
                return

    async def _tell_observers(self, world: FrameWorld) -> None:
        # What came into view or went out of it is told while the page's time runs. Told together with what
        # the next step brings, it would be lost on the many pages that look at the first entry only.
        await frame_painted(world)
        await self._wait(_STEP_PAGE_TIME_S)

    async def _wait(self, page_time_s: float) -> None:
        # A response that does not come would hold up every step.
        if not self._has_stalled:
            self._has_stalled = not await self._rest(page_time_s)


async def _step(world: FrameWorld, name: str, *arguments: Any) -> Any:
    return await call_or_none(world, "scroll", name, *arguments)
