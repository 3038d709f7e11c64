"""How pages are captured, with the defaults in one place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol


def environment_proxies() -> dict[str, str]:
    """Return the proxies that the environment names; see ``NetworkSettings``."""
    from urllib.request import getproxies_environment  # slow to load

    return getproxies_environment()


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """Allowed connections.

    Args:
        allow_private_network: also addresses that are private, loopback or link-local.
        host_map: addresses of hosts that are served somewhere else, such as a local replica of a site:
            host name to (address, port); taken as given, for every port asked for, without a further check.
        trusted_keys: public keys (base64 SHA-256 of the SPKI) whose certificates count as valid.
        proxies: URLs of the network's own HTTP proxies by scheme, and under ``no`` the hosts to reach
            without them; by default, ``HTTP_PROXY``, ``HTTPS_PROXY`` and ``NO_PROXY``. May hold passwords.
    """

    allow_private_network: bool = False
    host_map: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    trusted_keys: tuple[str, ...] = ()
    proxies: Mapping[str, str] = field(default_factory=environment_proxies, repr=False)


# Of files that eval scripts download. Unset, only the public internet can be reached.
network_of_downloads: ContextVar[NetworkSettings | None] = ContextVar("network of downloads", default=None)
# Called with each URL that may not be downloaded because its address is private.
report_refused_download: ContextVar[Callable[[str], None] | None] = ContextVar(
    "report of refused downloads", default=None
)


@contextmanager
def downloads_from(network: NetworkSettings) -> Iterator[None]:
    """Apply network settings to downloads in this block, and in tasks started in it."""
    token = network_of_downloads.set(network)
    try:
        yield
    finally:
        network_of_downloads.reset(token)


@contextmanager
def refused_downloads_reported(report: Callable[[str], None]) -> Iterator[None]:
    """Report each URL that this block or its tasks may not download because its address is private."""
    token = report_refused_download.set(report)
    try:
        yield
    finally:
        report_refused_download.reset(token)


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response that was received before; names of headers in lower case, the body decoded."""

    body: bytes
    headers: Mapping[str, str]
    status: int = 200


class StoredResponses(Protocol):
    """Responses by URL."""

    def get(self, url: str) -> StoredResponse | None:
        """Return the response to any spelling of a URL, ``None`` for none; may read a file."""


@dataclass(frozen=True, slots=True)
class CaptureSettings:
    """Bounds and looks of a capture.

    Args:
        headless: without a window.
        cdp_url: DevTools address of the user's own running browser, used instead of starting one.
        stored: responses to render a page from without a network; ``None`` to fetch it.
        storage_state: cookies and local storage of a login, in Playwright's form, lent to every page.
        page_timeout_s: for everything about one page, its retries included.
        answer_timeout_s: until the server begins to answer; a silent one is not asked again.
        load_timeout_s: until the page's HTML has arrived.
        settle_timeout_s: until network and DOM are quiet; past it, the page is read as it is.
        viewport_width_px: the screenshot's width; a judge is shown images of this width unscaled.
        max_pages_per_host: captured at once from one host.
        max_page_bytes: that a page may fetch in all, as they come over the wire.
        max_document_bytes: of a file that is no page, such as a PDF; the rest is cut off.
        max_page_memory_bytes: of each process that shows the page or a frame of it.
        max_html_bytes: of one of a page's documents, decoded; a larger page is not read.
        max_decoded_bytes: that a page may fetch in all, decoded; a larger page is not read.
    """

    headless: bool = True
    cdp_url: str | None = None
    stored: StoredResponses | None = field(default=None, repr=False)
    storage_state: Mapping[str, Any] | None = field(default=None, repr=False)
    network: NetworkSettings = field(default_factory=NetworkSettings)
    page_timeout_s: float = 120.0
    answer_timeout_s: float = 20.0
    load_timeout_s: float = 30.0
    settle_timeout_s: float = 6.0
    viewport_width_px: int = 1100
    viewport_height_px: int = 900
    max_screenshot_height_px: int = 10_000
    jpeg_quality: int = 80
    max_pages_per_host: int = 3
    max_page_bytes: int = 300 * 1024**2
    max_document_bytes: int = 100 * 1024**2
    max_page_memory_bytes: int = 3 * 1024**3
    max_html_bytes: int = 64 * 1024**2
    max_decoded_bytes: int = 512 * 1024**2
    max_text_chars: int = 4_000_000
