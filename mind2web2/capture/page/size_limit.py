"""What a page's responses come to once they are decoded, so that a few bytes cannot unfold to gigabytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mind2web2.capture.page.isolated_world import send
from mind2web2.capture.quality.failures import PageFailureError
from mind2web2.capture.settings import CaptureSettings

if TYPE_CHECKING:
    from patchright.async_api import CDPSession

_MEGABYTE = 1024**2


class PageSize:
    """Counts the bytes that arrive in a page's process, as the browser tells of them while they do.

    Needs ``Fetch.requestPaused`` events of the page's documents. Frames of other sites have processes of
    their own, and are not counted.

    Args:
        exceeded: told once, as soon as the page is larger than the settings allow.
    """

    def __init__(
        self, session: CDPSession, settings: CaptureSettings, exceeded: Callable[[PageFailureError], None]
    ) -> None:
        self._session = session
        self._settings = settings
        self._exceeded = exceeded
        self._is_counting = False
        self._total_bytes = 0
        self._bytes_of_documents: Counter[str] = Counter()
        self._documents: set[str] = set()

    async def start(self) -> None:
        """Begin to count; call before the page is sent anywhere."""
        self._is_counting = True
        self._session.on("Fetch.requestPaused", self._note_document)
        self._session.on("Network.dataReceived", self._count)
        # The browser need not keep what arrives: nobody asks it for that.
        await send(self._session, "Network.enable", maxTotalBufferSize=0, maxResourceBufferSize=0)

    def stop(self) -> None:
        """Count no more."""
        if not self._is_counting:
            return
        self._is_counting = False
        self._session.remove_listener("Fetch.requestPaused", self._note_document)
        self._session.remove_listener("Network.dataReceived", self._count)

    def _note_document(self, event: dict[str, Any]) -> None:
        self._documents.add(event.get("networkId", ""))

    def _count(self, event: dict[str, Any]) -> None:
        size_bytes = int(event["dataLength"])
        self._total_bytes += size_bytes
        if event["requestId"] in self._documents:
            self._bytes_of_documents[event["requestId"]] += size_bytes
        limit_bytes = self._settings.max_html_bytes
        if self._bytes_of_documents[event["requestId"]] > limit_bytes:
            self._end(f"the page is larger than {limit_bytes / _MEGABYTE:g} MB")
        elif self._total_bytes > self._settings.max_decoded_bytes:
            total = f"{self._settings.max_decoded_bytes / _MEGABYTE:g} MB"
            self._end(f"the page and what it loads are larger than {total}")

    def _end(self, reason: str) -> None:
        self.stop()
        self._exceeded(PageFailureError(reason, "too_large"))
