"""A page loaded for a test of our scripts, with the worlds and the clock that captures have."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from patchright.async_api import Error

from mind2web2.capture.page.isolated_world import FrameWorld, open_worlds, script
from mind2web2.capture.page.visit import PageClock

FOLDER = Path(__file__).parent
_SEEN = (
    f"() => {{ ({script('page_tools')})(); return "
    f"[...pageTools.look().texts().values()].join(' | '); }}"
)


@dataclass(frozen=True)
class Loaded:
    """A page that has come to rest."""

    page: Any
    session: Any
    clock: PageClock
    worlds: list[FrameWorld]

    async def rest(self, page_time_s):
        """Let the page's timers and requests do what they are about to."""
        return await self.clock.advance(page_time_s, 10)

    async def seen(self, frame=0):
        """Return all text that can be seen in a frame, its pieces separated by bars."""
        return await self.worlds[frame].evaluate(_SEEN)

    async def value(self, expression, frame=0):
        """Return the value of an expression about the document."""
        return await self.worlds[frame].evaluate(f"() => ({expression})")


_sessions = []


async def end_sessions(page):
    """Give the page its own clock back, and forget its document."""
    while _sessions:
        with suppress(Error):  # its page is closed
            await _sessions.pop().detach()
    await page.goto("about:blank")


async def load(page, html="", url=None):
    """Show HTML, or what a URL answers, and let a second of its time pass."""
    session = await page.context.new_cdp_session(page)
    _sessions.append(session)
    clock = PageClock(session)
    if url is None:
        await page.set_content(html)
    else:
        await page.goto(url)
    await clock.advance(1.0, 10)
    return Loaded(page, session, clock, await open_worlds(page, session))


def lines(name):
    """Return the lines of a file of cases."""
    return (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines()


def cases(name):
    """Return the cases of a file, each a list of its parts."""
    text = (FOLDER / f"{name}.txt").read_text(encoding="utf-8").removesuffix("\n")
    return [case.split("\n----\n") for case in text.split("\n====\n")]


def named_cases(name):
    """Return the cases of a file whose first part is the name of the case."""
    return [pytest.param(*parts, id=case) for case, *parts in cases(name)]
