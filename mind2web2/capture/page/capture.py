"""One try at one page: open it, bring out all it has, read it, picture it."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from mind2web2.capture.letters import missing_letters
from mind2web2.capture.page.devtools import ScriptError
from mind2web2.capture.page.documents import read_file_content
from mind2web2.capture.page.drawn_letters import drawn_scripts
from mind2web2.capture.page.isolated_world import WORLD_NAME, FrameWorld, worlds_with_more
from mind2web2.capture.page.overlays import Cleared, close_banners, pass_consent_wall
from mind2web2.capture.page.page_tools import call_or_none
from mind2web2.capture.page.screenshot import set_window, take_screenshot
from mind2web2.capture.page.scrolling import Scrolled, scroll_through
from mind2web2.capture.page.text import PageText, read_text
from mind2web2.capture.page.unfolding import Unfolded, unfold
from mind2web2.capture.page.visit import PageState, Visit
from mind2web2.capture.page_failure import PASSING_STATUSES
from mind2web2.capture.quality import PageObservation, signs_of_trouble
from mind2web2.urls.parts import lookup_key

if TYPE_CHECKING:
    from patchright.async_api import CDPSession, Page

    from mind2web2.capture.models import CaptureSettings, Trouble
    from mind2web2.capture.page.navigation import Guard, MainDocument

log = logging.getLogger(__name__)

T = TypeVar("T")

_BANNERS_LIMIT_S = 5.0
# A step that waits for a response: longer ones are for the page's first rest.
_REST_LIMIT_S = 3.0
_SCROLL_LIMIT_S = 20.0
_UNFOLD_LIMIT_S = 10.0
_READ_LIMIT_S = 15.0
_PICTURE_LIMIT_S = 20.0
# Numbers may count up for some seconds; a clock on a page never ends.
_UNCHANGED_PAGE_TIME_S = 1.0
_MAX_CHANGES = 12
_SHARE_WHEN_INCOMPLETE = 0.3
# Enough to recognise the kind of page.
_OBSERVED_CHARS = 20_000
# A request for consent is still there if this share of its words is; its form may differ.
_SHARE_STILL_SHOWN = 0.7
_NOTHING_CHARS = 20


@dataclass(slots=True)
class Sighting:
    """The result of one try.

    Args:
        is_broken: the connection was lost while the page was arriving.
        timings_s: seconds by stage.
    """

    document: MainDocument
    title: str = ""
    text: str | None = None
    screenshot: bytes | None = None
    pdf: bytes | None = None
    troubles: list[Trouble] = field(default_factory=list)
    unfolded: tuple[str, ...] = ()
    scripts: dict[str, bool] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    timings_s: dict[str, float] = field(default_factory=dict)
    is_broken: bool = False

    @property
    def is_passing(self) -> bool:
        """Tell by the status, or the end of the reply, whether another try may succeed."""
        return self.is_broken or self.document.status in PASSING_STATUSES


async def see_page(
    page: Page,
    session: CDPSession,
    url: str,
    settings: CaptureSettings,
    certificate_error: str | None = None,
    guard: Guard | None = None,
) -> Sighting:
    """Open a URL in a fresh tab and return the captured page.

    Args:
        certificate_error: of the server, where the page is opened all the same.

    Raises:
        PageFailureError: nothing is.
    """
    timings_s: dict[str, float] = {}
    async with Visit(page, session, settings, guard) as visit:
        with _record_time(timings_s, "open"):
            await visit.open(url)
        document = visit.navigation.document
        if document.file is not None:
            with _record_time(timings_s, "read"):
                seen = await _see_file(document, settings)
        else:
            seen = await _PageReader(visit, url, certificate_error).read(timings_s)
    seen.timings_s = timings_s
    return seen


async def _see_file(document: MainDocument, settings: CaptureSettings) -> Sighting:
    assert document.file is not None
    content = await read_file_content(document.file, settings.max_text_chars, settings.jpeg_quality)
    seen = Sighting(document, text=content.text, screenshot=content.image, pdf=content.pdf)
    seen.notes += content.notes
    seen.troubles += content.troubles
    seen.troubles += signs_of_trouble(
        PageObservation(
            requested_url=document.file.url,
            final_url=document.url,
            status=document.status,
            content_type=document.content_type,
            # A picture or a PDF has its words inside.
            text=content.text or "file",
            text_chars=len(content.text or "file"),
        )
    )
    return seen


@dataclass(frozen=True, slots=True)
class _Reading:
    """The content of a document at one moment."""

    text: PageText | None
    state: PageState | None
    screenshot: bytes | None
    frames: tuple[str, ...]
    scripts: dict[str, bool]


class _PageReader:
    """Brings out, reads and pictures the page of a visit.

    A stage that fails does not stop the others.
    """

    def __init__(self, visit: Visit, url: str, certificate_error: str | None) -> None:
        self._visit = visit
        self._url = url
        self._certificate_error = certificate_error
        self._settings = visit.settings
        self._seen = Sighting(visit.navigation.document)
        self._cleared = Cleared()
        self._missing: list[str] = []
        self._worlds: list[FrameWorld] | None = None
        self._is_changed = False

    async def read(self, timings_s: dict[str, float]) -> Sighting:
        """Return the content of the page."""
        with _record_time(timings_s, "unfold"):
            reading = await self._bring_out()
        reading = reading or await self._read(timings_s, self._unchanged_worlds())
        self._seen.is_broken = self._visit.is_broken
        self._seen.notes += self._visit.notes
        if self._visit.navigation.frames_left_out:
            self._seen.notes.append("frames within frames within frames were left out")
        for note in self._visit.navigation.document.missing:
            self._note_missing(note)
        self._seen.screenshot = reading.screenshot
        self._seen.scripts = reading.scripts
        if reading.text is not None:
            self._note_text(reading.text)
            if trouble := missing_letters(reading.text.text, reading.scripts):
                # A picture of boxes would speak against the text.
                self._seen.screenshot = None
                self._seen.troubles.append(trouble)
        self._note_troubles(reading)
        return self._seen

    def _limit_s(self, limit_s: float) -> float:
        # A page that used up its time, or was stopped, is read as it is.
        return limit_s if self._visit.is_complete else limit_s * _SHARE_WHEN_INCOMPLETE

    async def _bring_out(self) -> _Reading | None:
        """Bring out the page's content; return a reading only where the page was lost after it."""
        worlds = await self._stage("entering its frames", _READ_LIMIT_S, self._worlds_with_more())
        if worlds is None:
            return None
        await self._clear(worlds)
        if self._cleared.consent_wall is not None:
            reading = await self._past_the_consent_wall(worlds[0])
            if reading is not None:
                return reading
            entering = self._worlds_with_more()
            worlds = await self._stage("entering its frames", _READ_LIMIT_S, entering) or worlds
            await self._clear(worlds)
        scrolled = await self._scroll(worlds)
        limit_s = self._limit_s(_UNFOLD_LIMIT_S)
        unfolded = await self._stage("unfolding", limit_s + 2, unfold(worlds, limit_s, self._rest))
        if unfolded and unfolded.summary:
            # Sections that were opened may have lazy parts.
            await self._scroll(worlds)
            self._seen.unfolded = unfolded.summary
        if unfolded is None or unfolded.summary or scrolled is None or scrolled.rounds:
            # Some overlays come with scrolling.
            await self._clear(worlds)
            self._is_changed = True
        await self._stage("waiting for it to stand still", _REST_LIMIT_S, self._stand_still(worlds))
        self._note_bounds(scrolled, unfolded)
        return None

    async def _stand_still(self, worlds: list[FrameWorld]) -> None:
        """Let the page's time run until its text stays as it is, or for a number of seconds."""
        for _ in range(_MAX_CHANGES):
            if all([await call_or_none(world, "is_unchanged") for world in worlds]):
                return
            await self._rest(_UNCHANGED_PAGE_TIME_S)

    async def _worlds_with_more(self) -> list[FrameWorld]:
        self._worlds = await self._visit.worlds()
        return await worlds_with_more(self._worlds)

    def _unchanged_worlds(self) -> list[FrameWorld] | None:
        # Frames may go to other documents, and scripts that we let run may make shadow roots.
        worlds = self._worlds
        return worlds if worlds is not None and len(worlds) == 1 and not self._is_changed else None

    async def _read(
        self, timings_s: dict[str, float], worlds: list[FrameWorld] | None = None
    ) -> _Reading:
        text: PageText | None = None
        screenshot: bytes | None = None
        scripts: dict[str, bool] | None = None
        with _record_time(timings_s, "read"):
            if worlds is None:
                worlds = await self._stage(
                    "entering its frames", _READ_LIMIT_S, self._visit.worlds()
                )
            if worlds is not None:
                text = await self._stage("reading its text", _READ_LIMIT_S, self._text(worlds))
                if text is not None:
                    looking = drawn_scripts(text.text, worlds[0].evaluate)
                    scripts = await self._stage("drawing its letters", _READ_LIMIT_S, looking)
            state = await self._stage(
                "looking at it", _READ_LIMIT_S, self._visit.state(with_text=False)
            )
        with _record_time(timings_s, "picture"):
            noted = len(self._seen.notes)
            if worlds is not None:
                picture = take_screenshot(self._visit.session, worlds, self._settings)
                screenshot = await self._stage("its picture", _PICTURE_LIMIT_S, picture)
            if screenshot is None and len(self._seen.notes) == noted:
                self._seen.notes.append(
                    "no screenshot: the browser gave none, or one of a single colour"
                )
        return _Reading(
            text,
            state,
            screenshot,
            tuple(frame.url for frame in self._visit.page.frames[1:]),
            scripts or {},
        )

    async def _text(self, worlds: list[FrameWorld]) -> PageText:
        """Read the text; where that fails, once more in new worlds.

        Chromium 156 may give a world the element object of another world, which every method then
        rejects ("Illegal invocation"): with ten long pages at once in 3 of 40 captures of one page.
        """
        most_chars = self._settings.max_text_chars
        try:
            return await read_text(worlds, most_chars)
        except ScriptError as error:
            log.info(
                "text is read again in new worlds url=%s reason=%s",
                self._visit.page.url,
                error,
            )
            return await read_text(await self._visit.worlds(f"{WORLD_NAME} again"), most_chars)

    async def _scroll(self, worlds: list[FrameWorld]) -> Scrolled | None:
        limit_s = self._limit_s(_SCROLL_LIMIT_S)
        return await self._stage(
            "scrolling", limit_s + 2, scroll_through(worlds, limit_s, self._rest)
        )

    async def _clear(self, worlds: list[FrameWorld]) -> None:
        cleared = await self._stage(
            "closing banners",
            _BANNERS_LIMIT_S + 2,
            close_banners(worlds, _BANNERS_LIMIT_S, self._rest),
        )
        if cleared is not None:
            self._is_changed |= bool(cleared.done)
            self._seen.notes += [
                note for note in (*cleared.done, *cleared.walls) if note not in self._seen.notes
            ]
            self._cleared = cleared

    async def _past_the_consent_wall(self, world: FrameWorld) -> _Reading | None:
        """Let a request for consent lead on to the requested page.

        Returns:
            The content of the page before, where it led to something else: it may have been the
            page itself.
        """
        wall = self._visit.navigation.document
        reading = await self._read({})
        await set_window(self._visit.session, self._settings)
        if not self._still_asks(reading):
            return None
        await self._stage(
            "going past the request for consent",
            self._settings.load_timeout_s,
            self._visit.go_through(partial(pass_consent_wall, world)),
        )
        document = self._visit.navigation.document
        if document is wall or document.file is not None:
            return None
        asked = lookup_key(self._url)
        if lookup_key(wall.url) == asked != lookup_key(document.url):
            self._seen.notes.append(
                "a page that looked like a request for consent led to another page"
            )
            return reading
        self._seen.document = document
        self._seen.notes.append(
            "the site asked for consent first, which was given as sparingly as it let us"
        )
        return None

    def _still_asks(self, reading: _Reading) -> bool:
        """Tell whether a request for consent is visible, rather than the rest of a short page."""
        wall = self._cleared.consent_wall
        if wall is None:
            return False
        shown = (reading.text.text if reading.text else "").lower()
        words = [word for word in re.findall(r"\w+", wall.lower()) if len(word) > 2]
        still_there = sum(word in shown for word in words)
        return len(
            re.sub(r"\W", "", shown)
        ) < _NOTHING_CHARS or still_there >= _SHARE_STILL_SHOWN * len(words)

    async def _rest(self, page_time_s: float) -> bool:
        return await self._visit.rest(page_time_s, _REST_LIMIT_S)

    def _note_bounds(self, scrolled: Scrolled | None, unfolded: Unfolded | None) -> None:
        if scrolled is not None:
            if scrolled.is_endless:
                self._seen.notes.append("the page grows without end and was scrolled up to a bound")
            if scrolled.is_cut:
                self._note_missing(
                    "the page goes on below the part that could be scrolled through in time"
                )
        if unfolded and unfolded.is_cut:
            bounds = f" ({'; '.join(unfolded.notes)})" if unfolded.notes else ""
            self._note_missing(f"not all sections could be unfolded{bounds}")

    def _note_text(self, text: PageText) -> None:
        self._seen.text = text.text
        self._seen.title = text.title
        if text.is_cut:
            self._note_missing(f"text cut after {len(text.text)} characters")
        if text.unread_frames:
            self._seen.notes.append(
                f"frames that could not be read: {', '.join(text.unread_frames[:5])}"
            )

    def _note_missing(self, note: str) -> None:
        self._seen.notes.append(note)
        self._missing.append(note)

    def _note_troubles(self, reading: _Reading) -> None:
        document, state, text = (
            self._seen.document,
            reading.state,
            self._seen.text or "",
        )
        missing = [
            *([] if self._visit.is_complete else self._visit.notes),
            *self._missing,
        ]
        self._seen.troubles += signs_of_trouble(
            PageObservation(
                requested_url=self._url,
                # Scripts may have given the page another address without loading another document.
                final_url=state.url if state and state.url.startswith("http") else document.url,
                status=document.status,
                content_type=document.content_type,
                title=self._seen.title,
                text=text[:_OBSERVED_CHARS],
                text_chars=len(text),
                password_fields=reading.text.password_fields if reading.text else 0,
                markers=state.marks if state else (),
                consent_only=self._still_asks(reading),
                walls=tuple(wall.partition(":")[0] for wall in self._cleared.walls),
                missing_because="; ".join(missing) or None,
                certificate_error=self._certificate_error,
                frames=reading.frames,
            )
        )

    async def _stage(self, name: str, limit_s: float, work: Coroutine[Any, Any, T]) -> T | None:
        """Return the result of a stage, ``None`` where it fails or takes too long.

        The notes then say so.
        """
        try:
            return await self._visit.within(limit_s, work)
        except TimeoutError:
            self._seen.notes.append(f"{name} took longer than {limit_s:g} s and was given up")
            await self._visit.stop_scripts()
        except ScriptError as error:
            self._seen.notes.append(f"{name} failed: {' '.join(str(error).split())[:200]}")
        return None


@contextmanager
def _record_time(timings_s: dict[str, float], stage: str) -> Iterator[None]:
    started = time.monotonic()
    try:
        yield
    finally:
        timings_s[stage] = time.monotonic() - started
