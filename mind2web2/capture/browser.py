"""The browser of a run: one process, a clean context for each page, started again when it dies."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from mind2web2.capture.browser_process import BrowserProcess
from mind2web2.capture.browser_program import BrowserProgram, find_browser, user_agent
from mind2web2.errors import BrowserGoneError

if TYPE_CHECKING:
    from patchright.async_api import (
        BrowserContext,
        CDPSession,
        Page,
        ViewportSize,
    )

    from mind2web2.capture.models import CaptureSettings
    from mind2web2.capture.page.devtools import BrandVersion, UserAgentOverride

log = logging.getLogger(__name__)

# A browser that takes longer to open or close a tab has stopped working.
TAB_TIMEOUT_S = 30.0
LOCALE = "en-US"
TIME_ZONE = "UTC"
_LANGUAGES = "en-US,en"


class Browser:
    """Opens pages in a browser, from the first page to the end of the ``async with`` block.

    With ``settings.cdp_url`` it is the user's own running browser, with the user's own logins. It
    does not go through the proxy: what its pages may connect to is not filtered, so an address has
    to be checked (``FilteringProxy.outlook``) before it is opened there.

    Raises:
        MachineError: on entering or on opening a page: there is no browser.
    """

    def __init__(self, settings: CaptureSettings) -> None:
        self._settings = settings
        self._program: BrowserProgram | None = None
        self._process: BrowserProcess | None = None
        self._starting: asyncio.Task[BrowserProcess] | None = None
        self._is_closed = False

    async def __aenter__(self) -> Self:
        if self._settings.cdp_url is None:
            self._program = find_browser(self._settings.headless)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._is_closed = True
        if self._starting is not None:
            await _wait_to_the_end(self._starting)
        if self._process is not None:
            await _wait_to_the_end(asyncio.create_task(self._process.stop()))

    async def start(self) -> str:
        """Start the browser if it does not run, and return its version."""
        return (await self._running()).browser.version

    @asynccontextmanager
    async def page(
        self, server_url: str, *, ignore_certificate_errors: bool = False
    ) -> AsyncIterator[tuple[Page, CDPSession]]:
        """Open a page in a context of its own, which connects only by the proxy at ``server_url``.

        Raises:
            BrowserGoneError: the browser died under it; whatever the block was doing is
                interrupted.
            MachineError: the browser does not start.
        """
        process = await self._running()
        try:
            async with _interrupt_when_gone(process):
                tab = await _open_tab(
                    process, self._open(process, server_url, ignore_certificate_errors)
                )
                try:
                    yield tab.page, tab.session
                finally:
                    # Closing goes on by itself if we are interrupted again.
                    await asyncio.shield(process.do(_close(process, tab)))
        except Exception as error:
            # If the browser has ended, that is the reason of any failure in it.
            if process.gone.is_set() and not isinstance(error, BrowserGoneError):
                raise BrowserGoneError("the browser ended while the page was open") from error
            raise

    async def _running(self) -> BrowserProcess:
        """Return the running browser; all who find it dead wait for the same new one."""
        if self._process is not None and not self._process.gone.is_set():
            return self._process
        if self._starting is None or self._starting.done():
            assert not self._is_closed, "the browser is closed"
            self._starting = asyncio.create_task(self._start())
        return await asyncio.shield(self._starting)

    async def _start(self) -> BrowserProcess:
        if self._process is not None:
            if self._process.is_ours:
                log.warning("browser ended unexpectedly, starting it again")
            else:
                log.warning("connection to the browser was lost, connecting again")
            await self._process.stop()
            self._process = None
        if self._settings.cdp_url is not None:
            self._process = await BrowserProcess.connect(self._settings.cdp_url)
        else:
            assert self._program is not None, "entered with `async with`"
            self._process = await BrowserProcess.start(self._program, self._settings)
        return self._process

    async def _open(
        self, process: BrowserProcess, server_url: str, ignore_certificate_errors: bool
    ) -> _Tab:
        if not process.is_ours:
            return await self._open_beside_the_users_tabs(process)
        size: ViewportSize = {
            "width": self._settings.viewport_width_px,
            "height": self._settings.viewport_height_px,
        }
        context = await process.browser.new_context(
            # The proxy is used for loopback as well, whatever the environment tells patchright.
            proxy={"server": server_url, "bypass": "<-loopback>"},
            viewport=size,
            screen=size,
            locale=LOCALE,
            timezone_id=TIME_ZONE,
            permissions=[],  # an empty list refuses them all, none at all leaves some as they are
            accept_downloads=False,
            ignore_https_errors=ignore_certificate_errors,
            color_scheme="light",
            reduced_motion="reduce",
        )
        try:
            page = await context.new_page()
            session = await context.new_cdp_session(page)
            await session.send(
                "Emulation.setUserAgentOverride", dict(_looks(process.browser.version))
            )
        except BaseException:
            await context.close()
            raise
        return _Tab(page, session, context)

    async def _open_beside_the_users_tabs(self, process: BrowserProcess) -> _Tab:
        context = process.browser.contexts[0]
        page = await context.new_page()
        try:
            tab = _Tab(page, await context.new_cdp_session(page), context=None)

            def note(
                popup: Page,
            ) -> None:  # patchright takes no builtin such as list.append
                tab.popups.append(popup)

            page.on("popup", note)
            await page.set_viewport_size(
                {
                    "width": self._settings.viewport_width_px,
                    "height": self._settings.viewport_height_px,
                }
            )
        except BaseException:
            await page.close()
            raise
        return tab


@dataclass(slots=True)
class _Tab:
    """A page with its session.

    ``context`` is to be closed with it, and ``None`` where it is the user's.
    """

    page: Page
    session: CDPSession
    context: BrowserContext | None
    popups: list[Page] = field(default_factory=list)


@asynccontextmanager
async def _interrupt_when_gone(process: BrowserProcess) -> AsyncIterator[None]:
    """Interrupt the block with a ``TimeoutError`` when the browser ends."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(None) as limit:

        async def interrupt() -> None:
            await process.gone.wait()
            limit.reschedule(loop.time())

        watcher = asyncio.create_task(interrupt())
        try:
            yield
        finally:
            watcher.cancel()


