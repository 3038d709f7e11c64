"""One page in its tab: opened, settled, and held in place until it has been read."""

from __future__ import annotations

import asyncio
import logging
import re
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeVar

from mind2web2.capture.page.devtools import (
    PausedRequest,
    ReceivedData,
    ScriptError,
    frame_tree,
    send,
)
from mind2web2.capture.page.isolated_world import (
    WORLD_NAME,
    FrameWorld,
    open_main_world,
    open_worlds,
)
from mind2web2.capture.page.navigation import Guard, Navigation
from mind2web2.capture.page.page_tools import wait_for_paint
from mind2web2.capture.page_failure import PageFailureError, failure_of_navigation
from mind2web2.utils.aio import end_all

if TYPE_CHECKING:
    from patchright.async_api import CDPSession, Dialog, Page, Request

    from mind2web2.capture.models import CaptureSettings

log = logging.getLogger(__name__)

T = TypeVar("T")

_MEGABYTE = 1024**2
# Chromium lets timers run in one go; higher values let a page that never rests take longer turns.
_MAX_TASK_STARVATION = 100_000

# Timers that fire later than this after the page's last response are ignored.
SETTLE_PAGE_TIME_S = 6.0
# A page with less text may be a step on the way to another page.
_CONTENT_CHARS = 60
_ON_THE_WAY = re.compile(
    r"redirect|just a moment|please wait|one "
    r"moment|loading|checking|verif|weiterleit|umgeleitet|laden"
    r"|chargement|redirig|cargando|carregando|caricamento|加载|跳转|リダイレクト|読み込み",
    re.IGNORECASE,
)
_ON_THE_WAY_CHARS = 600
_DOWNLOAD_NOTICE = re.compile(
    r"download|herunterladen|t[ée]l[ée]charg|descarg|scarica|下载|ダウンロード",
    re.IGNORECASE,
)
_MAX_HOPS = 6
_LEADING_ON_PAGE_TIME_S = 2.0
_MAX_DIALOGS = 20
_WATCH_AFTER_S = 2.0
_BLOCKED_AFTER_S = 4.0
_STOP_TRIES = 4
_AFTER_STOP_PAGE_TIME_S = 1.0
_STOP_LIMIT_S = 1.0
_POLL_S = 0.1
_PARSE_LIMIT_S = 3.0
# Cancels the navigations of the main frame that lead to another document.
# The page's frames come by its own clock, as its timers do, so that numbers that count up end.
_FRAMES_BY_THE_CLOCK = (
    "requestAnimationFrame = (draw) => setTimeout(() => draw(performance.now()), 16);"
    " cancelAnimationFrame = clearTimeout"
)
_STAY = (
    "if (self === top) navigation.addEventListener('navigate', (event) =>"
    " event.destination.sameDocument || event.preventDefault())"
)
_DROPPED = "the server dropped the connection within the page"
_DECODING_FAILED = "the server's compression of the page is broken"


@dataclass(frozen=True, slots=True)
class PageState:
    """Text and marks of a page as they are now; see ``scripts/page_state.js``."""

    text: str
    title: str
    refresh_after_s: float | None
    marks: tuple[str, ...]
    url: str
    is_parsed: bool
    is_cut_off: bool
    """Its parsing was stopped before the end."""
    is_mojibake: bool
    """It is UTF-8 that was read in another encoding."""

    @property
    def has_content(self) -> bool:
        """Tell whether this is a page to stay on, rather than one that is about to make way."""
        if self.refresh_after_s is not None and self.refresh_after_s <= 1:
            return False
        if len(self.text) < _ON_THE_WAY_CHARS and _ON_THE_WAY.search(f"{self.title} {self.text}"):
            return False
        return len(self.text) >= _CONTENT_CHARS

    def stays_for(self, *, is_unwanted: bool) -> bool:
        """Tell whether the page is read rather than a file that it asked for by itself.

        Args:
            is_unwanted: the file is offered for saving, or of a type that no judge can be shown.
        """
        if self.has_content or (is_unwanted and len(self.text) >= _CONTENT_CHARS):
            return True
        words = f"{self.title} {self.text}"
        is_step = _ON_THE_WAY.search(words) or _DOWNLOAD_NOTICE.search(words)
        return is_unwanted and bool(self.text) and not is_step


