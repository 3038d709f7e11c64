"""The screenshot of a whole page, as a JPEG straight from the browser."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

from mind2web2.capture.page.devtools import ScriptError, send
from mind2web2.capture.page.isolated_world import FrameWorld, worlds_with_more
from mind2web2.capture.page.page_tools import call_or_none, wait_for_paint

if TYPE_CHECKING:
    from patchright.async_api import CDPSession

    from mind2web2.capture.models import CaptureSettings

log = logging.getLogger(__name__)

_SHOT_LIMIT_S = 10.0
_PREPARE_LIMIT_S = 5.0
_IMAGES_LIMIT_S = 3.0
# JPEGs of one colour are far smaller than those of anything to be read, so only small ones are
# looked at.
_SUSPICIOUS_BYTES_A_PIXEL = 0.012
_SAME_BRIGHTNESS = 4
# One, another where it is blank, another where the screen turns out to have more dots than pixels.
_MAX_SHOTS = 3

# Every task that runs moves the clock on by as long as it took.
_RUN_CLOCK = {
    "policy": "advance",
    "budget": 1000 * _SHOT_LIMIT_S,
    "maxVirtualTimeTaskStarvationCount": 1,
}


@dataclass(frozen=True, slots=True)
class _Extent:
    """The size of the pictured part of a page, in CSS pixels."""

    width_px: int
    height_px: int


@dataclass(frozen=True, slots=True)
class _Looks:
    width_px: int
    is_blank: bool


async def take_screenshot(
    session: CDPSession, worlds: Sequence[FrameWorld], settings: CaptureSettings
) -> bytes | None:
    """Return a JPEG of the page down to the height of the settings, with panes unfolded.

    It is as wide as the settings' viewport; a page that is wider is scaled down within reason.
    ``None`` where the browser yields no image, or only a single colour. The window may be as high
    as the page afterwards.
    """
    extent = await _prepare(worlds, settings)
    async with _running_clock(session):
        is_tall = extent.width_px == settings.viewport_width_px and await _fits_tall(
            session, worlds[0], extent, settings
        )
        return await _picture(session, worlds[0], extent, settings, is_tall)


async def _picture(
    session: CDPSession,
    world: FrameWorld,
    extent: _Extent,
    settings: CaptureSettings,
    is_tall: bool,
) -> bytes | None:
    scale = settings.viewport_width_px / extent.width_px
    for _ in range(_MAX_SHOTS):
        jpeg = await _shoot(session, extent, scale, settings, is_tall)
        if jpeg is None:
            return None
        looks = await asyncio.to_thread(_looks_of, jpeg, extent)
        # Screens with more than one dot a pixel make the image larger, but not in every browser.
        correction = settings.viewport_width_px / looks.width_px
        if looks.is_blank:
            await wait_for_paint(world)
        elif abs(correction - 1) < 0.01:
            return jpeg
        scale *= correction
    return None


async def _fits_tall(
    session: CDPSession, world: FrameWorld, extent: _Extent, settings: CaptureSettings
) -> bool:
    """Make the window as high as the image, and say whether that leaves the page's layout as it is.

    The browser paints a window in two thirds of the time that it needs for an area beyond one.
    Parts whose height is a share of the window's would grow with it.
    """
    height_px = min(extent.height_px, settings.max_screenshot_height_px)
    await set_window(session, settings, height_px)
    if await _step(world, "height") == extent.height_px:
        return True
    await set_window(session, settings)
    return False


async def set_window(
    session: CDPSession, settings: CaptureSettings, height_px: int | None = None
) -> None:
    """Give the page's window a height, by default that of the settings."""
    try:
        await send(
            session,
            "Emulation.setDeviceMetricsOverride",
            width=settings.viewport_width_px,
            height=height_px or settings.viewport_height_px,
            deviceScaleFactor=1,
            mobile=False,
        )
    except ScriptError as error:
        log.debug("window not resized reason=%s", error)


async def _prepare(worlds: Sequence[FrameWorld], settings: CaptureSettings) -> _Extent:
    extent = _Extent(settings.viewport_width_px, settings.viewport_height_px)
    try:
        async with asyncio.timeout(_PREPARE_LIMIT_S):
            # Inner frames first, as each grows within its parent.
            for world in reversed((await worlds_with_more(list(worlds)))[1:]):
                size = await _step(world, "prepare", settings.max_screenshot_height_px)
                parent = next((one for one in worlds if one.frame_id == world.parent_id), None)
                if size and parent:
                    await _step(parent, "growFrame", world.frame_id, size["height"])
            size = await _step(worlds[0], "prepare", settings.max_screenshot_height_px)
            if size:
                extent = _Extent(max(size["width"], 1), max(size["height"], 1))
    except TimeoutError:
        log.debug("page not prepared for its screenshot in time url=%s", worlds[0].url)
    await _wait_for_images(worlds)
    return extent


async def _wait_for_images(worlds: Sequence[FrameWorld]) -> None:
    try:
        async with asyncio.timeout(_IMAGES_LIMIT_S):
            await asyncio.gather(*(call_or_none(world, "images_ready") for world in worlds))
    except TimeoutError:
        log.debug("images not decoded in time url=%s", worlds[0].url)


async def _shoot(
    session: CDPSession,
    extent: _Extent,
    scale: float,
    settings: CaptureSettings,
    is_tall: bool,
) -> bytes | None:
    limit_px = settings.max_screenshot_height_px * extent.width_px // settings.viewport_width_px
    clip = {
        "x": 0,
        "y": 0,
        "width": extent.width_px,
        "height": min(extent.height_px, limit_px),
        "scale": scale,
    }
    area = {} if is_tall and scale == 1 else {"captureBeyondViewport": True, "clip": clip}
    try:
        async with asyncio.timeout(_SHOT_LIMIT_S):
            reply = await send(
                session,
                "Page.captureScreenshot",
                format="jpeg",
                quality=settings.jpeg_quality,
                **area,
            )
    except (ScriptError, TimeoutError) as error:
        log.debug("no screenshot reason=%s", error)
        return None
    return base64.b64decode(reply["data"])


@asynccontextmanager
async def _running_clock(session: CDPSession) -> AsyncIterator[None]:
    """Let the page's time run, about as fast as ours.

    While it stands still, one large screenshot in a few never comes: the browser's own timers for
    painting stand still with it.
    """
    await send(session, "Emulation.setVirtualTimePolicy", **_RUN_CLOCK)
    yield
    # This is skipped if the screenshot failed: such a page would not answer this either.
    await send(session, "Emulation.setVirtualTimePolicy", policy="pause")


def _looks_of(jpeg: bytes, extent: _Extent) -> _Looks:
    from PIL import Image, ImageStat

    with Image.open(BytesIO(jpeg)) as image:
        width_px = image.width
        if len(jpeg) > extent.width_px * extent.height_px * _SUSPICIOUS_BYTES_A_PIXEL:
            return _Looks(width_px, is_blank=False)
        image.draft("L", (image.width // 8, image.height // 8))
        darkest, lightest = ImageStat.Stat(image.convert("L")).extrema[0]
    return _Looks(width_px, is_blank=lightest - darkest <= _SAME_BRIGHTNESS)


async def _step(world: FrameWorld, name: str, *arguments: Any) -> Any:
    return await call_or_none(world, "prepare_screenshot", name, *arguments)
