"""The settings of captures, their results and the records of those."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from mind2web2.urls.proxies import parse_upstream


def environment_proxies() -> dict[str, str]:
    """Return the proxies that the environment names; see ``NetworkSettings``."""
    from urllib.request import getproxies_environment  # slow to load

    return getproxies_environment()


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """Allowed connections.

    Args:
        allow_private_network: also addresses that are private, loopback or link-local.
        host_map: addresses of hosts that are served somewhere else, such as a local replica of a
            site: host name to (address, port); taken as given, for every port asked for, without a
            further check.
        trusted_keys: public keys (base64 SHA-256 of the SPKI) whose certificates count as valid.
        proxies: URLs of the network's own HTTP proxies by scheme, and under ``no`` the hosts to
            reach without them; by default, ``HTTP_PROXY``, ``HTTPS_PROXY`` and ``NO_PROXY``. May
            hold passwords.

    Raises:
        UsageError: one of them is not the address of a proxy.
    """

    allow_private_network: bool = False
    host_map: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    trusted_keys: tuple[str, ...] = ()
    proxies: Mapping[str, str] = field(default_factory=environment_proxies, repr=False)

    def __post_init__(self) -> None:
        for scheme in ("http", "https"):
            if self.proxies.get(scheme):
                parse_upstream(self.proxies[scheme])


class PackageBrowser:
    """A browser of this package, in contrast to one that an eval script brings itself."""


@dataclass(frozen=True, slots=True)
class CaptureSettings:
    """Bounds and looks of a capture.

    Args:
        headless: without a window.
        cdp_url: DevTools address of the user's own running browser, used instead of starting one.
        no_sandbox: start the browser without its sandbox.
        page_timeout_s: for everything about one page, its retries included.
        answer_timeout_s: until the server begins to answer; a silent one is not asked again.
        load_timeout_s: until the page's HTML has arrived.
        settle_timeout_s: until network and DOM are quiet; past it, the page is read as it is.
        viewport_width_px: the screenshot's width; a judge is shown images of this width unscaled.
        max_pages_per_host: captured at once from one host.
        max_page_bytes: that a page may fetch in all, as they come over the wire.
        max_document_bytes: of a file such as a PDF; the rest is cut off.
        max_page_memory_bytes: of each process that shows the page or a frame of it.
        max_html_bytes: of one of a page's documents, decoded; a larger page is not read.
        max_decoded_bytes: that a page may fetch in all, decoded; a larger page is not read.
    """

    headless: bool = True
    cdp_url: str | None = None
    no_sandbox: bool = False
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


PageKind = Literal["web", "pdf"]

TroubleKind = Literal[
    "http_error",
    "refusal",
    "empty_page",
    "challenge",
    "consent_wall",
    "login_wall",
    "soft_404",
    "navigation_error",
    "certificate_error",
    "timeout",
    "crash",
    "incomplete",
    "missing_letters",
    "too_large",
    "refused_address",
    "unsupported_type",
]


class Trouble(BaseModel):
    """One sign that a capture may differ from the page that the answer's author saw."""

    model_config = ConfigDict(frozen=True)

    kind: TroubleKind
    detail: str


class RefusedConnection(BaseModel):
    """A connection that a page tried to open and the filtering proxy did not let it.

    Args:
        is_private: the address is none of the public internet's, where a run may be allowed to go.
    """

    model_config = ConfigDict(frozen=True)

    host: str
    port: int
    reason: str
    is_private: bool = False


class CaptureRecord(BaseModel):
    """The sidecar beside a page's files: where the page came from and what looks wrong about it.

    Args:
        kind: ``None`` where the page yielded nothing; then ``failure`` says why.
        status: of the last HTTP response to the page's own address; ``None`` where none came.
        captured_at: UTC, ISO 8601.
        text_chars: of the stored text; 0 for a PDF.
        sha256: of the stored content, as ``CacheFileSys.digest`` gives it; ``None`` where nothing
            is stored.
        troubles: signs of trouble; the content is kept and shown all the same.
        unfolded: sections opened before reading, such as ``"details: 3"``.
        refused: connections that the page tried and was refused; never the reason to distrust its
            text.
        timings_s: seconds by stage.
        is_transient: the failure may pass, or lie with this machine or its network.
        archived_at: when a web archive made this copy, UTC, ISO 8601; ``None`` for the page itself.
        archived_from: the address of that copy.
        imported_from: the file that the page was imported from instead of being captured.
        is_private: the page or a part of it came from a private network, where only some runs may
            go.
        scripts: of the page's letters, and whether the machine had a font for them; empty for a
            PDF.
    """

    model_config = ConfigDict(frozen=True)

    requested_url: str
    final_url: str
    kind: PageKind | None
    status: int | None = None
    content_type: str | None = None
    title: str = ""
    captured_at: str
    text_chars: int = 0
    sha256: str | None = None
    troubles: tuple[Trouble, ...] = ()
    failure: str | None = None
    is_transient: bool = False
    unfolded: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    refused: tuple[RefusedConnection, ...] = ()
    timings_s: dict[str, float] = Field(default_factory=dict)
    tries: int = 1
    browser: str = ""
    archived_at: str | None = None
    archived_from: str | None = None
    imported_from: str | None = None
    is_private: bool = False
    scripts: dict[str, bool] = Field(default_factory=dict)

    @property
    def is_refused_as_private(self) -> bool:
        """Tell whether the capture failed because the address is private."""
        is_refused = self.kind is None and any(
            each.kind == "refused_address" for each in self.troubles
        )
        return is_refused and any(connection.is_private for connection in self.refused)

    @property
    def is_suspect(self) -> bool:
        """Tell whether something was stored that looks wrong."""
        return self.kind is not None and bool(self.troubles)