class Visit:
    """A visit to one page, within the bounds of the settings; use as an async context manager.

    Attributes:
        notes: reasons why the page could not be read as intended.
        is_complete: the document arrived whole, and its scripts were not stopped.
        is_broken: the connection was lost while the document was arriving; another try may bring
            all of it.
    """

    def __init__(
        self,
        page: Page,
        session: CDPSession,
        settings: CaptureSettings,
        guard: Guard | None = None,
    ) -> None:
        self.page = page
        self.session = session
        self.settings = settings
        self._guard = guard
        self.notes: list[str] = []
        self.clock = PageClock(session)
        self.is_complete = True
        self.is_broken = False
        self._dialogs = 0
        self._background: set[asyncio.Task[Any]] = set()
        self._lost: asyncio.Future[PageFailureError] = asyncio.get_running_loop().create_future()
        self._torn = asyncio.Event()
        self._torn_because = ""
        self._cut_off = asyncio.Event()
        self._scripts_stopped = False
        self._is_held = False
        # A reload within ``_has_content`` and the waiting in ``_settle`` take turns: there is one
        # clock.
        self._turn = asyncio.Lock()
        self._size = PageSize(session, settings, self._lose)

    async def __aenter__(self) -> Self:
        tree = await frame_tree(self.session)
        self.navigation = Navigation(
            self.session,
            tree["frame"]["id"],
            self.settings.max_document_bytes,
            self._guard,
            self._has_content,
        )
        self.page.on("dialog", self._on_dialog)
        self.page.on("crash", self._on_crash)
        self.page.on("requestfailed", self._on_request_failed)
        source, event = self._other_pages
        source.on(event, self._on_other_page)
        await self._size.start()
        await self.navigation.start()
        await send(
            self.session,
            "Page.addScriptToEvaluateOnNewDocument",
            source=_FRAMES_BY_THE_CLOCK,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        source, event = self._other_pages
        source.remove_listener(event, self._on_other_page)
        self._lost.cancel()
        await self.navigation.close()
        await end_all(self._background)

    @property
    def _other_pages(self) -> tuple[Any, str]:
        """Return what tells of pages that this one opens, and by which event."""
        if self.settings.cdp_url is None:
            return self.page.context, "page"
        # The context is the user's, and other tabs in it are none of ours.
        return self.page, "popup"

    async def open(self, url: str) -> None:
        """Go to the URL and wait until the page is there and has come to rest.

        Raises:
            PageFailureError: there is nothing to read.
        """
        from patchright.async_api import Error

        limit_s = min(self.settings.load_timeout_s, self.settings.answer_timeout_s)
        try:
            await self.within(
                limit_s + 1,
                self.page.goto(url, wait_until="commit", timeout=limit_s * 1000),
            )
        except Error as error:
            if self.navigation.document.file is not None:
                return
            if self.navigation.refusal is not None:
                raise PageFailureError(self.navigation.refusal, "refused_address") from error
            raise failure_of_navigation(error.message) from error
        except TimeoutError as error:
            raise PageFailureError(
                "the page did not answer in time",
                "timeout",
                is_transient=True,
                is_unanswered=True,
            ) from error
        if self.navigation.document.file is None:
            await self._settle()

    async def within(self, limit_s: float, work: Coroutine[Any, Any, T]) -> T:
        """Await the work, unless the page is lost or the time runs out.

        Raises:
            PageFailureError: the page crashed, or is too large.
            TimeoutError: after ``limit_s``.
        """
        task = asyncio.create_task(work)
        watched: set[asyncio.Future[Any]] = {task, self._lost}
        try:
            await asyncio.wait(watched, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            if self._lost.done():
                raise self._lost.result()
            raise TimeoutError
        finally:
            await end_all([task])

    async def stop_scripts(self) -> None:
        """End the scripts of a page that does not let us in, for good."""
        if self._scripts_stopped:
            return
        self._scripts_stopped = True
        self.is_complete = False
        self.notes.append("the page's scripts were stopped, since they did not rest")
        await self._try_to_send("Emulation.setScriptExecutionDisabled", value=True)
        for _ in range(_STOP_TRIES):
            # It ends the running task, which may be a short one before the task that blocks.
            await self._try_to_send("Runtime.terminateExecution")
            if self._lost.done() or await self._try_to_send("DOM.getDocument", depth=0):
                return

    async def _try_to_send(self, method: str, **parameters: Any) -> bool:
        try:
            async with asyncio.timeout(_STOP_LIMIT_S):
                await send(self.session, method, **parameters)
        except (ScriptError, TimeoutError) as error:
            log.debug("page does not obey method=%s reason=%s", method, error)
            return False
        return True

    async def worlds(self, name: str = WORLD_NAME) -> list[FrameWorld]:
        """Return our worlds in all frames as they are now."""
        return await open_worlds(self.page, self.session, name)

    async def state(self, *, with_text: bool = True) -> PageState:
        """Return the marks of the page as they are now, and its text, which takes longest.

        Raises:
            ScriptError: the document was replaced.
        """
        seen = await (await open_main_world(self.session)).call("page_state", with_text)
        return PageState(
            text=seen["text"],
            title=seen["title"],
            refresh_after_s=seen["refreshAfter"],
            marks=tuple(seen["marks"]),
            url=seen["url"],
            is_parsed=seen["isParsed"],
            is_cut_off=seen["isCutOff"],
            is_mojibake=seen["isMojibake"],
        )

    async def rest(self, page_time_s: float, limit_s: float) -> bool:
        """Let the page's timers and requests run; see ``PageClock.advance``."""
        try:
            return await self.within(limit_s + 2, self.clock.advance(page_time_s, limit_s))
        except TimeoutError:
            await self.stop_scripts()
            return False

    async def go_through(self, press: Callable[[], Awaitable[bool]]) -> bool:
        """Let a press lead to another document, and wait for that one.

        False where it leads nowhere.
        """
        hops = self.navigation.started
        self.navigation.is_locked = False
        try:
            if await press():
                await self.rest(_LEADING_ON_PAGE_TIME_S, self.settings.settle_timeout_s)
                await self.rest(0.0, 1.0)
            if self.navigation.started == hops:
                return False
            await self._settle()
        finally:
            self.navigation.is_locked = True
        return self.navigation.document.file is None

    async def _settle(self) -> None:
        for _ in range(_MAX_HOPS):
            async with self._turn:
                await self._wait_until_parsed()
                await self._stay_if_this_is_it()
                hops = self.navigation.started
                rested = await self.rest(SETTLE_PAGE_TIME_S, self.settings.settle_timeout_s)
                await self._stay_if_this_is_it()
            if self.navigation.started == hops and not self.navigation.is_under_way:
                break
        await self._read_whole()
        self.navigation.is_locked = True
        if not rested:
            self.notes.append("requests of the page were still pending when it was read")
            await self._stop_waiting_to_be_painted()

    async def _stop_waiting_to_be_painted(self) -> None:
        """Stop requests that block rendering, such as a stylesheet that does not come."""
        try:
            world = await self.within(_STOP_LIMIT_S, open_main_world(self.session))
            if await wait_for_paint(world):
                return
        except (ScriptError, TimeoutError) as error:
            log.debug("page not entered reason=%s", error)
            return
        await self._try_to_send("Page.stopLoading")
        await self.rest(_AFTER_STOP_PAGE_TIME_S, 1.0)

    async def _wait_until_parsed(self) -> None:
        """Wait until the document has arrived whole, or stop it where it goes on for too long."""
        limit_s = self.settings.load_timeout_s
        self._cut_off.clear()
        watch = asyncio.create_task(self._stop_blockade())
        try:
            await self.within(limit_s, self._wait_until_parsed_or_torn())
        except TimeoutError:
            await self._stop_incomplete(
                f"the page was still loading after {limit_s:g} s and is read as far as it came"
            )
        finally:
            await end_all([watch])

    async def _wait_until_parsed_or_torn(self) -> None:
        ends = [
            asyncio.create_task(self._torn.wait()),
            asyncio.create_task(self._cut_off.wait()),
            asyncio.create_task(self.page.wait_for_load_state("domcontentloaded", timeout=0)),
            asyncio.create_task(self._wait_for_last_document()),
        ]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if self._torn.is_set():
                await self._stop_incomplete(self._torn_because)
        finally:
            await end_all(ends)

    async def _wait_for_last_document(self) -> None:
        """Wait for the end of a document that asked for another one.

        The browser does not tell of it.
        """
        await self.navigation.has_stayed.wait()
        if not self._has_file():
            try:
                await self._poll_parsed_state()
            except ScriptError as error:  # the next document has taken its place
                log.debug("document is gone reason=%s", error)
                await self.page.wait_for_load_state("domcontentloaded", timeout=0)

    async def _has_content(self, is_unwanted: bool) -> bool:
        state = await self._state_within_limit()
        if state is None:
            return False
        if state.is_cut_off and not self._is_held:
            state = await self._load_again()
        if state is None or state.stays_for(is_unwanted=is_unwanted):
            return state is not None
        # Its text may be still to come.
        async with self._turn:
            await self.rest(SETTLE_PAGE_TIME_S, self.settings.settle_timeout_s)
            state = await self._state_within_limit()
        return state is not None and state.stays_for(is_unwanted=is_unwanted)

    async def _read_whole(self) -> None:
        """Load a page again that stopped its own parsing, or was read in a wrong encoding."""
        if self._has_file() or self._is_held:
            return
        try:
            state = await self.within(_STOP_LIMIT_S, self.state())
        except (ScriptError, TimeoutError):
            return
        if state.is_mojibake:
            self.navigation.is_utf8 = True
            self.notes.append("the page is UTF-8, and did not say so")
        if state.is_cut_off or state.is_mojibake:
            await self._load_again()

    async def _load_again(self) -> PageState | None:
        """Load a page once more and keep it in place; ``None`` where it cannot be read then.

        The browser stops parsing a document that asks for another one, even if that is a download.
        """
        page = self.navigation.page
        if page is None:
            return None
        self._is_held = True
        was_locked, self.navigation.is_locked = self.navigation.is_locked, False
        async with self._turn:
            await self._try_to_send(
                "Page.addScriptToEvaluateOnNewDocument",
                source=_STAY,
                worldName=WORLD_NAME,
            )
            await self._load(page.url)
            state = await self._state_within_limit()
            note = "the page was loaded again"
            if state is not None and state.is_cut_off:
                # No event comes before a form is sent or a mail is written.
                await self._try_to_send("Emulation.setScriptExecutionDisabled", value=True)
                await self._load(page.url)
                state = await self._state_within_limit()
                note = "the page was loaded again without its scripts, which stopped its parsing"
        self.navigation.is_locked = was_locked
        if state is not None and not state.is_cut_off:
            self.notes.append(note)
        return state

    async def _load(self, url: str) -> None:
        await self._try_to_send("Page.navigate", url=url)
        if not await self.rest(SETTLE_PAGE_TIME_S, self.settings.settle_timeout_s):
            await self._try_to_send("Page.stopLoading")

    async def _state_within_limit(self) -> PageState | None:
        try:
            return await self.within(_PARSE_LIMIT_S, self._poll_parsed_state())
        except (ScriptError, TimeoutError):
            return None

    async def _shows_text(self) -> bool:
        try:
            return bool((await self.within(_STOP_LIMIT_S, self.state())).text)
        except (ScriptError, TimeoutError):
            return False

    async def _poll_parsed_state(self) -> PageState:
        while not (state := await self.state()).is_parsed:  # noqa: ASYNC110 - the page tells it to no event
            await asyncio.sleep(_POLL_S)
        return state

    async def _stop_incomplete(self, note: str) -> None:
        if note == _DECODING_FAILED and not await self._shows_text():
            raise PageFailureError(note)
        self.is_complete = False
        self.notes.append(note)
        await self._try_to_send("Page.stopLoading")
        if not await self._try_to_send("DOM.getDocument", depth=0):
            await self.stop_scripts()

    async def _stop_blockade(self) -> None:
        """Stop a script that lets nothing else happen while the document is still arriving."""
        while True:
            await asyncio.sleep(_WATCH_AFTER_S)
            try:
                async with asyncio.timeout(_BLOCKED_AFTER_S):
                    state = await self.state(with_text=False)
            except ScriptError:  # between two documents
                continue
            except TimeoutError:
                await self.stop_scripts()
                return
            # The browser does not tell of the end of a document that asked for a mail or an app.
            if state.is_cut_off and not self.navigation.is_under_way:
                self._cut_off.set()

    async def _stay_if_this_is_it(self) -> None:
        if self.navigation.is_under_way or self.navigation.is_locked:
            return
        try:
            if (await self.within(5.0, self.state())).has_content:
                self.navigation.is_locked = True
        except ScriptError:  # another document is taking its place
            return
        except TimeoutError:
            await self.stop_scripts()

    def _on_dialog(self, dialog: Dialog) -> None:
        self._dialogs += 1
        self._in_background(_unless_gone(dialog.dismiss))
        if self._dialogs == _MAX_DIALOGS:
            self._in_background(self.stop_scripts())

    def _on_crash(self, _page: Page) -> None:
        reason = "the page crashed its process"
        if self.settings.cdp_url is None and sys.platform == "linux":
            reason += (
                f", which may use {self.settings.max_page_memory_bytes // 1024**2} MB of memory"
            )
        self._lose(PageFailureError(reason, "crash", is_transient=True))

    def _lose(self, failure: PageFailureError) -> None:
        if not self._lost.done():
            self._lost.set_result(failure)

    def _on_request_failed(self, request: Request) -> None:
        # The event also comes for a document that our own lock aborted.
        if (
            request.is_navigation_request()
            and request.frame == self.page.main_frame
            and not self._has_file()
        ):
            document = self.navigation.document.url.partition("#")[0]
            is_the_document = request.url.partition("#")[0] == document
            failure = request.failure or ""
            if is_the_document and "ABORTED" not in failure:
                # Another try would bring the same bytes where these could not be decoded.
                self.is_broken = "DECODING_FAILED" not in failure
                self._torn_because = _DROPPED if self.is_broken else _DECODING_FAILED
                self._torn.set()

    def _has_file(self) -> bool:
        return self.navigation.document.file is not None

    def _on_other_page(self, page: Page) -> None:
        if page is not self.page:
            self._in_background(_unless_gone(page.close))

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)


async def _unless_gone(end: Callable[[], Awaitable[None]]) -> None:
    """End a dialog or a pop-up, which may have ended by itself."""
    from patchright.async_api import Error

    try:
        await end()
    except Error as error:
        log.debug("dialog or pop-up is gone reason=%s", error.message)


class PageClock:
    """Runs the virtual time of one page. Between calls of ``advance`` its timers stand still.

    Pages render late because they wait for responses or for timers. The browser's virtual time
    (DevTools protocol, ``Emulation.setVirtualTimePolicy``) stands still while a request of the page
    is pending and jumps from timer to timer while none is: seconds of a page's time pass in
    milliseconds of ours, and a slow response is waited for.
    """

    def __init__(self, session: CDPSession) -> None:
        self._session = session
        self._expired = asyncio.Event()
        session.on("Emulation.virtualTimeBudgetExpired", self._on_expired)

    async def advance(self, page_time_s: float, limit_s: float) -> bool:
        """Let so many seconds of the page's time pass, within ``limit_s``.

        Returns:
            Whether all of it passed; otherwise a request is still pending, and timers have run all
            the same.
        """
        self._expired.clear()
        if await self._run("pauseIfNetworkFetchesPending", page_time_s, limit_s):
            return True
        # A response does not come. The timers run without it.
        await self._run("advance", page_time_s, 1.0)
        return False

    async def _run(self, policy: str, page_time_s: float, limit_s: float) -> bool:
        await send(
            self._session,
            "Emulation.setVirtualTimePolicy",
            policy=policy,
            budget=page_time_s * 1000,
            maxVirtualTimeTaskStarvationCount=_MAX_TASK_STARVATION,
        )
        try:
            async with asyncio.timeout(limit_s):
                await self._expired.wait()
        except TimeoutError:
            return False
        return True

    def _on_expired(self, _event: Any) -> None:
        self._expired.set()


class PageSize:
    """Counts the decoded bytes of a page as they arrive, from ``Fetch.requestPaused`` events on.

    Frames of other sites have processes of their own, and are not counted.

    Args:
        exceeded: called as soon as the page is larger than the settings allow.
    """

    def __init__(
        self,
        session: CDPSession,
        settings: CaptureSettings,
        exceeded: Callable[[PageFailureError], None],
    ) -> None:
        self._session = session
        self._settings = settings
        self._exceeded = exceeded
        self._bytes_by_request: Counter[str] = Counter()
        self._documents: set[str] = set()
        self._total_bytes = 0

    async def start(self) -> None:
        """Begin to count; call before the page is sent anywhere."""
        self._session.on("Fetch.requestPaused", self._note_document)
        self._session.on("Network.dataReceived", self._count)
        # The browser need not keep the responses: they are not read through it.
        await send(
            self._session,
            "Network.enable",
            maxTotalBufferSize=0,
            maxResourceBufferSize=0,
        )

    def _note_document(self, event: PausedRequest) -> None:
        self._documents.add(event.get("networkId", ""))

    def _count(self, event: ReceivedData) -> None:
        request, settings = event["requestId"], self._settings
        self._bytes_by_request[request] += event["dataLength"]
        self._total_bytes += event["dataLength"]
        if request in self._documents and self._bytes_by_request[request] > settings.max_html_bytes:
            limit = f"{settings.max_html_bytes / _MEGABYTE:g} MB"
            self._exceeded(PageFailureError(f"the page is larger than {limit}", "too_large"))
        elif self._total_bytes > settings.max_decoded_bytes:
            limit = f"{settings.max_decoded_bytes / _MEGABYTE:g} MB"
            self._exceeded(
                PageFailureError(f"the page and what it loads are larger than {limit}", "too_large")
            )
