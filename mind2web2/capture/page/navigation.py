"""The main document of a capture, and the lock that keeps the page from leaving it."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mind2web2.capture.page.devtools import (
    AttachedFrame,
    PausedRequest,
    ScriptError,
    send,
)
from mind2web2.capture.page.documents import (
    FetchedDocument,
    file_name_of,
    is_attachment,
    is_rendered_type,
    media_type_of,
    office_as_html,
)
from mind2web2.errors import DocumentError, MachineError
from mind2web2.utils.aio import end_all

if TYPE_CHECKING:
    from patchright.async_api import CDPSession

log = logging.getLogger(__name__)

# Says why a URL must not be opened, or None; for browsers whose connections no proxy filters.
Guard = Callable[[str], Awaitable[str | None]]
# Returns whether the page that is shown has content; called before a file takes its place. The
# argument says whether that file is offered for saving, or of a type that no judge can be shown.
HasContent = Callable[[bool], Awaitable[bool]]

_DOCUMENT_PATTERNS = [
    {"urlPattern": "*", "resourceType": "Document", "requestStage": stage}
    for stage in ("Request", "Response")
]
_CHUNK_BYTES = 1024 * 1024
# Documents of frames that come from the page itself.
_FROM_NOWHERE = ("about:", "data:", "blob:")
_NO_CONTENT = (204, 205, 304)
# A document may hold anything; none of it is fetched or run.
_OFFICE_HEADERS = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": "default-src 'none'; img-src data:; style-src 'unsafe-inline'",
}
# A page that asks for yet another document after so many will never come to rest; redirects don't
# count.
_MAX_DOCUMENTS = 8
# Frames that frame themselves go on until the browser's own bound of a thousand.
_MAX_FRAME_DEPTH = 5
_MAX_FRAMES = 400


@dataclass(slots=True)
class MainDocument:
    """The page's own document, as the server sent it.

    Args:
        url: after redirects, with its fragment.
        redirects: the URLs that led there.
        file: the content, where it is none that a browser renders.
        missing: what the page that the browser shows in place of an office document leaves out.
    """

    url: str = ""
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    redirects: list[str] = field(default_factory=list)
    file: FetchedDocument | None = None
    missing: tuple[str, ...] = ()

    @property
    def content_type(self) -> str:
        """Return the Content-Type header, empty where there was none."""
        return self.headers.get("content-type", "")

    @property
    def disposition(self) -> str:
        """Return the Content-Disposition header, empty where there was none."""
        return self.headers.get("content-disposition", "")

    @property
    def is_page(self) -> bool:
        """Tell whether a browser shows it as a page."""
        return is_rendered_type(self.content_type) and not is_attachment(self.disposition)


class Navigation:
    """Watches the documents that a page loads, by pausing each at its request and at its response.

    Files (PDF, images, text, attachments) are taken from the very response that the browser
    received, with its cookies and its address, and never asked for twice. Once locked, the page can
    go nowhere else.
    """

    def __init__(
        self,
        session: CDPSession,
        main_frame_id: str,
        max_file_bytes: int,
        guard: Guard | None,
        has_content: HasContent,
    ) -> None:
        self._session = session
        self._main_frame_id = main_frame_id
        self._max_file_bytes = max_file_bytes
        self._guard = guard
        self._has_content = has_content
        self._frame_depths = {main_frame_id: 0}
        self._tasks: set[asyncio.Task[None]] = set()
        self.is_locked = False
        self.document = MainDocument()
        self.page: MainDocument | None = None
        """The document that the browser shows."""
        self._is_choosing = False
        self.started = 0
        self.arrived = 0
        self.held_back: list[str] = []
        self.refusal: str | None = None
        self.frames_left_out = 0
        self.is_utf8 = False
        """The page's encoding is UTF-8, whatever it says itself."""
        self.has_stayed = asyncio.Event()
        """Set once the main frame was kept from loading another document."""

    async def start(self) -> None:
        """Begin to watch; call before the page is sent anywhere."""
        self._session.on("Fetch.requestPaused", self._on_paused)
        self._session.on("Page.frameAttached", self._on_frame_attached)
        await send(self._session, "Page.enable")
        await send(self._session, "Fetch.enable", patterns=_DOCUMENT_PATTERNS)

    @property
    def is_under_way(self) -> bool:
        """Tell whether the main frame has asked for a document that has not answered yet."""
        return self.arrived < self.started or self._is_choosing

    async def close(self) -> None:
        """Stop watching; a document still being fetched is given up."""
        self._session.remove_listener("Fetch.requestPaused", self._on_paused)
        self._session.remove_listener("Page.frameAttached", self._on_frame_attached)
        await end_all(self._tasks)

    def _on_frame_attached(self, event: AttachedFrame) -> None:
        self._frame_depths[event["frameId"]] = self._frame_depths.get(event["parentFrameId"], 0) + 1

    def _on_paused(self, event: PausedRequest) -> None:
        task = asyncio.get_running_loop().create_task(self._decide_or_log(event))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _decide_or_log(self, event: PausedRequest) -> None:
        try:
            await self._decide(event)
        except ScriptError as error:  # the request was cancelled, or the page is gone
            log.debug(
                "paused document is gone url=%s reason=%s",
                event["request"]["url"],
                error,
            )

    async def _decide(self, event: PausedRequest) -> None:
        is_request = "responseStatusCode" not in event and "responseErrorReason" not in event
        if event["frameId"] == self._main_frame_id:
            await self._decide_main(event)
        elif is_request and await self._is_refused_frame(event):
            await self._fail(event)
        else:
            await self._continue(event)

    async def _decide_main(self, event: PausedRequest) -> None:
        if "responseStatusCode" in event:
            await self._decide_response(event)
        elif "responseErrorReason" in event:
            self.arrived = self.started
            await self._continue(event)
        else:
            await self._decide_request(event)

    async def _is_refused_frame(self, event: PausedRequest) -> bool:
        depth = self._frame_depths.get(event["frameId"], 0)
        if depth > _MAX_FRAME_DEPTH or len(self._frame_depths) > _MAX_FRAMES:
            self.frames_left_out += 1
            return True
        url = event["request"]["url"]
        is_fetched = not url.startswith(_FROM_NOWHERE)
        return is_fetched and self._guard is not None and await self._guard(url) is not None

    async def _decide_request(self, event: PausedRequest) -> None:
        url = event["request"]["url"]
        if self.is_locked:
            self.held_back.append(url)
            await self._fail(event)
            return
        if self._guard is not None and (refusal := await self._guard(url)) is not None:
            self.refusal = refusal
            await self._fail(event)
            return
        if "redirectedRequestId" not in event:
            self.started += 1
            self.is_locked = self.started >= _MAX_DOCUMENTS
        await self._continue(event)

    async def _decide_response(self, event: PausedRequest) -> None:
        url, status, headers = _url_of(event), event["responseStatusCode"], _headers_of(event)
        if 300 <= status < 400 and "location" in headers:
            self.document.redirects.append(url)
            await self._continue(event)
            return
        redirects = self.document.redirects
        document = MainDocument(url, status, headers, redirects)
        try:
            self.document = document
            await self._hand_over(event)
        finally:
            self.arrived = self.started

    async def _keeps_page(
        self, page: MainDocument, file: MainDocument, *, is_unwanted: bool
    ) -> bool:
        """Tell whether a page with content started the download by itself.

        Args:
            is_unwanted: the file is offered for saving, or of a type that no judge can be shown.
        """
        self._is_choosing = True
        try:
            # May load the page once more.
            if not await self._has_content(is_unwanted):
                self.document = file
                return False
        finally:
            self._is_choosing = False
        self.document = page
        self.held_back.append(file.url)
        return True

    async def _hand_over(self, event: PausedRequest) -> None:
        document = self.document
        if document.is_page or document.status in _NO_CONTENT:
            self.page = document
            await (self._show_as_utf8 if self.is_utf8 else self._continue)(event)
            return
        if self._is_choosing:
            # The choice is between the page and the first file.
            self.held_back.append(document.url)
            await self._fail(event)
            return
        body, is_cut = await self._body(event)
        file = FetchedDocument(
            document.url,
            document.content_type,
            body,
            file_name_of(document.disposition),
            is_cut,
        )
        kind = None if is_cut else await asyncio.to_thread(file.kind)
        is_offered = is_attachment(document.disposition)
        if kind == "html" and not (self.page is not None and is_offered):
            await self._show_as_html(event, file)
            return
        page = self.page
        if page is not None:
            # The browser evaluates nothing in the page that is shown until the request is over.
            await self._fail(event)
            if await self._keeps_page(page, document, is_unwanted=is_offered or kind is None):
                return
            self.page = None
            if kind in ("html", "office"):
                await send(self._session, "Page.navigate", url=document.url)
            else:
                document.file = file
            return
        if kind == "office":
            try:
                shown = await office_as_html(file)
            except (DocumentError, MachineError) as error:
                file = replace(file, error=error)
            else:
                document.missing = shown.notes
                await self._fulfill(event, _OFFICE_HEADERS, shown.html.encode())
                return
        document.file = file
        await self._fail(event)

    async def _body(self, event: PausedRequest) -> tuple[bytes, bool]:
        stream = await send(
            self._session,
            "Fetch.takeResponseBodyAsStream",
            requestId=event["requestId"],
        )
        body = bytearray()
        while len(body) <= self._max_file_bytes:
            chunk = await send(self._session, "IO.read", handle=stream["stream"], size=_CHUNK_BYTES)
            content = chunk["data"]
            body += base64.b64decode(content) if chunk.get("base64Encoded") else content.encode()
            if chunk["eof"]:
                return bytes(body), False
        await send(self._session, "IO.close", handle=stream["stream"])
        return bytes(body[: self._max_file_bytes]), True

    async def _show_as_utf8(self, event: PausedRequest) -> None:
        body, _ = await self._body(event)
        declared = f"{media_type_of(self.document.content_type)}; charset=utf-8"
        file = FetchedDocument(self.document.url, declared, body)
        await self._show_as_html(event, file)

    async def _show_as_html(self, event: PausedRequest, file: FetchedDocument) -> None:
        """Let the browser render a page that the server declares as another type."""
        other_headers = {
            name: value
            for name, value in self.document.headers.items()
            if name
            not in {
                "content-type",
                "content-disposition",
                "content-encoding",
                "content-length",
            }
        }
        declared = file.content_type if is_rendered_type(file.content_type) else "text/html"
        if (
            media_type_of(declared) == "text/html"
            and "charset" not in declared
            and "charset" in file.content_type
        ):
            declared = f"text/html;{file.content_type.partition(';')[2]}"
        await self._fulfill(event, {**other_headers, "content-type": declared}, file.body)

    async def _fulfill(
        self,
        event: PausedRequest,
        headers: Mapping[str, str],
        body: bytes,
    ) -> None:
        await send(
            self._session,
            "Fetch.fulfillRequest",
            requestId=event["requestId"],
            responseCode=event["responseStatusCode"],
            responseHeaders=[{"name": name, "value": value} for name, value in headers.items()],
            body=(await asyncio.to_thread(base64.b64encode, body)).decode(),
        )

    async def _fail(self, event: PausedRequest) -> None:
        if event["frameId"] == self._main_frame_id:
            self.has_stayed.set()
        # "Aborted" leaves the page that is shown as it is.
        await send(
            self._session,
            "Fetch.failRequest",
            requestId=event["requestId"],
            errorReason="Aborted",
        )

    async def _continue(self, event: PausedRequest) -> None:
        await send(self._session, "Fetch.continueRequest", requestId=event["requestId"])


def _url_of(event: PausedRequest) -> str:
    # The fragment comes separately, and some sites choose the page by it.
    request = event["request"]
    return request["url"] + request.get("urlFragment", "")


def _headers_of(event: PausedRequest) -> dict[str, str]:
    headers: dict[str, str] = {}
    for header in event.get("responseHeaders", []):
        headers.setdefault(header["name"].lower(), header["value"])
    return headers