@dataclass(frozen=True, slots=True)
class CapturedPage:
    """The result of one capture: text and screenshot (JPEG), or a PDF, or only the record.

    Args:
        is_unanswered: the server took the request and was silent until the limit; it may only be
            slow.
    """

    record: CaptureRecord
    text: str | None = None
    screenshot: bytes | None = None
    pdf: bytes | None = None
    is_unanswered: bool = False

    @classmethod
    def missing(cls, url: str, reason: str) -> CapturedPage:
        """Return what stands for a page that was not captured."""
        now = datetime.now(UTC).isoformat()
        record = CaptureRecord(
            requested_url=url, final_url=url, kind=None, captured_at=now, failure=reason
        )
        return cls(record)


@dataclass(frozen=True, slots=True)
class RenderedPdf:
    """A PDF as it is shown to a judge.

    Args:
        images: one JPEG a page, from the first page on.
        text: the pages' text, each page under a line ``[page 3 of 12]``; empty if no page has text.
            Invisible parts of a page are left out.
        page_count: pages of the whole document.
        text_page_count: pages looked at for the text, from the first on.
        unreadable_pages: numbers of damaged pages, which have neither image nor text.
        hidden_text: text that was left out.
        missing_scripts: that some pages are written in and no font can draw; these have no image.
    """

    images: tuple[bytes, ...]
    text: str
    page_count: int
    text_page_count: int
    unreadable_pages: tuple[int, ...] = ()
    hidden_text: str = ""
    missing_scripts: tuple[str, ...] = ()


_IN_WORDS: dict[TroubleKind, str] = {
    "http_error": "the server answered with an error",
    "refusal": "the server refused to show the page",
    "empty_page": "the page showed hardly any text",
    "challenge": "the site may have shown a robot check or a block instead of the page",
    "consent_wall": "the site may have shown a request for consent instead of the page",
    "login_wall": "the site may have shown a login page instead of the page",
    "soft_404": "the site may have said that the page does not exist, or led to its home page "
    "instead",
    "navigation_error": "the page did not load as it should",
    "certificate_error": "the site's certificate was not valid",
    "timeout": "the time ran out",
    "crash": "the browser crashed on the page",
    "incomplete": "the page did not come whole: parts of it may be missing",
    "missing_letters": "no picture: the machine had no font for many of the page's letters",
    "too_large": "the page was too large to be read",
    "refused_address": "a part of the page came from an address that may not be visited",
    "unsupported_type": "the content is of a type that cannot be shown well",
}


def notes_for_judge(record: CaptureRecord) -> tuple[str, ...]:
    """Return the notes on a stored page that a judge is shown, a line each.

    In words of ours alone: they stand where a judge expects none of the page's.
    """
    notes = []
    if record.archived_at is not None:
        notes.append(
            f"a copy that a web archive made of this page on {record.archived_at[:10]}; the page "
            "itself was unavailable"
        )
    notes += [
        f"signs of trouble when this page was captured: {_in_words(trouble, record)}"
        for trouble in record.troubles
    ]
    return tuple(dict.fromkeys(notes))


def _in_words(trouble: Trouble, record: CaptureRecord) -> str:
    words = _IN_WORDS[trouble.kind]
    return (
        f"{words} (HTTP status {record.status})"
        if trouble.kind in ("http_error", "refusal") and record.status
        else words
    )


class PageCapturer(Protocol):
    """Captures pages; a browser does."""

    async def capture(
        self,
        url: str,
        logger: logging.Logger | None = None,
        *,
        is_patient: bool = False,
    ) -> CapturedPage:
        """Return the page; the record names a failure; ``MachineError`` for no browser."""
