"""A page and its panes are scrolled through, so that texts and images come into view."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from mind2web2.capture.page.devtools import ScriptError, send
from mind2web2.capture.page.isolated_world import FrameWorld
from mind2web2.capture.page.page_tools import Rest, call_or_none, settle, wait_for_paint

log = logging.getLogger(__name__)

_MAX_PANES = 12
_MAX_HEIGHT_PX = 60_000
_MAX_GROWTHS = 30
# A list that still grows after so many batches when the time runs out counts as endless.
_MANY_GROWTHS = 10
_ENDLESS_GROWTH = 1.5
_MAX_GATHERING_STEPS = 150
# Long enough for scripts that wait until scrolling has stopped.
_STEP_PAGE_TIME_S = 0.3
_END_PAGE_TIME_S = 1.5
_SCROLL_EVENTS = (
    "scroll",
    "scrollend",
    "scrollsnapchange",
    "contentvisibilityautostatechange",
)


@dataclass(frozen=True, slots=True)
class Scrolled:
    """How far a page was scrolled.

    Args:
        rounds: steps of one screen, panes and frames included.
        is_endless: it kept growing until a bound was met.
        is_cut: the time ran out before the end was reached.
        gathered_rows: of lists that drop rows out of view, put back into the page behind the rows
            in view.
    """

    rounds: int = 0
    is_endless: bool = False
    is_cut: bool = False
    gathered_rows: int = 0


async def scroll_through(worlds: Sequence[FrameWorld], deadline_s: float, rest: Rest) -> Scrolled:
    """Scroll every frame and pane to its end until nothing more appears, then back to the top.

    A document on which scrolling has no effect is not scrolled.
    """
    tour = _Tour(rest, worlds[0])
    is_cut = False
    try:
        async with asyncio.timeout(deadline_s):
            for world in worlds:
                await tour.through(world)
    except TimeoutError:
        tour.is_endless = tour.growths >= _MANY_GROWTHS
        is_cut = not tour.is_endless
    # A step that was cut off may have scrolled all the same.
    if tour.rounds or is_cut or tour.is_endless:
        await tour.back_to_the_top(worlds)
    return Scrolled(tour.rounds, tour.is_endless, is_cut, tour.gathered_rows)


class _Tour:
    def __init__(self, rest: Rest, page: FrameWorld) -> None:
        self._rest = rest
        self._page = page
        self._has_stalled = False
        self.rounds = 0
        self.growths = 0
        self.is_endless = False
        self.gathered_rows = 0

    async def through(self, world: FrameWorld) -> None:
        place = await _scroll_step(world, "begin", _MAX_PANES)
        if place is None or not (
            await _may_react(world, place) or await self._reacts_to_its_end(world)
        ):
            return
        await _scroll_step(world, "noteHidden")
        # A page whose list begins only once its end is seen to be in view has no pane before.
        for _ in range(2):
            await self._notify_observers(world)
        panes = await _scroll_step(world, "panes", _MAX_PANES) or 0
        for index in range(panes):
            await self._through_pane(world, index)
            if await _scroll_step(world, "rewind", index):
                await self._gather(world, index)

    async def back_to_the_top(self, worlds: Sequence[FrameWorld]) -> None:
        for world in worlds:
            await _scroll_step(world, "top")
        await wait_for_paint(self._page)
        if not self._has_stalled:
            await settle(self._page, self._rest, _END_PAGE_TIME_S)
        for world in worlds:
            self.gathered_rows += await _scroll_step(world, "place") or 0

    async def _reacts_to_its_end(self, world: FrameWorld) -> bool:
        """Tell whether the document changes at its end, as a timer of the page may make it."""
        if not await _scroll_step(world, "toEnd"):
            return False
        await self._notify_observers(world)
        has_changed = bool(await _scroll_step(world, "hasChanged"))
        await _scroll_step(world, "top")
        return has_changed

    async def _gather(self, world: FrameWorld, index: int) -> None:
        for _ in range(_MAX_GATHERING_STEPS):
            await self._wait_for_paint(world)
            await self._wait(_STEP_PAGE_TIME_S)
            place = await _scroll_step(world, "gather", index)
            if place is None or not place["isMore"]:
                return
            self.rounds += 1
        self.is_endless = True

    async def _through_pane(self, world: FrameWorld, index: int) -> None:
        self.growths = first_height = 0
        while True:
            place = await _scroll_step(world, "down", index)
            if place is None:
                return
            self.rounds += 1
            first_height = first_height or place["height"]
            await self._wait_for_paint(world)
            await self._wait(_STEP_PAGE_TIME_S)
            if place["top"] > _MAX_HEIGHT_PX:
                # A page that is merely long is all there already.
                self.is_endless = (
                    self.is_endless or place["height"] > _ENDLESS_GROWTH * first_height
                )
                return
            if not place["atEnd"]:
                continue
            await self._wait(_END_PAGE_TIME_S)
            await self._notify_observers(world)
            height = await _scroll_step(world, "height", index) or 0
            if height <= place["height"] + 2:
                return
            self.growths += 1
            if self.growths >= _MAX_GROWTHS:
                self.is_endless = True
                return

    async def _notify_observers(self, world: FrameWorld) -> None:
        # The page's observers are called while its time runs. Where two steps come in one call, the
        # many pages that look at the first entry only miss the second.
        await self._wait_for_paint(world)
        await self._wait(_STEP_PAGE_TIME_S)

    async def _wait_for_paint(self, world: FrameWorld) -> None:
        # A frame may never be painted, but only the page shows that the browser is late.
        await wait_for_paint(self._page)
        if world is not self._page:
            await wait_for_paint(world)

    async def _wait(self, page_time_s: float) -> None:
        # A response that does not come would hold up every step.
        if not self._has_stalled:
            self._has_stalled = not await self._rest(page_time_s)


class _Start(TypedDict):
    """The findings of the first step of scrolling in a document."""

    isLazy: bool
    hasScripts: bool


async def _may_react(world: FrameWorld, place: _Start) -> bool:
    """Tell whether a document has parts that load or change when they come into view."""
    if place["isLazy"] or not place["hasScripts"]:
        return bool(place["isLazy"])
    if (
        world.parent_id is not None
    ):  # of frames the browser does not tell the listeners of the window
        return True
    try:
        document = await world.handle("() => document")
        window = await _main_object(world, "window")
        for target, depth in ((window, 1), (document, -1)):
            reply = await send(
                world.session,
                "DOMDebugger.getEventListeners",
                objectId=target,
                depth=depth,
                pierce=True,
            )
            if any(listener["type"] in _SCROLL_EVENTS for listener in reply["listeners"]):
                return True
        prototype = await _main_object(world, "IntersectionObserver.prototype")
        observers = await send(world.session, "Runtime.queryObjects", prototypeObjectId=prototype)
    except ScriptError as error:
        log.debug("listeners not found out url=%s reason=%s", world.url, error)
        return True
    return bool(observers["objects"]["description"] != "Array(0)")


async def _main_object(world: FrameWorld, expression: str) -> str:
    reply = await send(world.session, "Runtime.evaluate", expression=expression)
    if "objectId" not in reply["result"]:
        raise ScriptError(f"{expression} is not an object")
    return str(reply["result"]["objectId"])


async def _scroll_step(world: FrameWorld, name: str, *arguments: Any) -> Any:
    return await call_or_none(world, "scroll", name, *arguments)
