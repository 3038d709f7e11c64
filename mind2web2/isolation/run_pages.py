"""The run's prepared pages as a script's process has them: texts, and references to images."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict
from typing import Any

from mind2web2.errors import MachineError
from mind2web2.isolation.channel import Channel
from mind2web2.isolation.page_fields import page_from
from mind2web2.page_library import PageCache, PageLibrary, PageRequest
from mind2web2.prepared_page import PreparedPage
from mind2web2.prompts import HashedText
from mind2web2.shared_captures import PageCapture, SharedCaptures


class Held:
    """Says that the run has to keep a page's texts and images, as long as one of them is in use here."""

    def __init__(self, channel: Channel, number: int) -> None:
        self.number = number
        weakref.finalize(self, channel.note_later, "release", held=number)


class PageText(HashedText):
    """A page's text, or an image of it in name only, that the run has and that is not sent back to it."""

    held: Held

    @classmethod
    def of(cls, text: str, sha256: str, held: Held) -> PageText:
        """Return a text with its digest."""
        made = cls(text)
        made._sha256 = sha256
        made.held = held
        return made

    @property
    def reference(self) -> dict[str, Any]:
        """Return what tells the run which of its texts this is."""
        return {"held": self.held.number, "sha256": self.sha256}


class RunPages(PageLibrary):
    """Stands for the run's page library.

    Args:
        captured_by_run: what a request for a page has for its capture where the run is to capture it.
        stored_at_first: what the run's has noted.
    """

    def __init__(
        self, channel: Channel, captured_by_run: SharedCaptures | None, stored_at_first: frozenset[str] | None
    ) -> None:
        super().__init__()
        self._channel = channel
        self._captured_by_run = captured_by_run
        self._stored_at_first = stored_at_first

    async def page(self, request: PageRequest) -> PreparedPage:
        """Return what ``PageLibrary.page`` returns."""
        is_captured_by_run = request.capture is not None and request.capture is self._captured_by_run
        if request.capture is not None and not is_captured_by_run:
            await _bring(request, request.capture)
        told = await self._channel.ask(
            "page",
            url=request.url,
            settings=asdict(request.settings),
            with_images=request.with_images,
            with_capture=is_captured_by_run,
            is_noted=request.cache is not request.shared_cache,
        )
        held = Held(self._channel, told["held"])
        return page_from(
            told["fields"],
            PageText.of(told["text"], told["text_sha256"], held),
            tuple(PageText.of(f"image {sha256}", sha256, held) for sha256 in told["images"]),
        )

    async def images_of(self, page: PreparedPage) -> list[str]:
        """Return a page's images, which this process has in name only."""
        references = [image.reference for image in page.images if isinstance(image, PageText)]
        return [str(await self._channel.ask("image", image=reference)) for reference in references]

    async def note_stored(self, cache: PageCache) -> None:
        """Leave it to the run, which has noted it by now."""

    def stored_at_first(self, cache: PageCache) -> frozenset[str] | None:  # noqa: ARG002 (the task's)
        """Return what ``PageLibrary.stored_at_first`` returns."""
        return self._stored_at_first

    async def at_hand(self, cache: PageCache, urls: Sequence[str]) -> list[bool]:  # noqa: ARG002 (the task's)
        """Return what ``PageLibrary.at_hand`` returns."""
        told: list[bool] = await self._channel.ask("at_hand", urls=list(urls))
        return told

    def forget(self, cache: PageCache) -> None:  # noqa: ARG002 (the task's)
        """Let the run drop what was prepared from the cache."""
        self._channel.note("forget")


def captured_by_run() -> SharedCaptures:
    """Return what stands for the run's captures."""

    def open_browser() -> AbstractAsyncContextManager[PageCapture]:
        raise MachineError("pages of a run are captured in its own process")

    return SharedCaptures(open_browser)


async def _bring(request: PageRequest, browser: SharedCaptures) -> None:
    """Capture a page that is not stored by a browser of the script's own, which only this process has."""
    if await asyncio.to_thread(request.cache.has, request.url) is None:
        await browser.bring(request.url, request.shared_cache, request.limit, request.logger)
