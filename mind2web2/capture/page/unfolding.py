"""Sections of a page that are opened, each by its own control.

Presses can neither follow links nor send forms, nothing is typed, and text that no control on the
page would show stays hidden. States that exclude each other are kept side by side, as copies in the
page.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mind2web2.capture.page.isolated_world import FrameWorld
from mind2web2.capture.page.page_tools import Rest, call_or_none, settle

log = logging.getLogger(__name__)

_MAX_ROUNDS = 6
_MAX_PRESSES_A_ROUND = 150
_MAX_PRESSES_ALONE = 80
_MAX_MORE_ROUNDS = 10
_MAX_MORE_PRESSES_A_ROUND = 40
# Everything is open by then and only has to be put in order; a page whose scripts never rest may
# not let us.
_FINISH_LIMIT_S = 6.0
# The script's answer where a tab was open already and another one was opened first.
_PRESSED_ANOTHER = 2
# Sections may need time to open: for transitions, and for requests to the server.
_OPENING_PAGE_TIME_S = 1.0


@dataclass(frozen=True, slots=True)
class Unfolded:
    """Sections that were opened.

    Args:
        summary: such as ``"details: 3"``, for the record.
        is_cut: the time ran out, or a bound was met, before everything was open.
        notes: which bounds were met, such as ``"closed sections left shut: 100"``.
    """

    summary: tuple[str, ...] = ()
    is_cut: bool = False
    notes: tuple[str, ...] = ()


async def unfold(worlds: Sequence[FrameWorld], deadline_s: float, rest: Rest) -> Unfolded:
    """Open the folded sections of a page, in every frame, within ``deadline_s`` seconds.

    Everything opened is in the page afterwards, text and screenshot alike; nothing seen before is
    lost.
    """
    counts: Counter[str] = Counter()
    left: Counter[str] = Counter()
    unfoldings = [_Unfolding(world, rest) for world in worlds]
    is_cut = False
    try:
        async with asyncio.timeout(deadline_s):
            for unfolding in unfoldings:
                await unfolding.run()
    except TimeoutError:
        is_cut = True
    try:
        async with asyncio.timeout(min(deadline_s, _FINISH_LIMIT_S)):
            for unfolding in unfoldings:
                counts.update(await unfolding.finish())
                left.update(unfolding.left)
    except TimeoutError:
        is_cut = True
    summary = tuple(f"{kind}: {number}" for kind, number in counts.items() if number)
    notes = tuple(f"{kind} left shut: {number}" for kind, number in left.items() if number)
    return Unfolded(summary, is_cut or bool(notes), notes)


class _Unfolding:
    """The unfolding of one frame."""

    def __init__(self, world: FrameWorld, rest: Rest) -> None:
        self._world = world
        self._rest = rest
        self.left: Counter[str] = Counter()

    async def run(self) -> None:
        if await self._step("begin"):
            await settle(self._world, self._rest, _OPENING_PAGE_TIME_S)
        await self._open_sections()
        if await self._show_more():
            await self._open_sections()
        if await self._step("restore"):
            await settle(self._world, self._rest, _OPENING_PAGE_TIME_S)

    async def finish(self) -> dict[str, int]:
        outcome: dict[str, dict[str, int]] = await self._step("finish") or {}
        self.left.update(outcome.get("left", {}))
        return outcome.get("counts", {})

    async def _open_sections(self) -> None:
        for _ in range(_MAX_ROUNDS):
            if not await self._step("press", _MAX_PRESSES_A_ROUND):
                return
            await settle(self._world, self._rest, _OPENING_PAGE_TIME_S)
            alone = await self._step("sort") or 0
            self.left["tabs and sections"] += max(alone - _MAX_PRESSES_ALONE, 0)
            for index in range(min(alone, _MAX_PRESSES_ALONE)):
                await self._open_alone(index)

    async def _open_alone(self, index: int) -> None:
        if await self._step("pressAlone", index) == _PRESSED_ANOTHER:
            await settle(self._world, self._rest, _OPENING_PAGE_TIME_S)
            await self._step("pressAlone", index)
        await settle(self._world, self._rest, _OPENING_PAGE_TIME_S)
        await self._step("keepAlone", index)

    async def _show_more(self) -> bool:
        for number in range(_MAX_MORE_ROUNDS):
            if not await self._more():
                return number > 0
            await settle(self._world, self._rest, _OPENING_PAGE_TIME_S)
            outcome = await self._step("sortMore") or {}
            if outcome.get("left"):
                await settle(self._world, self._rest, _OPENING_PAGE_TIME_S)
                return True
        self.left["lists with a button for more"] += await self._more(is_count_only=True)
        return True

    async def _more(self, is_count_only: bool = False) -> int:
        pressed: int | None = await call_or_none(
            self._world,
            "unfold_controls unfold_more",
            _MAX_MORE_PRESSES_A_ROUND,
            _MAX_MORE_ROUNDS,
            is_count_only,
        )
        return pressed or 0

    async def _step(self, name: str, *arguments: Any) -> Any:
        return await call_or_none(self._world, "unfold_controls unfold", name, *arguments)