async def _open_tab(process: BrowserProcess, opening: Coroutine[Any, Any, _Tab]) -> _Tab:
    """Return the tab; one that opens after its caller gave up is closed."""
    task = process.do(opening)
    try:
        async with asyncio.timeout(TAB_TIMEOUT_S):
            return await asyncio.shield(task)
    except TimeoutError as error:
        process.do(_close_late(process, task))
        await process.end_unless_lent()
        raise BrowserGoneError(f"the browser opened no page within {TAB_TIMEOUT_S:g} s") from error
    except Exception as error:  # patchright's own, or a plain one where its driver has died
        await process.end_unless_lent()
        raise BrowserGoneError("the browser did not open a page") from error
    except asyncio.CancelledError:
        process.do(_close_late(process, task))
        raise


async def _close_late(process: BrowserProcess, opening: asyncio.Task[_Tab]) -> None:
    await asyncio.wait([opening])
    if not opening.cancelled() and opening.exception() is None:
        await _close(process, opening.result())


async def _close(process: BrowserProcess, tab: _Tab) -> None:
    try:
        async with asyncio.timeout(TAB_TIMEOUT_S):
            if tab.context is not None:
                await tab.context.close()
            else:
                await asyncio.gather(*(page.close() for page in (tab.page, *tab.popups)))
    except TimeoutError:
        log.warning("browser closed no page within %g s", TAB_TIMEOUT_S)
        await process.end_unless_lent()
    except (
        Exception
    ) as error:  # patchright's own where it is gone already, plain ones where its driver is
        log.debug("page not closed reason=%s", error)


async def _wait_to_the_end(task: asyncio.Task[Any]) -> None:
    """Wait for a task that has a time limit of its own to its end, even when cancelled."""
    was_cancelled = False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            was_cancelled = True
    if not task.cancelled() and (error := task.exception()) is not None:
        log.debug("browser task failed reason=%s", error)
    if was_cancelled:
        raise asyncio.CancelledError


def _looks(version: str) -> UserAgentOverride:
    """Return an ordinary browser's name for a page's headers and scripts, not a headless one's."""
    major = version.partition(".")[0]
    platform = "macOS" if sys.platform == "darwin" else "Linux"

    def brands(own_version: str) -> list[BrandVersion]:
        return [
            {"brand": "Not:A-Brand", "version": "8"},
            {"brand": "Chromium", "version": own_version},
        ]

    return {
        "userAgent": user_agent(version),
        "acceptLanguage": _LANGUAGES,
        "userAgentMetadata": {
            "brands": brands(major),
            "fullVersionList": brands(version),
            "platform": platform,
            "platformVersion": "",
            "architecture": "x86",
            "model": "",
            "mobile": False,
        },
    }
