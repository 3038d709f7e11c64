"""The captures of a run: each page once, for all that ask for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol, Self
from weakref import WeakValueDictionary

from mind2web2.capture.models import CapturedPage, CaptureRecord
from mind2web2.capture.quality import PageObservation, signs_of_trouble
from mind2web2.errors import CacheWriteError, CaptureError, DoubtfulPageError, MachineError
from mind2web2.llm_client.chat import Limit
from mind2web2.pages.cache_files import screenshot_bytes
from mind2web2.pages.page_cache import (
    PageCache,
    capture_record,
    copy_page,
    listed_failure,
    put_capture,
)
from mind2web2.urls.parts import lookup_key

log = logging.getLogger(__name__)

_LONGEST_CLOSE_S = 15.0


class PageCapture(Protocol):
    """Captures a page.

    ``capture(url, logger) -> CapturedPage``, if there is one, is used instead.
    """

    async def capture_page(self, url: str, logger: logging.Logger) -> tuple[str | None, str | None]:
        """Return the screenshot as base64 text and the page's text.

        ``CaptureError`` says why not.
        """


OpenBrowser = Callable[[], AbstractAsyncContextManager[PageCapture]]


class SharedCaptures:
    """The captures of a run, with one browser that is opened for the first of them.

    An async context manager.

    Equal requests wait for one capture. A failed capture is not repeated.

    Args:
        open_browser: called once, when the first page that is not cached is wanted.
    """

    def __init__(self, open_browser: OpenBrowser) -> None:
        self._open_browser = open_browser
        self._browser: PageCapture | None = None
        self._opening = asyncio.Lock()
        self._exits = AsyncExitStack()
        self._outcomes: dict[str, _Outcome] = {}
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @classmethod
    def by(cls, browser: PageCapture) -> Self:
        """Return captures by a browser that is open and stays so."""
        return cls(lambda: nullcontext(browser))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._browser = None
        try:
            async with asyncio.timeout(_LONGEST_CLOSE_S):
                await self._exits.aclose()
        except TimeoutError:
            log.warning("browser did not close within %g s and is left behind", _LONGEST_CLOSE_S)

    async def capture_into(
        self,
        url: str,
        cache: PageCache,
        limit: Limit,
        logger: logging.Logger,
        *,
        is_retry: bool = False,
    ) -> None:
        """Capture a page into a cache, unless it is there by now or has been captured into another.

        Args:
            limit: entered around the capture itself.
            is_retry: also if the page is stored, unless this run has captured it.

        Raises:
            CaptureError: the page is unavailable; the text says why.
            MachineError: there is no browser.
        """
        key = lookup_key(url)
        if key is None:
            raise CaptureError("not an address of a page")
        async with self._turns.setdefault(key, asyncio.Lock()):
            outcome = self._outcomes.get(key)
            is_there = await asyncio.to_thread(cache.has, url) is not None
            reason = await asyncio.to_thread(listed_failure, cache, url)
            if reason is not None:
                raise CaptureError(reason)
            if is_there and (not is_retry or (outcome is not None and outcome.cache is cache)):
                return
            if outcome is None or not await outcome.is_copied(url, cache):
                page = await self._capture(url, limit, logger)
                await asyncio.to_thread(_store, page, url, cache, must_be_better=not is_retry)
                self._outcomes[key] = outcome = _Outcome(page.record, cache)
            # Another process may have stored it since.
            if is_retry or await asyncio.to_thread(cache.has, url) is None:
                outcome.check()

    def is_refused_as_private(self, url: str) -> bool:
        """Return whether this run refused a page because its address is private."""
        outcome = self._outcomes.get(lookup_key(url) or url)
        return outcome is not None and outcome.record.is_refused_as_private

    async def _capture(self, url: str, limit: Limit, logger: logging.Logger) -> CapturedPage:
        async with limit:
            try:
                return await _page_from(await self._shared_browser(), url, logger)
            except MachineError as error:
                raise MachineError(
                    f"{error}. Or evaluate with --no_capture: a page that is not cached then "
                    "counts "
                    "as unavailable"
                ) from error

    async def _shared_browser(self) -> PageCapture:
        async with self._opening:
            if self._browser is None:
                self._browser = await self._exits.enter_async_context(self._open_browser())
            return self._browser


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The record of a capture, and the cache that has the page.

    Its content is not kept in memory.
    """

    record: CaptureRecord
    cache: PageCache

    async def is_copied(self, url: str, cache: PageCache) -> bool:
        """Copy the page to another cache; ``False`` if it has to be captured for that cache."""
        if self.record.kind is None:
            return True
        return await asyncio.to_thread(copy_page, cache, url, self.cache)

    def check(self) -> None:
        """Raise ``CaptureError`` if the capture failed."""
        if self.record.kind is None:
            reason = self.record.failure or "the page yielded nothing"
            raise (DoubtfulPageError(reason) if self.record.is_transient else CaptureError(reason))


async def _page_from(browser: PageCapture, url: str, logger: logging.Logger) -> CapturedPage:
    capture = getattr(browser, "capture", None)
    if callable(capture):
        page: CapturedPage = await capture(url, logger)
        return page
    try:
        screenshot, text = await browser.capture_page(url, logger)
    except CaptureError as error:
        return _failed_page(url, str(error), is_transient=False)
    except OSError as error:
        return _failed_page(
            url,
            f"cannot be captured: {type(error).__name__}: {error}",
            is_transient=True,
        )
    text = text or ""
    if not screenshot and not text.strip():
        return _failed_page(
            url, "the page yielded neither text nor a screenshot", is_transient=False
        )
    return await asyncio.to_thread(_page_of, url, text, screenshot)


def _page_of(url: str, text: str, screenshot: str | None) -> CapturedPage:
    """Return a page that a browser without records has captured, with signs from its text."""
    seen = PageObservation(requested_url=url, final_url=url, text=text, text_chars=len(text))
    record = _record(url, kind="web", text_chars=len(text), troubles=signs_of_trouble(seen))
    return CapturedPage(record, text, screenshot_bytes(screenshot))


def _failed_page(url: str, reason: str, *, is_transient: bool) -> CapturedPage:
    return CapturedPage(_record(url, kind=None, failure=reason, is_transient=is_transient))


def _record(url: str, **details: Any) -> CaptureRecord:
    # Any: pydantic checks them against the model's fields.
    captured_at = datetime.now(UTC).isoformat(timespec="seconds")
    return CaptureRecord(requested_url=url, final_url=url, captured_at=captured_at, **details)


def _store(page: CapturedPage, url: str, cache: PageCache, *, must_be_better: bool) -> None:
    if page.record.kind is None and _is_known_to_fail(url, page.record, cache):
        return
    try:
        put_capture(cache, page, url, must_be_better=must_be_better)
    except CacheWriteError as error:
        if page.record.kind is not None:
            raise
        # No claim rests on it.
        log.warning("failed capture not recorded url=%s reason=%s", url, error)


def _is_known_to_fail(url: str, failed: CaptureRecord, cache: PageCache) -> bool:
    """Return whether a permanent failure is on record, which another one must not change."""
    record = capture_record(cache, url)
    if record is None or record.kind is not None or record.is_transient:
        return False
    # It was refused before, and may be visited now.
    return failed.is_refused_as_private or not record.is_refused_as_private
